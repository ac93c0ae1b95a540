//! Throwing away what is buffered for a key.

use workflow_core::{CorrelationKey, Value};
use workflow_effects::{Commit, Read};

use crate::Result;
use crate::engine::Engine;
use crate::lower::{delete_signal, write_slot};

/// Clears page by page up to the signal that was the last when the call began.
pub(super) async fn clear<R, H>(engine: &Engine<R, H>, key: &CorrelationKey) -> Result<u64> {
    let reads = &engine.reads;
    let last = reads.slot(key, Read::Latest).await?.slot.tail;
    let mut cleared = 0;
    let mut turn = None;
    loop {
        // Durable: that there is nothing is an answer, too.
        let gathered = reads.slot(key, Read::Durable).await?;
        let head = gathered.slot.head;
        let mut page = reads.signals_page(key, head, Read::Durable).await?;
        // What is newer than the slot is not expected by the commit: where there is no slot, one may have come and gone.
        let end = last.min(gathered.slot.tail);
        page.retain(|(number, _)| *number < end);
        let Some((oldest_kept, _)) = page.last().map(|(number, signal)| (number + 1, signal)) else {
            return Ok(cleared);
        };
        let mut commit = Commit::default();
        let next = gathered.slot.without_oldest(oldest_kept.saturating_sub(head), engine.drawn());
        write_slot(&mut commit, reads.keys.slot(key), &gathered, &next);
        for (number, signal) in &page {
            delete_signal(&mut commit, &reads.keys, key, *number, signal);
        }
        if engine.throw_away(commit).await? {
            cleared += page.len() as u64;
            discard(engine, page.iter().map(|(_, signal)| &signal.payload)).await;
        } else if turn.is_none() {
            turn = Some(engine.turns.take(reads.keys.slot(key)).await);
        }
    }
}

async fn discard<'v, R, H>(engine: &Engine<R, H>, values: impl Iterator<Item = &'v Value>) {
    for value in values {
        engine.reads.objects.discard(value).await;
    }
}

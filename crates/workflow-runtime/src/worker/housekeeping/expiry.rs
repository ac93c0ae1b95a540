//! Forgetting signals that nobody waited for in time, and idempotency ids that nobody repeats any more.

use std::time::Duration;

use bytes::Bytes;
use tracing::{debug, warn};
use workflow_effects::{Commit, Read, ScanRange, SignalExpiry, decode_signal_expiry};

use crate::Result;
use crate::engine::Engine;
use crate::lower::write_slot;

/// Rows that are read at once.
const PAGE: usize = 256;
/// The pauses between two passes: as long as signals are kept, within these.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Forgets what is over, now and again later, for ever.
pub(super) async fn forget_signals<R, H>(engine: &Engine<R, H>) {
    let pause = engine.settings.signal_ttl.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    loop {
        if let Err(error) = pass(engine).await {
            warn!(error = &error as &dyn std::error::Error, "signals could not be forgotten");
        }
        engine.clock.sleep(pause).await;
    }
}

/// Forgets every signal whose time is over. What is not over is not read, but for the first of it.
async fn pass<R, H>(engine: &Engine<R, H>) -> Result<()> {
    let reads = &engine.reads;
    let mut pages = reads.pages(ScanRange::first(reads.keys.signal_expiries_prefix(), PAGE), Read::Latest);
    while let Some(page) = pages.next().await? {
        for (row, bytes) in &page {
            // One that does not parse sorts anywhere, and must not keep the others from being looked at.
            if reads.keys.parse_signal_expiry(row).is_some_and(|due| due > engine.clock.now()) {
                return Ok(());
            }
            let forgotten = match decode_signal_expiry(bytes) {
                Ok(expiry) => forget(engine, row, bytes, &expiry).await,
                Err(error) => Err(error.into()),
            };
            match forgotten {
                Ok(()) => {}
                // One that does not read keeps no other from being forgotten.
                Err(error) if error.is_permanent() => {
                    warn!(error = &error as &dyn std::error::Error, "corrupt signal");
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Forgets one signal: what is left of it in the buffer, its idempotency id, and the row that says so. A buffer is
/// emptied from its beginning only, so one that an older signal is in front of waits for a later pass.
async fn forget<R, H>(engine: &Engine<R, H>, row: &Bytes, bytes: &Bytes, expiry: &SignalExpiry) -> Result<()> {
    let (reads, key) = (&engine.reads, &expiry.key);
    loop {
        let gathered = reads.slot_and_oldest(key).await?;
        let is_buffered =
            expiry.number.is_some_and(|number| gathered.slot.head <= number && number < gathered.slot.tail);
        let oldest = gathered.oldest.as_ref().filter(|(_, oldest)| oldest.id == expiry.signal);
        if is_buffered && oldest.is_none() && reads.is_buffered(expiry).await? {
            return Ok(());
        }
        let mut commit = Commit { expect: vec![(row.clone(), Some(bytes.clone()))], ..Commit::default() };
        commit.deletes.push(row.clone());
        if let Some(id) = &expiry.idempotency_id {
            let id = reads.keys.signal_id(key, id);
            commit.expect.push((id.clone(), reads.kv.get(&id, Read::Latest).await?));
            commit.deletes.push(id);
        }
        if let Some((number, _)) = oldest {
            let next = gathered.slot.without_oldest(1, engine.drawn());
            write_slot(&mut commit, reads.keys.slot(key), &gathered, &next);
            commit.deletes.push(reads.keys.buffered_signal(key, *number));
        }
        if engine.throw_away(commit).await? {
            debug!("signal forgotten");
            if let Some((_, signal)) = oldest {
                reads.objects.discard(&signal.payload).await;
            }
            return Ok(());
        }
        // Somebody has changed the slot, or forgotten the signal.
        if reads.kv.get(row, Read::Latest).await?.as_ref() != Some(bytes) {
            return Ok(());
        }
    }
}

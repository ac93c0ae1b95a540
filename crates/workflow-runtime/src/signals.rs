//! Slots of correlation keys as they are read, and whose turn it is when several want to change one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use tokio::sync::OwnedMutexGuard;
use workflow_core::{
    CorrelationKey, Event, KeyState, Outcome, Phase, Remains, Run, RunId, Signal, SignalId, Slot, WaitKey, Waiter, When,
};
use workflow_effects::{
    BufferedSignal, Read, ScanRange, SignalExpiry, SignalObjectsRow, decode_buffered_signal, decode_signal_objects_row,
    decode_slot,
};

use crate::reads::RunReads;
use crate::{Error, Result};

/// Buffered signals that are read at once.
const SIGNALS_PAGE: usize = 256;

/// A slot as it was read: the value, the bytes that a commit has to expect, and the signal that is next.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatheredSlot {
    pub(crate) slot: Slot,
    pub(crate) bytes: Option<Bytes>,
    /// The oldest buffered signal with its number.
    pub(crate) oldest: Option<(u64, BufferedSignal)>,
    /// The row of that signal's object, if it has one, as it was read for whoever takes the signal.
    pub(crate) objects: Option<SignalObjectsRow>,
    /// What that means to the run that wants to wait, if one does.
    state: Option<KeyState>,
}

/// The slots that a decision is about.
pub(crate) type GatheredSlots = BTreeMap<CorrelationKey, GatheredSlot>;

impl RunReads {
    /// Reads the slot of `key`, for who takes no signal from it. Whoever commits on it may read the latest; whoever tells
    /// what is buffered, or that nothing is, may not: a signal that is being taken comes back when a crash undoes that.
    pub(crate) async fn slot(&self, key: &CorrelationKey, read: Read) -> Result<GatheredSlot> {
        let bytes = self.kv.get(&self.keys.slot(key), read).await?;
        Ok(GatheredSlot { slot: decode_slot(key, bytes.as_deref())?, bytes, ..GatheredSlot::default() })
    }

    /// Reads the slot of `key` and the signal that is next there.
    pub(crate) async fn slot_and_oldest(&self, key: &CorrelationKey) -> Result<GatheredSlot> {
        let mut gathered = self.slot(key, Read::Latest).await?;
        if gathered.slot.buffered() > 0 {
            // Between the two reads it may have been taken away: then the commit on this slot is refused.
            let head = gathered.slot.head;
            gathered.oldest = self.signal(key, head).await?.map(|signal| (head, signal));
        }
        Ok(gathered)
    }

    async fn signal(&self, key: &CorrelationKey, number: u64) -> Result<Option<BufferedSignal>> {
        let row = self.kv.get(&self.keys.buffered_signal(key, number), Read::Latest).await?;
        Ok(row.map(|row| decode_buffered_signal(key, &row)).transpose()?)
    }

    /// Whether the signal that is to be forgotten is still in the buffer. Its number may be another's by now.
    pub(crate) async fn is_buffered(&self, expiry: &SignalExpiry) -> Result<bool> {
        let Some(number) = expiry.number else { return Ok(false) };
        self.is_there(&expiry.key, number, expiry.signal).await
    }

    /// Reads up to a page of the signals that are buffered in `slot` of `key`, oldest first, with their numbers.
    pub(crate) async fn signals_page(
        &self,
        key: &CorrelationKey,
        from: u64,
        read: Read,
    ) -> Result<Vec<(u64, BufferedSignal)>> {
        let prefix = self.keys.buffered_signals_prefix(key);
        let after = from.checked_sub(1).map(|before| self.keys.buffered_signal(key, before));
        let page = self.kv.scan(&ScanRange { after, ..ScanRange::first(prefix, SIGNALS_PAGE) }, read).await?;
        let signals = page.entries.iter().map(|(row, bytes)| {
            let number = self.keys.parse_buffered_signal(row).unwrap_or(from);
            Ok((number, decode_buffered_signal(key, bytes)?))
        });
        signals.collect()
    }

    /// The signals that are buffered for `key`, oldest first, their payloads fetched one by one.
    pub(crate) fn buffered_signals(
        self,
        key: CorrelationKey,
    ) -> impl Stream<Item = Result<crate::BufferedSignal>> + Send + use<> {
        let (reads, of) = (self.clone(), key.clone());
        let pages = stream::try_unfold((self, key, Some(0)), |(reads, key, from)| async move {
            let Some(from) = from else { return Ok::<_, Error>(None) };
            // Below the head there are only rows that are gone, perhaps many.
            let from = reads.slot(&key, Read::Durable).await?.slot.head.max(from);
            let page = reads.signals_page(&key, from, Read::Durable).await?;
            let next = page.last().map(|(number, _)| number + 1);
            Ok(Some((stream::iter(page.into_iter().map(Ok)), (reads, key, next))))
        });
        pages.try_flatten().try_filter_map(move |(number, signal)| {
            let (reads, key) = (reads.clone(), of.clone());
            async move {
                match reads.shown(&signal).await {
                    // Taken meanwhile, with its payload.
                    Err(_) if !reads.is_there(&key, number, signal.id).await? => Ok(None),
                    shown => shown.map(Some),
                }
            }
        })
    }

    async fn shown(&self, signal: &BufferedSignal) -> Result<crate::BufferedSignal> {
        Ok(crate::BufferedSignal {
            payload: self.objects.get(&signal.payload).await?.to_vec(),
            sent_at: signal.sent_at.into(),
            expires_at: signal.expires_at.into(),
            id: signal.idempotency_id.clone(),
        })
    }

    /// Whether `signal` is still in the buffer under its number.
    async fn is_there(&self, key: &CorrelationKey, number: u64, signal: SignalId) -> Result<bool> {
        Ok(self.signal(key, number).await?.is_some_and(|there| there.id == signal))
    }

    /// Reads the slots that a decision on `run` may be about: of the keys that it waits for, and of those that `event`
    /// wants to wait for.
    pub(crate) async fn slots(&self, run_id: &RunId, run: &Run, event: &Event) -> Result<GatheredSlots> {
        let mut slots = GatheredSlots::new();
        if let Run::Active(active) = run
            && let Phase::Waiting { keys, .. } = &active.phase
        {
            for key in keys {
                slots.insert(key.clone(), self.slot(key, Read::Latest).await?);
            }
        }
        for key in begins_to_wait_for(run, event) {
            let mut gathered = self.slot_and_oldest(key).await?;
            gathered.objects = self.objects_of(gathered.oldest.as_ref().map(|(_, oldest)| oldest)).await?;
            gathered.state = Some(self.state_for(run_id, key, &gathered).await?);
            slots.insert(key.clone(), gathered);
        }
        Ok(slots)
    }

    async fn objects_of(&self, signal: Option<&BufferedSignal>) -> Result<Option<SignalObjectsRow>> {
        let Some(signal) = signal.filter(|signal| signal.payload.object().is_some()) else { return Ok(None) };
        let row = self.kv.get(&self.keys.signal_objects(signal.id), Read::Latest).await?;
        Ok(row.map(|row| decode_signal_objects_row(&row)).transpose()?)
    }

    /// What a slot holds for a run that begins to wait.
    async fn state_for(&self, run_id: &RunId, key: &CorrelationKey, gathered: &GatheredSlot) -> Result<KeyState> {
        if let Some(waiter) = &gathered.slot.waiter
            && waiter.run_id != *run_id
            && self.still_waits(waiter, key).await?
        {
            return Ok(KeyState::Taken);
        }
        Ok(match &gathered.oldest {
            Some((_, BufferedSignal { id, payload, .. })) => {
                KeyState::Buffered(Signal { id: *id, key: key.clone(), payload: payload.clone() })
            }
            None => KeyState::Free,
        })
    }

    /// Whether the waiter that a slot names is one. It is, unless somebody took its record away: then nobody is kept
    /// from waiting by it. One whose record does not decode may be.
    pub(crate) async fn still_waits(&self, waiter: &Waiter, key: &CorrelationKey) -> Result<bool> {
        let gathered = match self.gather(&waiter.run_id, Read::Latest).await {
            Err(error) if error.is_permanent() => return Ok(true),
            gathered => gathered?,
        };
        let Run::Active(run) = gathered.run else { return Ok(false) };
        let waits = matches!(&run.phase, Phase::Waiting { keys, .. } if keys.contains(key));
        Ok(waits && run.incarnation == waiter.incarnation && run.step == waiter.step)
    }
}

/// The keys that the run may begin to wait for with `event`: those that a step's answer names, and those that the run
/// waited for when it was cancelled.
fn begins_to_wait_for<'a>(run: &'a Run, event: &'a Event) -> Vec<&'a CorrelationKey> {
    match (event, run) {
        (Event::StepReturned(returned), _) => match &returned.outcome {
            Outcome::Continue { when: When::OnSignal { keys, .. }, .. } => keys.iter().map(|wait| &wait.key).collect(),
            _ => Vec::new(),
        },
        (Event::RedriveRequested(redrive), Run::Ended(ended)) if redrive.from.is_none() => match &ended.remains {
            Some(Remains { phase: Phase::Waiting { keys, .. }, .. }) => keys.iter().collect(),
            Some(_) | None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Tells an event with which `run` may begin to wait what the slots hold that were read for it.
pub(crate) fn tell(run: &Run, event: &mut Event, slots: &GatheredSlots) {
    let read = |key: &CorrelationKey| {
        let state = slots.get(key).and_then(|gathered| gathered.state.clone())?;
        Some(WaitKey { key: key.clone(), state })
    };
    let told: Vec<WaitKey> = begins_to_wait_for(run, event).into_iter().filter_map(read).collect();
    match event {
        Event::StepReturned(returned) => {
            if let Outcome::Continue { when: When::OnSignal { keys, .. }, .. } = &mut returned.outcome {
                *keys = told;
            }
        }
        Event::RedriveRequested(redrive) => redrive.keys = told,
        _ => {}
    }
}

/// Parses a user's correlation key; the error shows its beginning.
pub(crate) fn parse_correlation_key(key: &str) -> Result<CorrelationKey> {
    CorrelationKey::parse(key).map_err(|rule| Error::InvalidCorrelationKey { key: shown_key(key), rule })
}

/// A correlation key, cut to a readable length.
pub(crate) fn shown_key(key: &str) -> String {
    key.chars().take(64).collect()
}

/// Who was refused once queues up for what was contended, first come first served, from the read to the commit. It
/// costs nothing while nobody is refused, and nothing is lost without it: the expectations of the commits decide.
#[derive(Default)]
pub(crate) struct Turns(Mutex<BTreeMap<Bytes, Arc<tokio::sync::Mutex<()>>>>);

/// A turn, until it is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    key: Bytes,
    held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits for the turn to change what is at `key`.
    pub(crate) async fn take(&self, key: Bytes) -> Turn<'_> {
        let queue = self.lock().entry(key.clone()).or_default().clone();
        // Made first, so that a caller who gives up leaves nothing behind.
        let mut turn = Turn { turns: self, key, held: None };
        turn.held = Some(queue.lock_owned().await);
        turn
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bytes, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queues = self.turns.lock();
        self.held = None;
        if queues.get(&self.key).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_key_is_changed_by_one_at_a_time_and_forgotten_with_the_last() {
        let turns = Turns::default();
        let first = turns.take(Bytes::from_static(b"a")).await;
        let mut second = Box::pin(turns.take(Bytes::from_static(b"a")));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(turns.take(Bytes::from_static(b"b")).now_or_never().is_some());
        drop(first);
        drop(second.await);
        assert!(turns.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_gives_up_waiting_keeps_nobody_waiting() {
        let turns = Turns::default();
        let first = turns.take(Bytes::from_static(b"a")).await;
        let mut second = Box::pin(turns.take(Bytes::from_static(b"a")));
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        drop(first);
        assert!(turns.lock().is_empty());
    }
}

//! Signals: once taken, one is in the buffer or with a run, and from the buffer it goes to a run, once, or expires.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use workflow_core::{ActiveRun, CorrelationKey, Incarnation, Phase, Run, SignalId};
use workflow_effects::{BufferedSignal, StoredKey, decode_buffered_signal, decode_signal_id};

use super::buffers::{Arrival, Buffers, Gone};
use super::calls::Wishes;
use crate::simulation::answer::Answer;
use crate::simulation::committed::{Change, Landed, Row};
use crate::simulation::invariants::Now;

/// The signals so far.
pub(super) struct Signals {
    ttl: Duration,
    /// By correlation key and idempotency id.
    taken: BTreeMap<(String, String), SignalId>,
    /// The step that each signal went to.
    received: BTreeMap<SignalId, (Incarnation, u32)>,
    buffers: Buffers,
}

impl Signals {
    pub(super) fn new(ttl: Duration) -> Self {
        let (taken, received, buffers) = Default::default();
        Self { ttl, taken, received, buffers }
    }

    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// What a run has received.
    pub(super) fn receive(&mut self, run: &Run) -> Result<(), String> {
        let Run::Active(run) = run else { return Ok(()) };
        let Some(signal) = &run.signal else { return Ok(()) };
        let to = (run.incarnation, run.step);
        if self.buffers.has_lost(signal.id) {
            let (key, step) = (&signal.key, run.step);
            return Err(format!("a signal for {key} is received by step {step}, and was thrown away before"));
        }
        match *self.received.entry(signal.id).or_insert(to) {
            (incarnation, step) if (incarnation, step) != to => {
                let who = if incarnation == run.incarnation { "it" } else { "another" };
                Err(format!(
                    "a signal for {} is received by step {} and was by step {step} of {who}",
                    signal.key, run.step
                ))
            }
            _ => Ok(()),
        }
    }

    /// Nobody waits for a key while a signal for it is in the buffer.
    pub(super) fn check_waits(&self, run: &Run, now: &Now<'_>) -> Result<(), String> {
        let Run::Active(ActiveRun { phase: Phase::Waiting { keys, .. }, .. }) = run else { return Ok(()) };
        let is_buffered = |key: &&CorrelationKey| {
            let rows = now.store.entries_below(now.store.keys().buffered_signals_prefix(key));
            rows.count() > 0
        };
        match keys.iter().find(is_buffered) {
            Some(key) => Err(format!("it waits for {key}, and a signal for it is buffered")),
            None => Ok(()),
        }
    }

    pub(super) fn landed(&mut self, landed: &Landed, clears: &Wishes, now: &Now<'_>) -> Result<(), String> {
        for change in &landed.changes {
            match &change.row {
                Row::Stored(StoredKey::BufferedSignal(key, _)) => {
                    self.check_gone(key, change, landed.number, clears, now)?;
                    self.check_buffered(key, change, landed.number, now)?;
                }
                Row::Stored(StoredKey::SignalId(key, id)) if change.after.is_some() => {
                    self.note(key, id, change, landed)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A buffered signal goes when a run has it, when its time is over, or when somebody throws it away.
    fn check_gone(
        &mut self,
        key: &CorrelationKey,
        change: &Change,
        number: u64,
        clears: &Wishes,
        now: &Now<'_>,
    ) -> Result<(), String> {
        let Some(signal) = buffered(key, &change.before) else { return Ok(()) };
        let gone = if self.received.contains_key(&signal.id) {
            Gone::Received
        } else if signal.sent_at.after(self.ttl) <= now.time {
            Gone::Over
        } else {
            Gone::Thrown
        };
        self.buffers.leave(key.as_str(), signal.id, gone, number);
        match gone == Gone::Thrown && !clears.is_open(key.as_str()) {
            true => Err(format!("a signal that was buffered for {key} goes, and no run has it")),
            false => Ok(()),
        }
    }

    fn check_buffered(
        &mut self,
        key: &CorrelationKey,
        change: &Change,
        number: u64,
        now: &Now<'_>,
    ) -> Result<(), String> {
        let Some(signal) = buffered(key, &change.after) else { return Ok(()) };
        let arrival = Arrival {
            id: signal.id,
            payload: now.store.value(&signal.payload),
            sent_at: signal.sent_at,
            idempotency_id: signal.idempotency_id,
        };
        self.buffers.arrive(key.as_str(), arrival, number);
        match now.store.waited_for().contains(&key.to_string()) {
            true => Err(format!("a signal for {key} is buffered, and a run waits for it")),
            false => Ok(()),
        }
    }

    /// A signal is taken by the commit that puts it somewhere.
    fn note(&mut self, key: &CorrelationKey, id: &str, change: &Change, landed: &Landed) -> Result<(), String> {
        let Some(signal) = change.after.as_ref().and_then(|bytes| decode_signal_id(bytes).ok()) else { return Ok(()) };
        self.taken.insert((key.to_string(), id.to_owned()), signal);
        let is_of = |change: &Change| {
            let Row::Stored(StoredKey::BufferedSignal(key, _)) = &change.row else { return false };
            buffered(key, &change.after).is_some_and(|buffered| buffered.id == signal)
        };
        match self.received.contains_key(&signal) || landed.changes.iter().any(is_of) {
            true => Ok(()),
            false => Err(format!("signal {id} for {key} is taken, and is nowhere")),
        }
    }

    pub(super) fn check_answer(&self, key: &str, id: u64, answer: &Answer) -> Result<(), String> {
        let taken = self.taken.get(&(key.to_owned(), id.to_string()));
        let is_so = match answer {
            Answer::Delivered => taken.is_some_and(|signal| self.received.contains_key(signal)),
            Answer::Buffered => taken.is_some_and(|signal| self.buffers.has_known(*signal)),
            Answer::Duplicate => taken.is_some(),
            _ => true,
        };
        if is_so { Ok(()) } else { Err("that is not durable".to_owned()) }
    }
}

/// The buffered signal that a row holds, if it holds one.
fn buffered(key: &CorrelationKey, row: &Option<Bytes>) -> Option<BufferedSignal> {
    row.as_ref().and_then(|bytes| decode_buffered_signal(key, bytes).ok())
}

//! Signals: once taken, one is in the buffer or with a run, and from the buffer it goes to a run, once, or expires.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use workflow_core::{ActiveRun, CorrelationKey, Incarnation, Phase, Run, SignalId};
use workflow_effects::{BufferedSignal, StoredKey, decode_buffered_signal, decode_signal_id};

use crate::simulation::committed::{Change, Landed, Row};
use crate::simulation::invariants::Now;
use crate::simulation::op::Answer;

/// The signals so far.
pub(super) struct Signals {
    ttl: Duration,
    /// By correlation key and idempotency id.
    taken: BTreeMap<(String, String), SignalId>,
    /// The step that each signal went to.
    received: BTreeMap<SignalId, (Incarnation, u32)>,
    /// Those that were ever in a buffer.
    buffered: BTreeMap<SignalId, BufferedSignal>,
}

impl Signals {
    pub(super) fn new(ttl: Duration) -> Self {
        let (taken, received, buffered) = Default::default();
        Self { ttl, taken, received, buffered }
    }

    /// What a run has received.
    pub(super) fn receive(&mut self, run: &Run) -> Result<(), String> {
        let Run::Active(run) = run else { return Ok(()) };
        let Some(signal) = &run.signal else { return Ok(()) };
        let to = (run.incarnation, run.step);
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

    pub(super) fn landed(&mut self, landed: &Landed, now: &Now<'_>) -> Result<(), String> {
        for change in &landed.changes {
            match &change.row {
                Row::Stored(StoredKey::BufferedSignal(key, _)) => self.check_buffered(key, change, now)?,
                Row::Stored(StoredKey::SignalId(key, id)) if change.after.is_some() => {
                    self.note(key, id, change, landed)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A buffered signal goes when a run has it, or when its time is over.
    fn check_buffered(&mut self, key: &CorrelationKey, change: &Change, now: &Now<'_>) -> Result<(), String> {
        let read = |bytes: &Option<Bytes>| bytes.as_ref().and_then(|bytes| decode_buffered_signal(key, bytes).ok());
        let (before, after) = (read(&change.before), read(&change.after));
        if let Some(signal) = before {
            let is_over = signal.sent_at.after(self.ttl) <= now.time;
            if !self.received.contains_key(&signal.id) && !is_over {
                return Err(format!("a signal that was buffered for {key} goes, and no run has it"));
            }
        }
        let Some(signal) = after else { return Ok(()) };
        self.buffered.insert(signal.id, signal);
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
            let buffered = change.after.as_ref().and_then(|bytes| decode_buffered_signal(key, bytes).ok());
            buffered.is_some_and(|buffered| buffered.id == signal)
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
            Answer::Buffered => taken.is_some_and(|signal| self.buffered.contains_key(signal)),
            Answer::Duplicate => taken.is_some(),
            _ => true,
        };
        if is_so { Ok(()) } else { Err(format!("signal {id} for {key} is answered {answer}, and is not durable")) }
    }
}

//! Signals: sent, received, kept.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::{Model, Verdict};
use crate::sim::Signal;

/// What was sent and what was received.
pub(super) struct Signals {
    ttl: Duration,
    sent: BTreeMap<String, Sent>,
    /// Per run, by its incarnation, and step: what it was called with.
    received: BTreeMap<(String, u32, u32), Option<Signal>>,
    /// How often each run is gone.
    incarnations: BTreeMap<String, u32>,
    /// Somebody may have received a signal and not lived to see it.
    may_be_dropped: bool,
}

/// The signals that were sent for a key, in order.
struct Sent {
    payloads: Vec<Vec<u8>>,
    first_at: SystemTime,
}

impl Signals {
    pub(super) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            may_be_dropped: false,
        }
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.sent.keys().cloned().collect()
    }

    pub(super) fn sent(&mut self, key: &str, payload: &[u8], now: SystemTime) {
        let sent = self.sent.entry(key.to_owned()).or_insert_with(|| Sent { payloads: Vec::new(), first_at: now });
        sent.payloads.push(payload.to_vec());
    }

    pub(super) fn gone(&mut self, run_id: &str) {
        *self.incarnations.entry(run_id.to_owned()).or_default() += 1;
    }

    pub(super) fn is_gone(&self, run_id: &str) -> bool {
        self.incarnations.contains_key(run_id)
    }

    pub(super) fn may_be_dropped(&mut self) {
        self.may_be_dropped = true;
    }

    /// An attempt of a step is called with `signal`: all of them are with the same.
    pub(super) fn received(&mut self, run_id: &str, step: u32, signal: Option<&Signal>) -> Verdict {
        let incarnation = self.incarnations.get(run_id).copied().unwrap_or(0);
        let at = (run_id.to_owned(), incarnation, step);
        let first = self.received.entry(at).or_insert_with(|| signal.cloned());
        if first.as_ref() != signal {
            return Err(format!("step {step} of {run_id} is called with {signal:?}, and was with {first:?} before"));
        }
        Ok(())
    }

    /// The payloads that each run has received for `key`, by step.
    fn received_for(&self, key: &str) -> BTreeMap<(&str, u32), Vec<&[u8]>> {
        let mut by_run: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
        for ((run_id, incarnation, _), signal) in &self.received {
            if let Some(signal) = signal.as_ref().filter(|signal| signal.key == key) {
                by_run.entry((run_id.as_str(), *incarnation)).or_default().push(&signal.payload);
            }
        }
        by_run
    }
}

impl Model {
    /// Faults may have used up all attempts of a step that had received a signal.
    pub(in crate::property) fn signals_may_be_dropped(&mut self) {
        self.signals.may_be_dropped();
    }

    /// Everything rests, and these are the signals for `key` that nobody has received: each signal was received once, in
    /// order, or is kept.
    pub(in crate::property) fn kept(&self, key: &str, kept: &[Vec<u8>], now: SystemTime) -> Verdict {
        let Some(sent) = self.signals.sent.get(key) else { return Ok(()) };
        if !sent.payloads.ends_with(kept) {
            return Err(format!("signals for {key:?} are kept that are not the last sent: {kept:?}"));
        }
        let taken = &sent.payloads[..sent.payloads.len() - kept.len()];
        let mut left: Vec<&[u8]> = taken.iter().map(Vec::as_slice).collect();
        for ((run_id, _), received) in self.signals.received_for(key) {
            if !is_subsequence(&received, taken) {
                return Err(format!("{run_id} has received signals for {key:?} that were not sent so: {received:?}"));
            }
            for payload in received {
                let Some(at) = left.iter().position(|left| *left == payload) else {
                    return Err(format!("a signal for {key:?} is received twice: {payload:?}"));
                };
                left.swap_remove(at);
            }
        }
        let may_have_expired = now.duration_since(sent.first_at).unwrap_or_default() >= self.signals.ttl;
        if left.is_empty() || may_have_expired || self.signals.may_be_dropped {
            return Ok(());
        }
        Err(format!("signals for {key:?} are lost: {left:?}"))
    }
}

fn is_subsequence(part: &[&[u8]], whole: &[Vec<u8>]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|payload| rest.any(|sent| sent == payload))
}

//! The key space: which key holds what.
//!
//! A queue name, a run id and a memo key come from users. Whatever follows one of them in a key must not be mistaken
//! for a part of it, so each is followed by a `/` that it cannot hold: run ids have none, queue names are escaped, memo
//! keys come last. Numbers are big-endian and of fixed width.

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, RunId, SignalId, Timestamp};

/// What every key of the runtime begins with. Application keys lie outside.
pub const RESERVED_PREFIX: &[u8] = b"workflow/";

/// Whether `key` is the runtime's own.
pub fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(RESERVED_PREFIX)
}

/// The keys of one queue name, all below `workflow/{queue name}/`. Runtimes of other names never see them.
///
/// ```
/// use workflow_core::RunId;
/// use workflow_effects::KeySpace;
///
/// let keys = KeySpace::new("workflow-steps");
/// let run = RunId::parse("order-17")?;
/// assert_eq!(keys.run(&run), "workflow/workflow-steps/run/order-17");
/// assert_eq!(keys.parse_run(&keys.run(&run)), Some(run));
/// # Ok::<(), workflow_core::ParseRunIdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpace {
    base: Bytes,
}

/// Whose memo an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoScope {
    /// The run's, shared by its steps.
    Run,
    /// The step's with this number.
    Step(u32),
}

impl KeySpace {
    /// The keys of `queue_name`.
    pub fn new(queue_name: &str) -> Self {
        let mut base = RESERVED_PREFIX.to_vec();
        for byte in queue_name.bytes() {
            match byte {
                b'/' => base.extend(b"%2F"),
                b'%' => base.extend(b"%25"),
                byte => base.push(byte),
            }
        }
        base.push(b'/');
        Self { base: base.into() }
    }

    /// The record of a run.
    pub fn run(&self, run: &RunId) -> Bytes {
        self.key(&[b"run/", run.as_str().as_bytes()])
    }

    /// What the records of all runs begin with.
    pub fn runs_prefix(&self) -> Bytes {
        self.key(&[b"run/"])
    }

    /// The run whose record `key` holds, if it is such a key of this queue name.
    pub fn parse_run(&self, key: &[u8]) -> Option<RunId> {
        let id = key.strip_prefix(&*self.runs_prefix())?;
        RunId::parse(std::str::from_utf8(id).ok()?).ok()
    }

    /// What a run was submitted with.
    pub fn spec(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(b"spec/", run, incarnation, &[])
    }

    /// A memo entry. `key` is any text, of any length.
    pub fn memo(&self, run: &RunId, incarnation: Incarnation, scope: MemoScope, key: &str) -> Bytes {
        match scope {
            MemoScope::Run => self.owned(b"memo/", run, incarnation, &[b"/r/", key.as_bytes()]),
            MemoScope::Step(step) => {
                self.owned(b"memo/", run, incarnation, &[b"/s", &step.to_be_bytes(), b"/", key.as_bytes()])
            }
        }
    }

    /// The terminal notification that is owed for an end of a run.
    pub fn notification(&self, run: &RunId, incarnation: Incarnation, redrive: u32) -> Bytes {
        self.owned(b"notification/", run, incarnation, &[b"/", &redrive.to_be_bytes()])
    }

    /// How a step of a run ended.
    pub fn history(&self, run: &RunId, incarnation: Incarnation, step: u32) -> Bytes {
        self.owned(b"history/", run, incarnation, &[b"/", &step.to_be_bytes()])
    }

    /// What the history of a run begins with; its rows are in order of the steps.
    pub fn history_prefix(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(b"history/", run, incarnation, &[b"/"])
    }

    /// The step that the row of a history at `key` tells of.
    pub fn parse_history_step(&self, key: &[u8]) -> Option<u32> {
        let (_, step) = key.split_last_chunk()?;
        Some(u32::from_be_bytes(*step))
    }

    /// The mark that a run has, or may have, objects.
    pub fn objects(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(b"objects/", run, incarnation, &[])
    }

    /// The mark that a signal has, or may have, an object.
    pub fn signal_objects(&self, signal: SignalId) -> Bytes {
        self.key(&[b"objects-signal/", &signal.value().to_be_bytes()])
    }

    /// Who waits for a correlation key, or what is buffered for it.
    pub fn slot(&self, key: &CorrelationKey) -> Bytes {
        self.key(&[b"signal/", key.as_str().as_bytes()])
    }

    /// A buffered signal. `number` is its place in the buffer of its key.
    pub fn buffered_signal(&self, key: &CorrelationKey, number: u64) -> Bytes {
        self.sized(b"signal-item/", key, &number.to_be_bytes())
    }

    /// The number of the buffered signal whose row `key` is.
    pub fn parse_buffered_signal(&self, key: &[u8]) -> Option<u64> {
        let (_, number) = key.split_last_chunk()?;
        Some(u64::from_be_bytes(*number))
    }

    /// What the signals that are buffered for a key begin with; they are in order of arrival.
    pub fn buffered_signals_prefix(&self, key: &CorrelationKey) -> Bytes {
        self.sized(b"signal-item/", key, &[])
    }

    /// The mark that a signal with this idempotency id was taken.
    pub fn signal_id(&self, key: &CorrelationKey, id: &str) -> Bytes {
        self.sized(b"signal-id/", key, id.as_bytes())
    }

    /// What to forget of a signal at `time`.
    pub fn signal_expiry(&self, time: Timestamp, signal: SignalId) -> Bytes {
        self.key(&[b"signal-expiry/", &time.as_millis().to_be_bytes(), &signal.value().to_be_bytes()])
    }

    /// What all rows begin with that tell what to forget of signals; they are in order of time.
    pub fn signal_expiries_prefix(&self) -> Bytes {
        self.key(&[b"signal-expiry/"])
    }

    /// The time of the row at `key`, if it tells what to forget of a signal.
    pub fn parse_signal_expiry(&self, key: &[u8]) -> Option<Timestamp> {
        let (millis, _) = key.strip_prefix(&*self.signal_expiries_prefix())?.split_first_chunk()?;
        Some(Timestamp::from_millis(u64::from_be_bytes(*millis)))
    }

    /// The mark that a priority's queue is in use.
    pub fn priority(&self, priority: u32) -> Bytes {
        self.key(&[b"priority/", &priority.to_be_bytes()])
    }

    /// What the marks of all priorities begin with.
    pub fn priorities_prefix(&self) -> Bytes {
        self.key(&[b"priority/"])
    }

    /// The priority whose mark `key` is, if it is such a key of this queue name.
    pub fn parse_priority(&self, key: &[u8]) -> Option<u32> {
        let number = key.strip_prefix(&*self.priorities_prefix())?;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    }

    /// `{kind}{run}/{incarnation}{rest}`.
    fn owned(&self, kind: &[u8], run: &RunId, incarnation: Incarnation, rest: &[&[u8]]) -> Bytes {
        let incarnation = incarnation.value().to_be_bytes();
        let owner: [&[u8]; 4] = [kind, run.as_str().as_bytes(), b"/", &incarnation];
        self.key(&[&owner[..], rest].concat())
    }

    /// `{kind}{length}{correlation key}{rest}`: a correlation key may hold any byte, so its length says where it ends.
    fn sized(&self, kind: &[u8], key: &CorrelationKey, rest: &[u8]) -> Bytes {
        let key = key.as_str().as_bytes();
        let len = u16::try_from(key.len()).expect("a correlation key is at most a KiB long").to_be_bytes();
        self.key(&[kind, &len, key, rest])
    }

    fn key(&self, parts: &[&[u8]]) -> Bytes {
        let len = self.base.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut key = Vec::with_capacity(len);
        key.extend_from_slice(&self.base);
        for part in parts {
            key.extend_from_slice(part);
        }
        key.into()
    }
}

#[cfg(test)]
mod tests;

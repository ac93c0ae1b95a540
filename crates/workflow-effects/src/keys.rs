//! The key space: which key holds what.
//!
//! A queue name, a run id and a memo key come from users. Whatever follows one of them in a key must not be mistaken
//! for a part of it, so each is followed by a `/` that it cannot hold: run ids have none, queue names are escaped, memo
//! keys come last. Numbers are big-endian and of fixed width.

mod parse;

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, RunId, RunState, SignalId, Status, Timestamp};

pub use self::parse::{OwnedRow, StoredKey};

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

/// An order in which runs can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// The runs in this state, by the time since when they are. The place of a run that has ended stays until nothing
    /// of the run is left.
    State(RunState),
    /// All runs, by the time of their submission.
    Submitted,
    /// The runs with this header, which is told by a hash of its name and value, by the time of their submission.
    Header([u8; 32]),
}

/// A run in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The time by which it is sorted.
    pub at: Timestamp,
    /// The run.
    pub run_id: RunId,
    /// Which submission of it.
    pub incarnation: Incarnation,
}

impl Index {
    fn prefix(self) -> Vec<u8> {
        match self {
            Self::State(RunState::Active) => b"listed/active/".to_vec(),
            Self::State(RunState::Waiting) => b"listed/waiting/".to_vec(),
            Self::State(RunState::Paused) => b"listed/paused/".to_vec(),
            Self::State(RunState::Ended(Status::Succeeded)) => b"listed/succeeded/".to_vec(),
            Self::State(RunState::Ended(Status::Failed)) => b"listed/failed/".to_vec(),
            Self::State(RunState::Ended(Status::Cancelled)) => b"listed/cancelled/".to_vec(),
            Self::Submitted => b"submitted/".to_vec(),
            Self::Header(hash) => [b"header/", &hash[..], b"/"].concat(),
        }
    }
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

    /// What everything begins with that belongs to one submission of a run, its record aside.
    pub fn owned_prefix(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(run, incarnation, &[])
    }

    /// The submission that what is stored at `key` belongs to, if it is such a key of this queue name.
    pub fn parse_owned(&self, key: &[u8]) -> Option<(RunId, Incarnation)> {
        let rest = key.strip_prefix(&*self.key(&[b"of/"]))?;
        let end = rest.iter().position(|byte| *byte == b'/')?;
        let (run, incarnation) = (rest.get(..end)?, rest.get(end + 1..)?.first_chunk()?);
        Some((RunId::parse(std::str::from_utf8(run).ok()?).ok()?, Incarnation::new(u128::from_be_bytes(*incarnation))))
    }

    /// What a run was submitted with.
    pub fn spec(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(run, incarnation, &[b"spec"])
    }

    /// The outcome of the step in hand, written down before its commit.
    pub fn outcome(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(run, incarnation, &[b"outcome"])
    }

    /// A memo entry. `key` is any text, of any length.
    pub fn memo(&self, run: &RunId, incarnation: Incarnation, scope: MemoScope, key: &str) -> Bytes {
        match scope {
            MemoScope::Run => self.owned(run, incarnation, &[b"memo/r/", key.as_bytes()]),
            MemoScope::Step(step) => {
                self.owned(run, incarnation, &[b"memo/s", &step.to_be_bytes(), b"/", key.as_bytes()])
            }
        }
    }

    /// The terminal notification that is owed for an end of a run.
    pub fn notification(&self, run: &RunId, incarnation: Incarnation, redrive: u32) -> Bytes {
        self.owned(run, incarnation, &[b"notification/", &redrive.to_be_bytes()])
    }

    /// What the terminal notifications of a run begin with.
    pub fn notifications_prefix(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(run, incarnation, &[b"notification/"])
    }

    /// The job that an end of a run left among the dead, which a redrive from it has removed.
    pub fn left_job(&self, run: &RunId, incarnation: Incarnation, redrive: u32) -> Bytes {
        self.owned(run, incarnation, &[b"left/", &redrive.to_be_bytes()])
    }

    /// What the jobs of a run that redrives have removed begin with.
    pub fn left_jobs_prefix(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(run, incarnation, &[b"left/"])
    }

    /// How a step of a run ended.
    pub fn history(&self, run: &RunId, incarnation: Incarnation, step: u32) -> Bytes {
        self.owned(run, incarnation, &[b"history/", &step.to_be_bytes()])
    }

    /// What the history of a run begins with; its rows are in order of the steps.
    pub fn history_prefix(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.owned(run, incarnation, &[b"history/"])
    }

    /// The step that the row of a history at `key` tells of.
    pub fn parse_history_step(&self, key: &[u8]) -> Option<u32> {
        let (_, step) = key.split_last_chunk()?;
        Some(u32::from_be_bytes(*step))
    }

    /// The mark that a run has, or may have, objects.
    pub fn objects(&self, run: &RunId, incarnation: Incarnation) -> Bytes {
        self.key(&[b"objects/", run.as_str().as_bytes(), b"/", &incarnation.value().to_be_bytes()])
    }

    /// What the marks of all runs that have objects begin with.
    pub fn objects_prefix(&self) -> Bytes {
        self.key(&[b"objects/"])
    }

    /// The submission whose mark `key` is, if it is such a key of this queue name.
    pub fn parse_objects(&self, key: &[u8]) -> Option<(RunId, Incarnation)> {
        parse_owner(key.strip_prefix(&*self.objects_prefix())?)
    }

    /// The place of a run in an index.
    pub fn indexed(&self, index: Index, entry: &IndexEntry) -> Bytes {
        let IndexEntry { at, run_id, incarnation } = entry;
        let (at, incarnation) = (at.as_millis().to_be_bytes(), incarnation.value().to_be_bytes());
        self.key(&[&index.prefix(), &at, run_id.as_str().as_bytes(), b"/", &incarnation])
    }

    /// What the keys of an index begin with; they are in order of time.
    pub fn index_prefix(&self, index: Index) -> Bytes {
        self.key(&[&index.prefix()])
    }

    /// What the keys of an index are greater than that tell of `at` or later.
    pub fn index_from(&self, index: Index, at: Timestamp) -> Bytes {
        self.key(&[&index.prefix(), &at.as_millis().to_be_bytes()])
    }

    /// The run whose place in `index` is `key`, if it is such a key of this queue name.
    pub fn parse_indexed(&self, index: Index, key: &[u8]) -> Option<IndexEntry> {
        let (millis, rest) = key.strip_prefix(&*self.index_prefix(index))?.split_first_chunk()?;
        let (run_id, incarnation) = parse_owner(rest)?;
        Some(IndexEntry { at: Timestamp::from_millis(u64::from_be_bytes(*millis)), run_id, incarnation })
    }

    /// The mark that a signal has, or may have, an object.
    pub fn signal_objects(&self, signal: SignalId) -> Bytes {
        self.key(&[b"objects-signal/", &signal.value().to_be_bytes()])
    }

    /// What the marks of all signals that have objects begin with.
    pub fn signals_objects_prefix(&self) -> Bytes {
        self.key(&[b"objects-signal/"])
    }

    /// The signal whose mark `key` is, if it is such a key of this queue name.
    pub fn parse_signal_objects(&self, key: &[u8]) -> Option<SignalId> {
        let id = key.strip_prefix(&*self.signals_objects_prefix())?;
        Some(SignalId::new(u128::from_be_bytes(id.try_into().ok()?)))
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

    /// `of/{run}/{incarnation}/{rest}`.
    fn owned(&self, run: &RunId, incarnation: Incarnation, rest: &[&[u8]]) -> Bytes {
        let incarnation = incarnation.value().to_be_bytes();
        let owner: [&[u8]; 5] = [b"of/", run.as_str().as_bytes(), b"/", &incarnation, b"/"];
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

/// The submission that `{run}/{incarnation}` names.
fn parse_owner(owner: &[u8]) -> Option<(RunId, Incarnation)> {
    let (run, incarnation) = owner.split_last_chunk()?;
    let run_id = RunId::parse(std::str::from_utf8(run.strip_suffix(b"/")?).ok()?).ok()?;
    Some((run_id, Incarnation::new(u128::from_be_bytes(*incarnation))))
}

#[cfg(test)]
mod tests;

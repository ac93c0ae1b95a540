//! Reading keys back: whatever is stored below a queue name is told what it is by its key.

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, RunId, RunState, SignalId, Status, Timestamp};

use super::{Index, IndexEntry, KeySpace, MemoScope};

/// What is stored at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredKey {
    /// The record of a run.
    Run(RunId),
    /// A row of one submission of a run.
    Owned(RunId, Incarnation, OwnedRow),
    /// The mark that a run has, or may have, objects.
    Objects(RunId, Incarnation),
    /// The mark that a signal has, or may have, an object.
    SignalObjects(SignalId),
    /// The place of a run in an index.
    Indexed(Index, IndexEntry),
    /// The slot of a correlation key.
    Slot(CorrelationKey),
    /// A buffered signal, and its place in the buffer of its key.
    BufferedSignal(CorrelationKey, u64),
    /// The mark that a signal with this idempotency id was taken.
    SignalId(CorrelationKey, String),
    /// What to forget of a signal at a time.
    SignalExpiry(Timestamp, SignalId),
    /// The mark that a priority's queue is in use.
    Priority(u32),
}

/// A row of one submission of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedRow {
    /// What the run was submitted with.
    Spec,
    /// The outcome of the step in hand.
    Outcome,
    /// The memo entry with this key.
    Memo(MemoScope, String),
    /// The terminal notification of the end after so many redrives.
    Notification(u32),
    /// How this step ended.
    History(u32),
    /// The job that the end after so many redrives left among the dead.
    LeftJob(u32),
}

const STATES: [RunState; 6] = [
    RunState::Active,
    RunState::Waiting,
    RunState::Paused,
    RunState::Ended(Status::Succeeded),
    RunState::Ended(Status::Failed),
    RunState::Ended(Status::Cancelled),
];

impl KeySpace {
    /// What all keys of the queue name begin with.
    pub fn prefix(&self) -> Bytes {
        self.base.clone()
    }

    /// What is stored at `key`, if it is a key of this queue name.
    pub fn parse(&self, key: &[u8]) -> Option<StoredKey> {
        let (kind, rest) = split_at_slash(key.strip_prefix(&*self.base)?)?;
        match kind {
            b"run" => self.parse_run(key).map(StoredKey::Run),
            b"of" => {
                let (run_id, incarnation) = self.parse_owned(key)?;
                let row = parse_owned_row(key.strip_prefix(&*self.owned_prefix(&run_id, incarnation))?)?;
                Some(StoredKey::Owned(run_id, incarnation, row))
            }
            b"objects" => self.parse_objects(key).map(|(run_id, incarnation)| StoredKey::Objects(run_id, incarnation)),
            b"objects-signal" => self.parse_signal_objects(key).map(StoredKey::SignalObjects),
            b"listed" => STATES.iter().find_map(|state| self.parse_place(Index::State(*state), key)),
            b"submitted" => self.parse_place(Index::Submitted, key),
            b"header" => self.parse_place(Index::Header(*rest.first_chunk()?), key),
            b"signal" => text(rest).and_then(|key| CorrelationKey::parse(key).ok()).map(StoredKey::Slot),
            b"signal-item" => {
                let (key, number) = parse_sized(rest)?;
                Some(StoredKey::BufferedSignal(key, u64::from_be_bytes(number.try_into().ok()?)))
            }
            b"signal-id" => {
                let (key, id) = parse_sized(rest)?;
                Some(StoredKey::SignalId(key, text(id)?.to_owned()))
            }
            b"signal-expiry" => {
                let (millis, signal) = rest.split_first_chunk()?;
                let signal = SignalId::new(u128::from_be_bytes(signal.try_into().ok()?));
                let at = Timestamp::from_millis(u64::from_be_bytes(*millis));
                (self.signal_expiry(at, signal) == key).then_some(StoredKey::SignalExpiry(at, signal))
            }
            b"priority" => self.parse_priority(key).map(StoredKey::Priority),
            _ => None,
        }
    }

    /// Times are never beyond the last one: a place that is has not been written by [`KeySpace::indexed`].
    fn parse_place(&self, index: Index, key: &[u8]) -> Option<StoredKey> {
        let entry = self.parse_indexed(index, key).filter(|entry| self.indexed(index, entry) == key)?;
        Some(StoredKey::Indexed(index, entry))
    }
}

fn parse_owned_row(row: &[u8]) -> Option<OwnedRow> {
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    match split_at_slash(row) {
        None if row == b"spec" => Some(OwnedRow::Spec),
        None if row == b"outcome" => Some(OwnedRow::Outcome),
        Some((b"notification", redrive)) => number(redrive).map(OwnedRow::Notification),
        Some((b"history", step)) => number(step).map(OwnedRow::History),
        Some((b"left", redrive)) => number(redrive).map(OwnedRow::LeftJob),
        Some((b"memo", rest)) => {
            let (scope, key) = match rest.strip_prefix(b"r/") {
                Some(key) => (MemoScope::Run, key),
                None => {
                    let (step, key) = rest.strip_prefix(b"s")?.split_first_chunk()?;
                    (MemoScope::Step(u32::from_be_bytes(*step)), key.strip_prefix(b"/")?)
                }
            };
            Some(OwnedRow::Memo(scope, text(key)?.to_owned()))
        }
        _ => None,
    }
}

/// `{length}{correlation key}{rest}`
fn parse_sized(sized: &[u8]) -> Option<(CorrelationKey, &[u8])> {
    let (len, rest) = sized.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(u16::from_be_bytes(*len).into())?;
    Some((CorrelationKey::parse(text(key)?).ok()?, rest))
}

fn split_at_slash(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'/')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

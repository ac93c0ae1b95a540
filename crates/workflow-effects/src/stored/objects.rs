//! The rows that say that a run, or a signal, has or may have objects: since when, where, and whether anything names
//! them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{CorrelationKey, Incarnation, RunId, Timestamp};

use super::codec;
use super::parts::MillisV1;
use crate::error::{Error, Result};

/// The row of a run's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsRow {
    /// When the first object was about to be written.
    pub since: Timestamp,
    /// What the paths of the objects begin with.
    pub prefix: String,
    /// What becomes of them.
    pub state: ObjectsState,
}

/// What becomes of a run's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectsState {
    /// Nothing but the run's record names them, if it is there.
    Fresh,
    /// The submission of the run has named one.
    Named,
    /// Nothing names them, and they are being removed.
    Condemned,
}

/// The row of a signal's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalObjectsRow {
    /// When the object was about to be written.
    pub since: Timestamp,
    /// What the path of the object begins with.
    pub prefix: String,
    /// What becomes of it.
    pub state: SignalObjectsState,
}

/// What becomes of a signal's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalObjectsState {
    /// Nothing names it yet.
    Fresh,
    /// The signal was buffered.
    Buffered {
        /// For this key.
        key: CorrelationKey,
    },
    /// The signal has reached a run.
    Owned {
        /// The run.
        run_id: RunId,
        /// The submission of it.
        incarnation: Incarnation,
    },
    /// Nothing names it, and it is being removed.
    Condemned,
}

#[derive(Serialize, Deserialize)]
enum StoredObjects {
    V1(ObjectsV1),
}

#[derive(Serialize, Deserialize)]
struct ObjectsV1 {
    since: MillisV1,
    prefix: String,
    state: ObjectsStateV1,
}

#[derive(Serialize, Deserialize)]
enum ObjectsStateV1 {
    Fresh,
    Named,
    Condemned,
}

#[derive(Serialize, Deserialize)]
enum StoredSignalObjects {
    V1(SignalObjectsV1),
}

#[derive(Serialize, Deserialize)]
struct SignalObjectsV1 {
    since: MillisV1,
    prefix: String,
    state: SignalObjectsStateV1,
}

#[derive(Serialize, Deserialize)]
enum SignalObjectsStateV1 {
    Fresh,
    Buffered { key: String },
    Owned { run_id: String, incarnation: u128 },
    Condemned,
}

/// The bytes of the row of a run's objects.
pub fn encode_objects_row(row: &ObjectsRow) -> Bytes {
    let state = match row.state {
        ObjectsState::Fresh => ObjectsStateV1::Fresh,
        ObjectsState::Named => ObjectsStateV1::Named,
        ObjectsState::Condemned => ObjectsStateV1::Condemned,
    };
    codec::encode(&StoredObjects::V1(ObjectsV1 { since: row.since.into(), prefix: row.prefix.clone(), state }))
}

/// The row of the objects of run `run_id` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`], naming the run, when the bytes are no such row.
pub fn decode_objects_row(run_id: &RunId, bytes: &[u8]) -> Result<ObjectsRow> {
    let StoredObjects::V1(row) = codec::decode(bytes, || format!("the objects row of run {run_id}"))?;
    let state = match row.state {
        ObjectsStateV1::Fresh => ObjectsState::Fresh,
        ObjectsStateV1::Named => ObjectsState::Named,
        ObjectsStateV1::Condemned => ObjectsState::Condemned,
    };
    Ok(ObjectsRow { since: row.since.into(), prefix: row.prefix, state })
}

/// The bytes of the row of a signal's object.
pub fn encode_signal_objects_row(row: &SignalObjectsRow) -> Bytes {
    let state = match &row.state {
        SignalObjectsState::Fresh => SignalObjectsStateV1::Fresh,
        SignalObjectsState::Buffered { key } => SignalObjectsStateV1::Buffered { key: key.to_string() },
        SignalObjectsState::Owned { run_id, incarnation } => {
            SignalObjectsStateV1::Owned { run_id: run_id.to_string(), incarnation: incarnation.value() }
        }
        SignalObjectsState::Condemned => SignalObjectsStateV1::Condemned,
    };
    let (since, prefix) = (row.since.into(), row.prefix.clone());
    codec::encode(&StoredSignalObjects::V1(SignalObjectsV1 { since, prefix, state }))
}

/// The row of a signal's object that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`] when the bytes are no such row.
pub fn decode_signal_objects_row(bytes: &[u8]) -> Result<SignalObjectsRow> {
    let what = || "the objects row of a signal".to_owned();
    let StoredSignalObjects::V1(row) = codec::decode(bytes, what)?;
    let state = match row.state {
        SignalObjectsStateV1::Fresh => SignalObjectsState::Fresh,
        SignalObjectsStateV1::Buffered { key } => SignalObjectsState::Buffered {
            key: CorrelationKey::parse(key).map_err(|error| Error::corrupt(what(), error))?,
        },
        SignalObjectsStateV1::Owned { run_id, incarnation } => SignalObjectsState::Owned {
            run_id: RunId::parse(run_id).map_err(|error| Error::corrupt(what(), error))?,
            incarnation: Incarnation::new(incarnation),
        },
        SignalObjectsStateV1::Condemned => SignalObjectsState::Condemned,
    };
    Ok(SignalObjectsRow { since: row.since.into(), prefix: row.prefix, state })
}

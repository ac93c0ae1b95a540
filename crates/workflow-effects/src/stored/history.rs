//! One row of a run's history: how a step ended.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{RunId, Signal, Status, Timestamp, Value};

use super::codec;
use super::parts::{MillisV1, SignalV1, ValueV1};
use crate::error::{Error, Result};

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// The number of the attempt that ended it.
    pub attempt: u32,
    /// When that attempt started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What came of it.
    pub end: RecordedEnd,
    /// What the step was called with, where that is kept.
    pub payload: Option<Value>,
    /// The key of the signal that ended the wait before the step.
    pub signal_key: Option<String>,
    /// That signal, where payloads are kept.
    pub signal: Option<Signal>,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedEnd {
    /// Another step followed at once.
    Continued,
    /// Another step followed later.
    Delayed,
    /// Another step followed a wait for a signal.
    Waited,
    /// The run succeeded.
    Succeeded,
    /// The run failed.
    Failed,
    /// The run gave up.
    Cancelled,
}

impl From<Status> for RecordedEnd {
    fn from(status: Status) -> Self {
        match status {
            Status::Succeeded => Self::Succeeded,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(StepV1),
}

#[derive(Serialize, Deserialize)]
struct StepV1 {
    attempt: u32,
    started_at: MillisV1,
    ended_at: MillisV1,
    end: EndV1,
    payload: Option<ValueV1>,
    signal_key: Option<String>,
    signal: Option<SignalV1>,
}

#[derive(Serialize, Deserialize)]
enum EndV1 {
    Continued,
    Delayed,
    Waited,
    Succeeded,
    Failed,
    Cancelled,
}

/// The bytes of `row`.
pub fn encode_step_row(row: &StepRow) -> Bytes {
    let StepRow { attempt, started_at, ended_at, end, payload, signal_key, signal } = row;
    let end = match end {
        RecordedEnd::Continued => EndV1::Continued,
        RecordedEnd::Delayed => EndV1::Delayed,
        RecordedEnd::Waited => EndV1::Waited,
        RecordedEnd::Succeeded => EndV1::Succeeded,
        RecordedEnd::Failed => EndV1::Failed,
        RecordedEnd::Cancelled => EndV1::Cancelled,
    };
    codec::encode(&Stored::V1(StepV1 {
        attempt: *attempt,
        started_at: (*started_at).into(),
        ended_at: (*ended_at).into(),
        end,
        payload: payload.as_ref().map(ValueV1::from),
        signal_key: signal_key.clone(),
        signal: signal.as_ref().map(SignalV1::from),
    }))
}

/// The row of the history of run `run_id` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), naming the run, when the bytes are no such row.
pub fn decode_step_row(run_id: &RunId, bytes: &[u8]) -> Result<StepRow> {
    let what = || format!("the history of run {run_id}");
    let Stored::V1(row) = codec::decode(bytes, what)?;
    let end = match row.end {
        EndV1::Continued => RecordedEnd::Continued,
        EndV1::Delayed => RecordedEnd::Delayed,
        EndV1::Waited => RecordedEnd::Waited,
        EndV1::Succeeded => RecordedEnd::Succeeded,
        EndV1::Failed => RecordedEnd::Failed,
        EndV1::Cancelled => RecordedEnd::Cancelled,
    };
    Ok(StepRow {
        attempt: row.attempt,
        started_at: row.started_at.into(),
        ended_at: row.ended_at.into(),
        end,
        payload: row.payload.map(Into::into),
        signal_key: row.signal_key,
        signal: row.signal.map(Signal::try_from).transpose().map_err(|error| Error::corrupt(what(), error))?,
    })
}

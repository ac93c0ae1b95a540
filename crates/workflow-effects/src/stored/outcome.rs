//! The outcome of a step, written down before its commit: a row that says whose it is, and the outcome itself, which
//! may be too long for a row.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{
    Attempt, CorrelationKey, Incarnation, JobId, KeyState, Outcome, ParseCorrelationKeyError, RunId, Timestamp, Value,
    WaitKey, When,
};

use super::codec;
use super::parts::{MillisV1, ValueV1};
use crate::error::{Error, Result};
use crate::staged::StagedEffects;

/// Says that an attempt has written its outcome down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The attempt.
    pub attempt: Attempt,
    /// When it started.
    pub started_at: Timestamp,
    /// The bytes of a [`RecordedOutcome`].
    pub content: Value,
}

/// What an attempt answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedOutcome {
    /// The answer. Times are fixed; what the slots of keys hold is not known.
    pub outcome: Outcome,
    /// What the step staged.
    pub staged: StagedEffects,
}

#[derive(Serialize, Deserialize)]
enum StoredRow {
    V1(RowV1),
}

#[derive(Serialize, Deserialize)]
struct RowV1 {
    incarnation: u128,
    step: u32,
    job: String,
    deliveries: u32,
    started_at: MillisV1,
    content: ValueV1,
}

#[derive(Serialize, Deserialize)]
enum StoredOutcome {
    V1(RecordedV1),
}

#[derive(Serialize, Deserialize)]
struct RecordedV1 {
    outcome: OutcomeV1,
    puts: Vec<(Bytes, Bytes)>,
    deletes: Vec<Bytes>,
}

#[derive(Serialize, Deserialize)]
enum OutcomeV1 {
    Continue { payload: ValueV1, when: WhenV1 },
    Succeed { result: ValueV1 },
    Fail { reason: String },
    Cancel { reason: String },
}

#[derive(Serialize, Deserialize)]
enum WhenV1 {
    Now,
    At(MillisV1),
    OnSignal { keys: Vec<String>, until: Option<MillisV1> },
}

/// The bytes of `row`.
pub fn encode_outcome_row(row: &OutcomeRow) -> Bytes {
    let OutcomeRow { attempt, started_at, content } = row;
    codec::encode(&StoredRow::V1(RowV1 {
        incarnation: attempt.incarnation.value(),
        step: attempt.step,
        job: attempt.job.as_str().to_owned(),
        deliveries: attempt.deliveries,
        started_at: (*started_at).into(),
        content: content.into(),
    }))
}

/// The row of run `run_id` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`], naming the run, when the bytes are no such row.
pub fn decode_outcome_row(run_id: &RunId, bytes: &[u8]) -> Result<OutcomeRow> {
    let StoredRow::V1(row) = codec::decode(bytes, || what(run_id))?;
    let attempt = Attempt {
        incarnation: Incarnation::new(row.incarnation),
        step: row.step,
        job: JobId::from(row.job),
        deliveries: row.deliveries,
    };
    Ok(OutcomeRow { attempt, started_at: row.started_at.into(), content: row.content.into() })
}

/// The bytes of `recorded`.
pub fn encode_outcome(recorded: &RecordedOutcome) -> Bytes {
    let RecordedOutcome { outcome, staged } = recorded;
    codec::encode(&StoredOutcome::V1(RecordedV1 {
        outcome: outcome.into(),
        puts: staged.puts.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        deletes: staged.deletes.iter().cloned().collect(),
    }))
}

/// The outcome of run `run_id` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`], naming the run, when the bytes are no outcome.
pub fn decode_outcome(run_id: &RunId, bytes: &[u8]) -> Result<RecordedOutcome> {
    let StoredOutcome::V1(recorded) = codec::decode(bytes, || what(run_id))?;
    let outcome = recorded.outcome.try_into();
    let outcome = outcome.map_err(|error: ParseCorrelationKeyError| Error::corrupt(what(run_id), error))?;
    let staged =
        StagedEffects { puts: recorded.puts.into_iter().collect(), deletes: recorded.deletes.into_iter().collect() };
    Ok(RecordedOutcome { outcome, staged })
}

fn what(run_id: &RunId) -> String {
    format!("the recorded outcome of run {run_id}")
}

impl From<&Outcome> for OutcomeV1 {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Continue { payload, when } => Self::Continue { payload: payload.into(), when: when.into() },
            Outcome::Succeed { result } => Self::Succeed { result: result.into() },
            Outcome::Fail { reason } => Self::Fail { reason: reason.clone() },
            Outcome::Cancel { reason } => Self::Cancel { reason: reason.clone() },
        }
    }
}

impl TryFrom<OutcomeV1> for Outcome {
    type Error = ParseCorrelationKeyError;

    fn try_from(outcome: OutcomeV1) -> Result<Self, Self::Error> {
        Ok(match outcome {
            OutcomeV1::Continue { payload, when } => Self::Continue { payload: payload.into(), when: when.try_into()? },
            OutcomeV1::Succeed { result } => Self::Succeed { result: result.into() },
            OutcomeV1::Fail { reason } => Self::Fail { reason },
            OutcomeV1::Cancel { reason } => Self::Cancel { reason },
        })
    }
}

impl From<&When> for WhenV1 {
    fn from(when: &When) -> Self {
        match when {
            When::Now => Self::Now,
            When::At(at) => Self::At((*at).into()),
            When::OnSignal { keys, until } => Self::OnSignal {
                keys: keys.iter().map(|wait| wait.key.to_string()).collect(),
                until: until.map(Into::into),
            },
        }
    }
}

impl TryFrom<WhenV1> for When {
    type Error = ParseCorrelationKeyError;

    fn try_from(when: WhenV1) -> Result<Self, Self::Error> {
        Ok(match when {
            WhenV1::Now => Self::Now,
            WhenV1::At(at) => Self::At(at.into()),
            WhenV1::OnSignal { keys, until } => {
                let wait = |key| Ok(WaitKey { key: CorrelationKey::parse(key)?, state: KeyState::Free });
                let keys = keys.into_iter().map(wait).collect::<Result<_, _>>()?;
                Self::OnSignal { keys, until: until.map(Into::into) }
            }
        })
    }
}

//! The record of a run: the one truth about it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{
    ActiveRun, CancelRequest, CorrelationKey, EndedRun, Incarnation, JobId, ParseCorrelationKeyError, Phase, Run,
    RunId, Signal, SignalId,
};

use super::codec;
use super::parts::{AttemptsV1, MillisV1, StatusV1, ValueV1};
use crate::error::{Error, Result};

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(RunV1),
}

#[derive(Serialize, Deserialize)]
enum RunV1 {
    Active(ActiveV1),
    Ended(EndedV1),
}

#[derive(Serialize, Deserialize)]
struct ActiveV1 {
    revision: u64,
    incarnation: u128,
    step: u32,
    job: String,
    phase: PhaseV1,
    payload: ValueV1,
    signal: Option<SignalV1>,
    attempts: AttemptsV1,
    cancel: Option<CancelV1>,
}

#[derive(Serialize, Deserialize)]
struct SignalV1 {
    id: u128,
    key: String,
    payload: ValueV1,
}

#[derive(Serialize, Deserialize)]
struct CancelV1 {
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum PhaseV1 {
    Ready,
    BackingOff { until: MillisV1 },
    Delayed { until: MillisV1 },
    Waiting { keys: Vec<String>, until: Option<MillisV1> },
}

#[derive(Serialize, Deserialize)]
struct EndedV1 {
    revision: u64,
    incarnation: u128,
    status: StatusV1,
    result: Option<ValueV1>,
    error: Option<String>,
    final_step: u32,
    ended_at: MillisV1,
    final_job: String,
    dead_letter: bool,
}

/// The bytes of a run's record; `None` for a run that is absent, which has no record.
pub fn encode_run(run: &Run) -> Option<Bytes> {
    let run = match run {
        Run::Absent => return None,
        Run::Active(run) => RunV1::Active(run.into()),
        Run::Ended(run) => RunV1::Ended(run.into()),
    };
    Some(codec::encode(&Stored::V1(run)))
}

/// The run whose record is `bytes`; without a record it is absent.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), naming the run, when the bytes are no record.
pub fn decode_run(run_id: &RunId, bytes: Option<&[u8]>) -> Result<Run> {
    let Some(bytes) = bytes else {
        return Ok(Run::Absent);
    };
    let what = || format!("the record of run {run_id}");
    match codec::decode(bytes, what)? {
        Stored::V1(RunV1::Active(run)) => {
            Ok(Run::Active(run.try_into().map_err(|error: ParseCorrelationKeyError| Error::corrupt(what(), error))?))
        }
        Stored::V1(RunV1::Ended(run)) => Ok(Run::Ended(run.into())),
    }
}

impl From<&ActiveRun> for ActiveV1 {
    fn from(run: &ActiveRun) -> Self {
        let ActiveRun { revision, incarnation, step, job, phase, payload, signal, attempts, cancel } = run;
        Self {
            revision: *revision,
            incarnation: incarnation.value(),
            step: *step,
            job: job.as_str().to_owned(),
            phase: phase.into(),
            payload: payload.into(),
            signal: signal.as_ref().map(|signal| SignalV1 {
                id: signal.id.value(),
                key: signal.key.to_string(),
                payload: (&signal.payload).into(),
            }),
            attempts: (*attempts).into(),
            cancel: cancel.as_ref().map(|cancel| CancelV1 { reason: cancel.reason.clone() }),
        }
    }
}

impl TryFrom<ActiveV1> for ActiveRun {
    type Error = ParseCorrelationKeyError;

    fn try_from(run: ActiveV1) -> Result<Self, Self::Error> {
        let signal = match run.signal {
            Some(SignalV1 { id, key, payload }) => {
                Some(Signal { id: SignalId::new(id), key: CorrelationKey::parse(key)?, payload: payload.into() })
            }
            None => None,
        };
        Ok(Self {
            revision: run.revision,
            incarnation: Incarnation::new(run.incarnation),
            step: run.step,
            job: JobId::from(run.job),
            phase: run.phase.try_into()?,
            payload: run.payload.into(),
            signal,
            attempts: run.attempts.into(),
            cancel: run.cancel.map(|cancel| CancelRequest { reason: cancel.reason }),
        })
    }
}

impl From<&Phase> for PhaseV1 {
    fn from(phase: &Phase) -> Self {
        match phase {
            Phase::Ready => Self::Ready,
            Phase::BackingOff { until } => Self::BackingOff { until: (*until).into() },
            Phase::Delayed { until } => Self::Delayed { until: (*until).into() },
            Phase::Waiting { keys, until } => {
                Self::Waiting { keys: keys.iter().map(ToString::to_string).collect(), until: until.map(Into::into) }
            }
        }
    }
}

impl TryFrom<PhaseV1> for Phase {
    type Error = ParseCorrelationKeyError;

    fn try_from(phase: PhaseV1) -> Result<Self, Self::Error> {
        Ok(match phase {
            PhaseV1::Ready => Self::Ready,
            PhaseV1::BackingOff { until } => Self::BackingOff { until: until.into() },
            PhaseV1::Delayed { until } => Self::Delayed { until: until.into() },
            PhaseV1::Waiting { keys, until } => Self::Waiting {
                keys: keys.into_iter().map(CorrelationKey::parse).collect::<Result<_, _>>()?,
                until: until.map(Into::into),
            },
        })
    }
}

impl From<&EndedRun> for EndedV1 {
    fn from(run: &EndedRun) -> Self {
        let EndedRun { revision, incarnation, status, result, error, final_step, ended_at, final_job, dead_letter } =
            run;
        Self {
            revision: *revision,
            incarnation: incarnation.value(),
            status: (*status).into(),
            result: result.as_ref().map(ValueV1::from),
            error: error.clone(),
            final_step: *final_step,
            ended_at: (*ended_at).into(),
            final_job: final_job.as_str().to_owned(),
            dead_letter: *dead_letter,
        }
    }
}

impl From<EndedV1> for EndedRun {
    fn from(run: EndedV1) -> Self {
        Self {
            revision: run.revision,
            incarnation: Incarnation::new(run.incarnation),
            status: run.status.into(),
            result: run.result.map(Into::into),
            error: run.error,
            final_step: run.final_step,
            ended_at: run.ended_at.into(),
            final_job: JobId::from(run.final_job),
            dead_letter: run.dead_letter,
        }
    }
}

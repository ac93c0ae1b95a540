//! The record of a run: the one truth about it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{
    ActiveRun, CancelRequest, EndedRun, Incarnation, JobId, ParseCorrelationKeyError, Remains, Run, RunId, Signal,
};

use super::codec;
use super::parts::{AttemptsV1, MillisV1, PhaseV1, SignalV1, StatusV1, ValueV1};
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
    redrive: u32,
    since: MillisV1,
    step: u32,
    job: String,
    phase: PhaseV1,
    payload: ValueV1,
    signal: Option<SignalV1>,
    attempts: AttemptsV1,
    cancel: Option<CancelV1>,
    paused: bool,
}

#[derive(Serialize, Deserialize)]
struct CancelV1 {
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct RemainsV1 {
    payload: ValueV1,
    signal: Option<SignalV1>,
    phase: PhaseV1,
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
    redrive: u32,
    remains: Option<RemainsV1>,
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
    let run = match codec::decode(bytes, what)? {
        Stored::V1(RunV1::Active(run)) => run.try_into().map(Run::Active),
        Stored::V1(RunV1::Ended(run)) => run.try_into().map(Run::Ended),
    };
    run.map_err(|error: ParseCorrelationKeyError| Error::corrupt(what(), error))
}

impl From<&ActiveRun> for ActiveV1 {
    fn from(run: &ActiveRun) -> Self {
        let ActiveRun {
            revision,
            incarnation,
            redrive,
            since,
            step,
            job,
            phase,
            payload,
            signal,
            attempts,
            cancel,
            paused,
        } = run;
        Self {
            revision: *revision,
            incarnation: incarnation.value(),
            redrive: *redrive,
            since: (*since).into(),
            step: *step,
            job: job.as_str().to_owned(),
            phase: phase.into(),
            payload: payload.into(),
            signal: signal.as_ref().map(SignalV1::from),
            attempts: (*attempts).into(),
            cancel: cancel.as_ref().map(|cancel| CancelV1 { reason: cancel.reason.clone() }),
            paused: *paused,
        }
    }
}

impl TryFrom<ActiveV1> for ActiveRun {
    type Error = ParseCorrelationKeyError;

    fn try_from(run: ActiveV1) -> Result<Self, Self::Error> {
        Ok(Self {
            revision: run.revision,
            incarnation: Incarnation::new(run.incarnation),
            redrive: run.redrive,
            since: run.since.into(),
            step: run.step,
            job: JobId::from(run.job),
            phase: run.phase.try_into()?,
            payload: run.payload.into(),
            signal: run.signal.map(Signal::try_from).transpose()?,
            attempts: run.attempts.into(),
            cancel: run.cancel.map(|cancel| CancelRequest { reason: cancel.reason }),
            paused: run.paused,
        })
    }
}

impl From<&EndedRun> for EndedV1 {
    fn from(run: &EndedRun) -> Self {
        let EndedRun {
            revision,
            incarnation,
            status,
            result,
            error,
            final_step,
            ended_at,
            final_job,
            dead_letter,
            redrive,
            remains,
        } = run;
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
            redrive: *redrive,
            remains: remains.as_ref().map(RemainsV1::from),
        }
    }
}

impl TryFrom<EndedV1> for EndedRun {
    type Error = ParseCorrelationKeyError;

    fn try_from(run: EndedV1) -> Result<Self, Self::Error> {
        Ok(Self {
            revision: run.revision,
            incarnation: Incarnation::new(run.incarnation),
            status: run.status.into(),
            result: run.result.map(Into::into),
            error: run.error,
            final_step: run.final_step,
            ended_at: run.ended_at.into(),
            final_job: JobId::from(run.final_job),
            dead_letter: run.dead_letter,
            redrive: run.redrive,
            remains: run.remains.map(Remains::try_from).transpose()?,
        })
    }
}

impl From<&Remains> for RemainsV1 {
    fn from(remains: &Remains) -> Self {
        let Remains { payload, signal, phase } = remains;
        Self { payload: payload.into(), signal: signal.as_ref().map(SignalV1::from), phase: phase.into() }
    }
}

impl TryFrom<RemainsV1> for Remains {
    type Error = ParseCorrelationKeyError;

    fn try_from(remains: RemainsV1) -> Result<Self, Self::Error> {
        Ok(Self {
            payload: remains.payload.into(),
            signal: remains.signal.map(Signal::try_from).transpose()?,
            phase: remains.phase.try_into()?,
        })
    }
}

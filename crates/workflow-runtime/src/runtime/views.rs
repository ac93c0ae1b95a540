//! Reading runs: how far they are, how they ended, and waiting for their ends. Everything told is durable.

use std::time::{Duration, SystemTime};

use workflow_core::{Phase, Run};
use workflow_effects::{Read, decode_run};

use super::WorkflowRuntime;
use super::submit::parse_run_id;
use crate::{Error, Result, RunOutcome, StepRunner, TerminalHook, TerminalStatus};

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStatus {
    /// The run's id.
    pub run_id: String,
    /// What it does or waits for.
    pub phase: RunPhase,
    /// The step in hand, or the one that ended the run.
    pub step: u32,
    /// Attempts of the step in hand that are over: failed ones, and deliveries that were lost.
    pub attempts_used: u32,
    /// Attempts that each step may use.
    pub max_attempts: u32,
    /// When the run was submitted.
    pub submitted_at: SystemTime,
}

/// What a run does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunPhase {
    /// The step in hand executes, or waits for a worker.
    Ready,
    /// The step in hand failed and is attempted again at this time.
    BackingOff {
        /// When.
        until: SystemTime,
    },
    /// The next step starts at this time.
    Delayed {
        /// When.
        until: SystemTime,
    },
    /// The run has ended.
    Ended {
        /// How.
        status: TerminalStatus,
        /// When.
        at: SystemTime,
    },
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// How far the run is; `None` when there is none of this id.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRunId`]; a permanent error when the run's record does not decode; a transient one when the
    /// store cannot answer.
    pub async fn status(&self, run_id: &str) -> Result<Option<RunStatus>> {
        let id = parse_run_id(run_id)?;
        let run = self.engine.gather(&id, Read::Durable).await?.run;
        let (incarnation, phase, step, attempts_used) = match &run {
            Run::Absent => return Ok(None),
            Run::Active(run) => (run.incarnation, self.phase(run.phase), run.step, run.attempts.used),
            Run::Ended(ended) => {
                let (status, at) = (ended.status.into(), ended.ended_at.into());
                (ended.incarnation, RunPhase::Ended { status, at }, ended.final_step, 0)
            }
        };
        let spec = self.engine.spec(&id, incarnation).await?;
        Ok(Some(RunStatus {
            run_id: id.to_string(),
            phase,
            step,
            attempts_used,
            max_attempts: spec.max_attempts,
            submitted_at: spec.submitted_at.into(),
        }))
    }

    fn phase(&self, phase: Phase) -> RunPhase {
        let now = self.engine.clock.now();
        match phase {
            Phase::BackingOff { until } if until > now => RunPhase::BackingOff { until: until.into() },
            Phase::Delayed { until } if until > now => RunPhase::Delayed { until: until.into() },
            Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => RunPhase::Ready,
        }
    }

    /// How the run ended; `None` while it is active or when there is none of this id.
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    pub async fn run_end(&self, run_id: &str) -> Result<Option<RunOutcome>> {
        let id = parse_run_id(run_id)?;
        match self.engine.gather(&id, Read::Durable).await?.run {
            Run::Ended(ended) => Ok(Some(self.engine.outcome(&id, &ended).await?)),
            Run::Absent | Run::Active(_) => Ok(None),
        }
    }

    /// Waits until the run has ended. Its hook may still be owed then: it is called beside, or after the next start.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] when there is no run of this id; otherwise as [`status`](Self::status).
    pub async fn wait(&self, run_id: &str) -> Result<RunOutcome> {
        let id = parse_run_id(run_id)?;
        let key = self.engine.keys.run(&id);
        let mut record = self.engine.port.get(&key, Read::Durable).await?;
        loop {
            match decode_run(&id, record.as_deref())? {
                Run::Absent => return Err(Error::NotFound(id.to_string())),
                Run::Ended(ended) => return self.engine.outcome(&id, &ended).await,
                Run::Active(_) => record = self.engine.port.wait_for_change(&key, record.as_ref()).await?,
            }
        }
    }

    /// Waits until the run has ended, at most for `timeout`; `None` when it has not.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_timeout(&self, run_id: &str, timeout: Duration) -> Result<Option<RunOutcome>> {
        tokio::select! {
            biased;
            ended = self.wait(run_id) => ended.map(Some),
            () = self.engine.clock.sleep(timeout) => Ok(None),
        }
    }
}

//! Pausing a run, and letting it go on.

use workflow_core::{Reason, Run};

use super::WorkflowRuntime;
use super::change::{Change, Wish, is_in_hand};
use crate::engine::Engine;
use crate::reads::parse_run_id;
use crate::{Error, Result, RunOutcome, StepRunner, TerminalHook};

/// What came of a call of [`pause`](WorkflowRuntime::pause).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PauseOutcome {
    /// No step of the run executes, and none starts.
    Paused,
    /// A step may be in hand, which goes on to its end and commits. No other starts.
    Finishing,
    /// The run had ended before, like this.
    AlreadyEnded(RunOutcome),
    /// There is no run of this id.
    NotFound,
}

/// What came of a call of [`resume`](WorkflowRuntime::resume).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResumeOutcome {
    /// The run goes on.
    Resumed,
    /// The run was not paused.
    NotPaused,
    /// The run had ended before, like this.
    AlreadyEnded(RunOutcome),
    /// There is no run of this id.
    NotFound,
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Keeps every further step of a run from starting until it is [resumed](Self::resume). Signals are received and
    /// waits end meanwhile; only what follows from them has to wait. In force, whatever happens, when this returns.
    ///
    /// Pausing a paused run tells how far it is. It needs no running loop.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRunId`]; a permanent error when the run's record does not decode; a transient one when the
    /// store cannot answer: asking again tells.
    pub async fn pause(&self, run_id: &str) -> Result<PauseOutcome> {
        let (engine, change) = (self.engine.clone(), Change { run_id: parse_run_id(run_id)?, wish: Wish::Pause });
        tokio::spawn(async move { pause(&engine, &change).await }).await.unwrap_or(Err(Error::Interrupted))
    }

    /// Lets a paused run go on: the step that is due starts at once.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self, run_id: &str) -> Result<ResumeOutcome> {
        let (engine, change) = (self.engine.clone(), Change { run_id: parse_run_id(run_id)?, wish: Wish::Resume });
        tokio::spawn(async move { resume(&engine, &change).await }).await.unwrap_or(Err(Error::Interrupted))
    }
}

async fn pause<R, H: TerminalHook>(engine: &Engine<R, H>, change: &Change) -> Result<PauseOutcome> {
    match change.carry_out(engine).await?.next {
        Run::Absent => Ok(PauseOutcome::NotFound),
        Run::Ended(ended) => {
            let end = engine.reads.outcome(&change.run_id, &ended).await?;
            Ok(end.map_or(PauseOutcome::NotFound, PauseOutcome::AlreadyEnded))
        }
        // Asked after the commit: a delivery that begins later finds the run paused.
        Run::Active(run) if is_in_hand(engine, &run.job).await? => Ok(PauseOutcome::Finishing),
        // The step that was in hand may have ended the run.
        Run::Active(_) => {
            let end = engine.reads.run_end(&change.run_id).await?;
            Ok(end.map_or(PauseOutcome::Paused, PauseOutcome::AlreadyEnded))
        }
    }
}

async fn resume<R, H: TerminalHook>(engine: &Engine<R, H>, change: &Change) -> Result<ResumeOutcome> {
    let transition = change.carry_out(engine).await?;
    match transition.next {
        Run::Absent => Ok(ResumeOutcome::NotFound),
        Run::Ended(ended) => {
            let end = engine.reads.outcome(&change.run_id, &ended).await?;
            Ok(end.map_or(ResumeOutcome::NotFound, ResumeOutcome::AlreadyEnded))
        }
        Run::Active(_) if transition.reason == Reason::Resumed => Ok(ResumeOutcome::Resumed),
        // Or it is to be cancelled, which no pause delays.
        Run::Active(_) => Ok(ResumeOutcome::NotPaused),
    }
}

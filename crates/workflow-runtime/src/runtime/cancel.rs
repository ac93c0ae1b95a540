//! Cancelling a run from outside, in whatever phase it is.

use workflow_core::{Reason, Run, cut_text};

use super::WorkflowRuntime;
use super::change::{Change, Wish};
use crate::engine::Engine;
use crate::reads::parse_run_id;
use crate::{Error, Result, RunOutcome, StepRunner, TerminalHook};

/// What came of a call of [`cancel`](WorkflowRuntime::cancel).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CancelOutcome {
    /// The run was idle. It has ended.
    Ended,
    /// A step is in hand. Its token fires, what it returns is discarded, and the run ends with it, or without it once
    /// [`cancel_grace`](crate::Settings::cancel_grace) is over.
    Requested,
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
    /// Ends a run as cancelled, for `reason`, which is cut to 8 KiB and becomes the error of its outcome. What was
    /// committed stays; the hook is told. In force, whatever happens, when this returns: no step starts any more.
    ///
    /// The first reason stays. It needs no running loop.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRunId`]; a permanent error when the run's record does not decode; a transient one when the
    /// store cannot answer: asking again tells.
    pub async fn cancel(&self, run_id: &str, reason: Option<String>) -> Result<CancelOutcome> {
        let reason = reason.map(cut_text);
        let (engine, change) =
            (self.engine.clone(), Change { run_id: parse_run_id(run_id)?, wish: Wish::Cancel { reason } });
        tokio::spawn(async move { cancel(&engine, &change).await }).await.unwrap_or(Err(Error::Interrupted))
    }
}

async fn cancel<R, H: TerminalHook>(engine: &Engine<R, H>, change: &Change) -> Result<CancelOutcome> {
    let transition = change.carry_out(engine).await?;
    Ok(match (transition.next, transition.reason) {
        (Run::Absent, _) => CancelOutcome::NotFound,
        (Run::Active(_), _) => CancelOutcome::Requested,
        (Run::Ended(ended), Reason::AlreadyEnded) => {
            let end = engine.reads.outcome(&change.run_id, &ended).await?;
            end.map_or(CancelOutcome::NotFound, CancelOutcome::AlreadyEnded)
        }
        (Run::Ended(_), _) => CancelOutcome::Ended,
    })
}

//! Forgetting a run that has ended before its time.

use super::WorkflowRuntime;
use crate::reads::parse_run_id;
use crate::{Error, Result, StepRunner, TerminalHook, retention};

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Removes a run that has ended, with everything that belongs to it, before its
    /// [retention](crate::Settings::retention) is over; `false` when there is no run of this id. Nobody finds the run
    /// any more when this returns, and its id is free. A job that it has left among the dead goes with the next sweep
    /// of a running loop.
    ///
    /// A run that has just ended is not done at once: the delivery that ended it is to be settled, the hook to be called.
    /// This waits for it, for some seconds at most.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRunId`]; [`Error::NotEnded`] while the run goes on; [`Error::NotDone`], which is transient, if
    /// its hook is still owed, its last step still in hand, or somebody still about to bring it back after these seconds;
    /// a permanent error when its record does not decode; a transient one when the store cannot answer.
    pub async fn forget(&self, run_id: &str) -> Result<bool> {
        let (engine, run_id) = (self.engine.clone(), parse_run_id(run_id)?);
        let forgotten = tokio::spawn(async move { retention::forget(&engine, &run_id).await });
        forgotten.await.unwrap_or(Err(Error::Interrupted))
    }
}

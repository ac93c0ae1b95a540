//! Reading runs and waiting for their ends. Everything told is durable.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use workflow_core::Run;
use workflow_effects::{Read, decode_run};

use super::WorkflowRuntime;
use crate::listing::{RunFilter, RunOrder};
use crate::reads::parse_run_id;
use crate::views::{HistoryEntry, RunStatus};
use crate::{Error, Result, RunOutcome, StepRunner, TerminalHook};

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
        self.engine.reads.status(&parse_run_id(run_id)?, self.engine.clock.now()).await
    }

    /// How the run ended; `None` while it is active or when there is none of this id.
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    pub async fn run_end(&self, run_id: &str) -> Result<Option<RunOutcome>> {
        self.engine.reads.run_end(&parse_run_id(run_id)?).await
    }

    /// What was written down of the run's steps, in their order: see [`HistoryLevel`](crate::HistoryLevel). Nothing
    /// when there is no run of this id. An item is an error where [`status`](Self::status) would be one.
    pub fn history(&self, run_id: &str) -> impl Stream<Item = Result<HistoryEntry>> + Send + use<R, H> {
        match parse_run_id(run_id) {
            Ok(id) => self.engine.reads.history(id).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        }
    }

    /// The runs that `filter` takes, in pages, while they come and go: a run that keeps its place meanwhile is listed
    /// once, one that leaves it or comes to it may be missing.
    ///
    /// An item is an error where [`status`](Self::status) would be one; of a run that does not read the listing goes on
    /// with the next.
    pub fn runs(&self, filter: RunFilter, order: RunOrder) -> impl Stream<Item = Result<RunStatus>> + Send + use<R, H> {
        self.engine.reads.clone().runs(filter, order, self.engine.clock.now())
    }

    /// How many runs `filter` takes. Reads nothing but an index where the filter names one thing only.
    ///
    /// # Errors
    ///
    /// A transient error when the store cannot answer.
    pub async fn count(&self, filter: RunFilter) -> Result<u64> {
        self.engine.reads.clone().count(filter, self.engine.clock.now()).await
    }

    /// Waits until the run has ended. Its hook may still be owed then: it is called beside, or after the next start.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] when there is no run of this id; otherwise as [`status`](Self::status).
    pub async fn wait(&self, run_id: &str) -> Result<RunOutcome> {
        let id = parse_run_id(run_id)?;
        let key = self.engine.reads.keys.run(&id);
        let gathered = self.engine.reads.gather(&id, Read::Durable).await?;
        if let Some(incarnation) = gathered.run.incarnation() {
            // Nobody executes a run whose rows do not fit together: it would be waited for in vain.
            self.engine.reads.spec(&id, incarnation).await?;
        }
        let mut record = gathered.record;
        loop {
            match decode_run(&id, record.as_deref())? {
                Run::Absent => return Err(Error::NotFound(id.to_string())),
                Run::Ended(ended) => {
                    let end = self.engine.reads.outcome(&id, &ended).await?;
                    return end.ok_or_else(|| Error::NotFound(id.to_string()));
                }
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

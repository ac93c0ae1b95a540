//! Jobs apart from their claims: where they are, and the removal of those that nobody holds.

use ::taquba::{AttemptOutcome, JobStatus};
use workflow_core::{JobId, Timestamp};
use workflow_effects::Error;

use super::queue::Shared;
use crate::port::JobState;

impl Shared {
    /// Where `job` is.
    pub(super) async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        match self.queue.view().job_record(job.as_str()).await {
            Ok(record) => Ok(record.and_then(|record| state(record.status))),
            Err(cause) => Err(self.failure(cause).await),
        }
    }

    /// Whether an operator has put `job` back since it was dead last. Taquba keeps all of a job's history, in order, until
    /// the job is gone; one that is done may be kept with it.
    pub(super) async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        let history = match self.queue.view().attempt_history(job.as_str()).await {
            Ok(history) => history,
            Err(cause) => return Err(self.failure(cause).await),
        };
        let mut turns = history.iter().rev().filter_map(|entry| match entry.outcome {
            AttemptOutcome::Requeued => Some(true),
            AttemptOutcome::DeadLettered | AttemptOutcome::Completed => Some(false),
            AttemptOutcome::Retried | AttemptOutcome::LeaseExpired | AttemptOutcome::Interrupted => None,
        });
        Ok(turns.next().unwrap_or(false))
    }

    /// Removes a job that nobody holds. Cancelling one that is claimed would keep its lease from being renewed.
    pub(super) async fn drop_job(&self, job: &JobId) -> ::taquba::Result<()> {
        let Some(record) = self.queue.view().job_record(job.as_str()).await? else { return Ok(()) };
        if let Some(due) = record.run_at {
            self.schedule.remove(record.queue.as_str(), Timestamp::from_millis(due), job);
        }
        if state(record.status) == Some(JobState::Waiting) {
            self.queue.cancel(job.as_str()).await?;
        }
        Ok(())
    }
}

/// What the port says of a job of this status. One that is done is kept by a queue that was told to, and is gone to us.
fn state(status: JobStatus) -> Option<JobState> {
    match status {
        JobStatus::Pending | JobStatus::Scheduled => Some(JobState::Waiting),
        JobStatus::Claimed => Some(JobState::Claimed),
        JobStatus::Dead => Some(JobState::Dead),
        JobStatus::Done => None,
    }
}

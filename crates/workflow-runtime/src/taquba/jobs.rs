//! Jobs apart from their claims: where they are, and the removal of those that nobody holds.

use ::taquba::JobStatus;
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

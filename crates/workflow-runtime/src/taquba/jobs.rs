//! Jobs apart from their claims: where they are, and the removal of those that nobody holds.

use std::collections::BTreeMap;

use ::taquba::{AttemptOutcome, JobStatus};
use futures::future::join_all;
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

    /// Removes those of `jobs` that nobody holds: the waiting ones, then the dead ones of each queue.
    pub(super) async fn drop_jobs(&self, jobs: &[JobId]) -> Result<(), Error> {
        let waiting = jobs.iter().map(async |job| {
            let dead_in = self.repeat(job.as_str(), || self.drop_waiting(job)).await?;
            Ok(dead_in.map(|queue| (queue, job)))
        });
        let mut dead: BTreeMap<String, Vec<&JobId>> = BTreeMap::new();
        for found in join_all(waiting).await {
            if let Some((queue, job)) = found? {
                dead.entry(queue).or_default().push(job);
            }
        }
        for (queue, jobs) in dead {
            self.repeat(&format!("some of {queue}"), || self.drop_dead(&queue, &jobs)).await?;
        }
        Ok(())
    }

    /// Removes a job that waits. The queue of one that is dead. Cancelling one that is claimed would keep its lease from
    /// being renewed.
    async fn drop_waiting(&self, job: &JobId) -> ::taquba::Result<Option<String>> {
        let Some(record) = self.queue.view().job_record(job.as_str()).await? else { return Ok(None) };
        let queue = record.queue.as_str();
        if let Some(due) = record.run_at {
            self.schedule.remove(queue, Timestamp::from_millis(due), job);
        }
        if state(record.status) == Some(JobState::Waiting) {
            self.queue.cancel(job.as_str()).await?;
        }
        Ok((record.status == JobStatus::Dead).then(|| queue.to_owned()))
    }

    /// Removes dead jobs of `queue`. Taquba removes only what waits, so each waits for a moment, in which nobody may claim:
    /// hence the turn. After a crash in that moment it goes on waiting, as a stale doorbell.
    ///
    /// Taquba moves its claim cursor back to the oldest of them, and until a claim has taken a job, claims read all
    /// tombstones from there on, as many as there were claims since that one was queued. Once for all of a batch.
    async fn drop_dead(&self, queue: &str, jobs: &[&JobId]) -> ::taquba::Result<()> {
        let lane = self.lanes.of(queue);
        let _turn = lane.turn.lock().await;
        let dropped = join_all(jobs.iter().map(|job| self.drop_dead_job(job))).await;
        // What can be repeated goes before what cannot.
        let failed = dropped.into_iter().filter_map(Result::err).min_by_key(::taquba::Error::is_permanent);
        failed.map_or(Ok(()), Err)
    }

    async fn drop_dead_job(&self, job: &JobId) -> ::taquba::Result<()> {
        match self.queue.requeue_dead_job(job.as_str()).await {
            // An operator may have been faster.
            Ok(()) | Err(::taquba::Error::InvalidState | ::taquba::Error::JobNotFound(_)) => {}
            Err(cause) => return Err(cause),
        }
        self.drop_waiting(job).await?;
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

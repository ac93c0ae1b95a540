//! Reading on in the store where the doorbells that the timer holds come to an end soon.

use std::sync::Arc;
use std::time::Duration;

use ::taquba::{JobPage, JobStatus};
use tokio::task::JoinHandle;
use tracing::error;
use workflow_core::Timestamp;
use workflow_effects::Error;

use super::lanes::Turn;
use super::queue::Shared;
use super::schedule::{Due, Horizon};
use crate::port::Clock;

/// A claim waits so long for a reading. A page of a queue that has few scheduled jobs takes long where other queues have
/// many: Taquba keeps them all together.
const PATIENCE: Duration = Duration::from_millis(100);
/// What the key of every scheduled job begins with.
const SCHEDULED: [u8; 2] = [3, 1];

/// A reading in a task of its own.
pub(super) type Reading = JoinHandle<Result<(), Error>>;

impl Shared {
    /// Begins to read on, if it is time to. Waits for that only where a doorbell may be due that is not held.
    pub(super) async fn look_ahead(self: &Arc<Self>, queue: &str, turn: &mut Turn) -> Result<(), Error> {
        if let Some(reading) = turn.reading.take_if(|reading| reading.is_finished()) {
            outcome(reading.await)?;
        }
        if turn.reading.is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        let Some((from, limit)) = self.schedule.begin_reading(queue, now) else { return Ok(()) };
        let mut reading = self.read_on(queue, &from, limit);
        if self.schedule.is_behind(queue, now) {
            tokio::select! {
                biased;
                ended = &mut reading => return outcome(ended),
                () = tokio::time::sleep(PATIENCE) => {}
            }
        }
        turn.reading = Some(reading);
        Ok(())
    }

    /// Tells the timer of the next doorbells after `from`. It may take long, and keeps no queue from being closed.
    fn read_on(self: &Arc<Self>, queue: &str, from: &Horizon, limit: usize) -> Reading {
        let (queue, cursor) = (queue.to_owned(), cursor(queue, from));
        let (view, shared) = (self.queue.view().clone(), Arc::downgrade(self));
        tokio::spawn(async move {
            let page = view.list_jobs(&queue, JobStatus::Scheduled, cursor.as_deref(), limit).await;
            let Some(shared) = shared.upgrade() else { return Ok(()) };
            match page {
                Ok(page) => shared.take_in(&queue, page),
                Err(cause) if cause.is_permanent() => {
                    // It would fail for ever. The queue's scheduler rings what the timer does not know of.
                    error!(queue, error = &cause as &dyn std::error::Error, "scheduled jobs do not read");
                    shared.schedule.end_reading(&queue, Vec::new(), Horizon::End);
                }
                Err(cause) => {
                    shared.schedule.fail_reading(&queue);
                    return Err(shared.failure(cause).await);
                }
            }
            Ok(())
        })
    }

    fn take_in(&self, queue: &str, page: JobPage) {
        let has_more = page.next_cursor.is_some();
        let due = page.jobs.into_iter().filter_map(|job| Some((Timestamp::from_millis(job.run_at?), job.id.into())));
        let found: Vec<Due> = due.collect();
        let reached = found.last().filter(|_| has_more).cloned().map_or(Horizon::End, Horizon::After);
        self.schedule.end_reading(queue, found, reached);
    }
}

/// Where a listing goes on after `from`. Taquba makes such cursors only for the ends of pages. This one goes by the key
/// of a scheduled job, which is the version of Taquba's that this crate depends on; a test compares the two. With a
/// cursor of another form nothing would be found, and the queue's scheduler would ring what the timer does not know of.
fn cursor(queue: &str, from: &Horizon) -> Option<Vec<u8>> {
    let Horizon::After((due, job)) = from else { return None };
    let queue_len = u8::try_from(queue.len()).ok()?;
    let due = due.as_millis().to_be_bytes();
    Some([&SCHEDULED, &due[..], &[queue_len], queue.as_bytes(), job.as_str().as_bytes()].concat())
}

/// A reading whose task was torn down is begun again.
fn outcome(ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Result<(), Error> {
    ended.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests;

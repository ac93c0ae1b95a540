//! Reading on in the store where the doorbells that the timer holds come to an end soon.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::taquba::{JobPage, JobStatus, QueueView};
use tokio::task::JoinHandle;
use tracing::error;
use workflow_core::Timestamp;
use workflow_effects::Error;

use super::lanes::Turn;
use super::queue::Shared;
use super::schedule::{Due, Horizon};
use crate::port::Clock;

/// A claim waits so long for a reading. A page of a queue that has few scheduled jobs takes long where other queues have
/// many: Taquba keeps them all together, and a million of them are some seconds.
const PATIENCE: Duration = Duration::from_millis(100);
/// When a reading takes so long, the scheduled jobs of its queue are counted. Counting may be slow too, so not at once.
const LONG: Duration = Duration::from_millis(50);
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
            let page = page(&view, &queue, cursor.as_deref(), limit).await;
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

/// A page of the scheduled jobs of `queue`.
async fn page(view: &QueueView, queue: &str, cursor: Option<&[u8]>, limit: usize) -> ::taquba::Result<JobPage> {
    let mut listing = pin!(view.list_jobs(queue, JobStatus::Scheduled, cursor, limit));
    if let Ok(page) = tokio::time::timeout(LONG, &mut listing).await {
        return page;
    }
    // It may pass over other queues' only. What is not counted is added while this reading goes on.
    if view.stats(queue).await?.scheduled <= 0 {
        return Ok(JobPage { jobs: Vec::new(), next_cursor: None });
    }
    listing.await
}

/// Where a listing goes on after `from`. Taquba tells such cursors only at the ends of pages. This one is made like the key
/// of a scheduled job in the version of Taquba that this crate is tied to; a test compares the two. With a cursor of
/// another form nothing would be found, and the queue's scheduler would ring what the timer does not know of.
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

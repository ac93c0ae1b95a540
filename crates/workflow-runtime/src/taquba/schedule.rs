//! Our own timer: doorbells with a due time are claimed by id when it comes. Of each queue the nearest ones are held, the
//! others are in the store only. The queue's scheduler ticks seldom and is the safety net.

mod near;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use workflow_core::{JobId, Timestamp};

use self::near::Near;
pub(super) use self::near::{Due, Horizon};

/// The nearest doorbells that are due later, by queue.
pub(super) struct Schedule {
    queues: Mutex<BTreeMap<String, Near>>,
    /// So many of each queue are held.
    most: usize,
    earlier: Notify,
}

impl Schedule {
    /// A timer that holds at most so many doorbells of each queue, at least one.
    pub(super) fn holding(most: usize) -> Self {
        Self { queues: Mutex::default(), most: most.max(1), earlier: Notify::new() }
    }

    /// Adds a doorbell that is in the store by now.
    pub(super) fn add(&self, queue: &str, due: Timestamp, job: JobId) {
        if self.change(queue, |near| near.add((due, job))) {
            self.wake();
        }
    }

    /// Takes up to `max` doorbells that are due, the longest due first.
    pub(super) fn take_due(&self, queue: &str, now: Timestamp, max: usize) -> Vec<Due> {
        self.change(queue, |near| near.take_due(now, max))
    }

    /// Forgets a doorbell.
    pub(super) fn remove(&self, queue: &str, due: Timestamp, job: &JobId) {
        self.change(queue, |near| near.remove(&(due, job.clone())));
    }

    /// Begins to read the store, if it is time to: from where the doorbells are not known, and how many at most.
    pub(super) fn begin_reading(&self, queue: &str, now: Timestamp) -> Option<(Horizon, usize)> {
        self.change(queue, |near| Some((near.begin_reading(now)?, near.page())))
    }

    /// Takes in what the reading has found, all that there is up to `reached`.
    pub(super) fn end_reading(&self, queue: &str, found: Vec<Due>, reached: Horizon) {
        self.change(queue, |near| near.end_reading(found, reached));
        self.wake();
    }

    /// Ends a reading that has found out nothing.
    pub(super) fn fail_reading(&self, queue: &str) {
        self.change(queue, Near::fail_reading);
        self.wake();
    }

    /// Whether a doorbell may be due, held or not.
    pub(super) fn may_be_due(&self, queue: &str, now: Timestamp) -> bool {
        self.lock().get(queue).is_some_and(|near| near.is_due(now) || near.is_behind(now))
    }

    /// Whether no doorbell that is held is due, but one that is not held may be.
    pub(super) fn is_behind(&self, queue: &str, now: Timestamp) -> bool {
        self.lock().get(queue).is_some_and(|near| !near.is_due(now) && near.is_behind(now))
    }

    /// When to claim next from one of `queues`.
    pub(super) fn next_look(&self, queues: &[String]) -> Option<Timestamp> {
        let known = self.lock();
        queues.iter().filter_map(|queue| known.get(queue)?.next_look()).min()
    }

    /// Wakes at the next [`wake`](Self::wake) after this call, whenever it is awaited.
    pub(super) fn next_change(&self) -> Notified<'_> {
        self.earlier.notified()
    }

    /// Makes whoever waits for a due time look at the clock and the timer again.
    pub(super) fn wake(&self) {
        self.earlier.notify_waiters();
    }

    fn change<T>(&self, queue: &str, change: impl FnOnce(&mut Near) -> T) -> T {
        let mut queues = self.lock();
        match queues.get_mut(queue) {
            Some(near) => change(near),
            None => change(queues.entry(queue.to_owned()).or_insert_with(|| Near::new(self.most))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Near>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

//! Our own timer: doorbells with a due time are claimed by id when it comes. The queue's scheduler ticks seldom and is
//! the safety net.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use workflow_core::{JobId, Timestamp};

/// The doorbells that are due later, by queue.
#[derive(Default)]
pub(super) struct Schedule {
    queues: Mutex<BTreeMap<String, Due>>,
    earlier: Notify,
}

#[derive(Default)]
struct Due {
    /// Whether the doorbells of earlier processes have been read from the store.
    loaded: bool,
    jobs: BTreeSet<(Timestamp, JobId)>,
}

impl Schedule {
    /// Adds a doorbell.
    pub(super) fn add(&self, queue: &str, due: Timestamp, job: JobId) {
        self.of(&mut self.lock(), queue, |known| {
            known.jobs.insert((due, job));
        });
        self.earlier.notify_waiters();
    }

    /// Whether the doorbells of `queue` that earlier processes left are known.
    pub(super) fn is_loaded(&self, queue: &str) -> bool {
        self.lock().get(queue).is_some_and(|due| due.loaded)
    }

    /// Remembers that they are.
    pub(super) fn set_loaded(&self, queue: &str) {
        self.of(&mut self.lock(), queue, |known| known.loaded = true);
    }

    /// Takes up to `max` doorbells that are due, the longest due first.
    pub(super) fn take_due(&self, queue: &str, now: Timestamp, max: usize) -> Vec<(Timestamp, JobId)> {
        let mut queues = self.lock();
        let Some(known) = queues.get_mut(queue) else { return Vec::new() };
        let mut due = Vec::new();
        while due.len() < max && known.jobs.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(known.jobs.pop_first());
        }
        due
    }

    /// Forgets a doorbell.
    pub(super) fn remove(&self, queue: &str, due: Timestamp, job: &JobId) {
        if let Some(known) = self.lock().get_mut(queue) {
            known.jobs.remove(&(due, job.clone()));
        }
    }

    /// When the next doorbell of one of `queues` is due.
    pub(super) fn next_due(&self, queues: &[String]) -> Option<Timestamp> {
        let known = self.lock();
        queues.iter().filter_map(|queue| known.get(queue)?.jobs.first().map(|(at, _)| *at)).min()
    }

    /// Wakes at the next addition after this call, whenever it is awaited.
    pub(super) fn next_addition(&self) -> Notified<'_> {
        self.earlier.notified()
    }

    fn of(&self, queues: &mut BTreeMap<String, Due>, queue: &str, change: impl FnOnce(&mut Due)) {
        match queues.get_mut(queue) {
            Some(due) => change(due),
            None => change(queues.entry(queue.to_owned()).or_default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Due>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn what_is_due_comes_out_in_order_and_once() {
        let schedule = Schedule::default();
        for (due, job) in [(30, "c"), (10, "a"), (20, "b")] {
            schedule.add("q", at(due), job.into());
        }
        let queues = ["q".to_owned()];
        assert_eq!(schedule.next_due(&queues), Some(at(10)));
        assert_eq!(schedule.take_due("q", at(9), 9), []);
        assert_eq!(schedule.take_due("q", at(20), 1), [(at(10), "a".into())]);
        assert_eq!(schedule.take_due("q", at(20), 9), [(at(20), "b".into())]);
        assert_eq!(schedule.next_due(&queues), Some(at(30)));
        assert_eq!(schedule.next_due(&["other".to_owned()]), None);
    }

    #[test]
    fn an_addition_wakes_whoever_asked_before() {
        let schedule = Schedule::default();
        let waiting = schedule.next_addition();
        schedule.add("q", at(1), "a".into());
        assert!(waiting.now_or_never().is_some());
    }
}

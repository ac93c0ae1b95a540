//! What every part of one runtime shares: the port, the settings, the user's code, and the rows it reads and writes.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use workflow_core::{JobId, RunId};
use workflow_effects::{Committer, Spec, StagedEffects};

use crate::ids::IdSource;
use crate::lease::Leases;
use crate::lower::Lowering;
use crate::port::{Clock, QueuePort};
use crate::reads::RunReads;
use crate::settings::{NOTIFICATION_SUFFIX, Settings};
use crate::{RunOutcome, TerminalHook};

/// The priority of runs that do not ask for one.
pub(crate) const DEFAULT_PRIORITY: u32 = 1_000;

/// At most so many priorities of one queue name are in use: each has a queue of its own.
pub const MAX_PRIORITIES: usize = 64;

/// The shared inside of a runtime.
pub(crate) struct Engine<R, H> {
    pub(crate) port: Arc<dyn QueuePort>,
    pub(crate) committer: Committer,
    pub(crate) reads: RunReads,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) runner: Arc<R>,
    pub(crate) hook: Arc<H>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) queues: Queues,
    /// Whether a loop runs on this runtime.
    pub(crate) running: AtomicBool,
}

/// The queues of a runtime: one per priority in use, and one for notifications.
pub(crate) struct Queues {
    name: String,
    by_priority: RwLock<BTreeMap<u32, String>>,
}

impl Queues {
    pub(crate) fn new(name: &str) -> Self {
        let by_priority = RwLock::new(BTreeMap::from([(DEFAULT_PRIORITY, name.to_owned())]));
        Self { name: name.to_owned(), by_priority }
    }

    /// The queue of doorbells of `priority`.
    pub(crate) fn of_priority(&self, priority: u32) -> String {
        if priority == DEFAULT_PRIORITY { self.name.clone() } else { format!("{}.{priority}", self.name) }
    }

    /// Remembers that `priority` is in use, so that its queue is claimed.
    pub(crate) fn remember(&self, priority: u32) {
        let queue = self.of_priority(priority);
        self.by_priority.write().unwrap_or_else(PoisonError::into_inner).entry(priority).or_insert(queue);
    }

    /// Whether another priority may be used, or `priority` is in use.
    pub(crate) fn admits(&self, priority: u32) -> bool {
        let known = self.by_priority.read().unwrap_or_else(PoisonError::into_inner);
        known.len() < MAX_PRIORITIES || known.contains_key(&priority)
    }

    /// The queues of doorbells in the order in which they are claimed.
    pub(crate) fn in_order(&self) -> Vec<String> {
        self.by_priority.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The queue of terminal notifications.
    pub(crate) fn notifications(&self) -> String {
        format!("{}{NOTIFICATION_SUFFIX}", self.name)
    }
}

impl<R, H> Engine<R, H> {
    /// What lowering a transition of a run takes besides the transition.
    pub(crate) fn lowering<'a>(
        &'a self,
        run_id: &'a RunId,
        record: Option<&'a Bytes>,
        spec: &'a Spec,
        staged: &'a StagedEffects,
    ) -> Lowering<'a> {
        Lowering {
            keys: &self.reads.keys,
            queue_name: &self.settings.queue_name,
            queues: &self.queues,
            open: self.port.open_number(),
            run_id,
            record,
            spec,
            staged,
            notification: None,
            history: self.settings.history,
            attempted: None,
        }
    }

    /// Reserves the id of a job to enqueue.
    pub(crate) fn next_job(&self) -> JobId {
        self.port.next_job_id()
    }

    /// 64 random bits.
    pub(crate) fn entropy(&self) -> u64 {
        self.ids.random() as u64
    }
}

impl<R, H: TerminalHook> Engine<R, H> {
    /// Whether the hook wants to know of `outcome`; one that panics is called, so that nothing is missed.
    pub(crate) fn observes(&self, outcome: &RunOutcome) -> bool {
        std::panic::catch_unwind(AssertUnwindSafe(|| self.hook.observes(outcome))).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_claimed_by_priority() {
        let queues = Queues::new("steps");
        for (priority, queue) in [(1_000, "steps"), (5, "steps.5"), (2_000, "steps.2000")] {
            assert_eq!(queues.of_priority(priority), queue);
            queues.remember(priority);
        }
        assert_eq!(queues.in_order(), ["steps.5", "steps", "steps.2000"]);
        assert_eq!(queues.notifications(), "steps.notifications");
    }

    #[test]
    fn priorities_are_bounded() {
        let queues = Queues::new("steps");
        for priority in 0..63 {
            assert!(queues.admits(priority));
            queues.remember(priority);
        }
        assert!(queues.admits(62) && queues.admits(DEFAULT_PRIORITY) && !queues.admits(63));
    }
}

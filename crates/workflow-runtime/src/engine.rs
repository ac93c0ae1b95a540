//! What every part of one runtime shares: the port, the settings, the user's code, and the rows it reads and writes.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::Semaphore;
use workflow_core::{Effect, Incarnation, JobId, Notification, Run, RunId, SignalId, Transition, Value};
use workflow_effects::{Commit, CommitError, Committer, NotificationRow, Rejected, Spec, StagedEffects};

use crate::decision::Decider;
use crate::ids::IdSource;
use crate::in_hand::InHand;
use crate::lease::Leases;
use crate::lower::{Lowering, released};
use crate::port::{Clock, QueuePort, Settlement};
use crate::reads::{Gathered, RunReads};
use crate::retention::Ends;
use crate::settings::{NOTIFICATION_SUFFIX, Settings};
use crate::signals::{GatheredSlots, Turns};
use crate::{Error, HistoryLevel, Result, RunOutcome, TerminalHook};

/// The priority of runs that do not ask for one.
pub(crate) const DEFAULT_PRIORITY: u32 = 1_000;

/// At most so many priorities of one queue name are in use: each has a queue of its own.
pub const MAX_PRIORITIES: usize = 64;

/// So many deliveries may have given back their slots and not be settled yet.
pub(crate) const UNSETTLED: usize = 1_024;

/// The shared inside of a runtime.
pub(crate) struct Engine<R, H> {
    pub(crate) port: Arc<dyn QueuePort>,
    pub(crate) committer: Committer,
    pub(crate) reads: RunReads,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) decider: Decider,
    pub(crate) runner: Arc<R>,
    pub(crate) hook: Arc<H>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) queues: Queues,
    /// Whose turn it is to change a record or a slot that is contended.
    pub(crate) turns: Turns,
    /// When runs have ended that are to be removed some day.
    pub(crate) ends: Ends,
    /// The runs that this process may be about to write rows or objects of.
    pub(crate) in_hand: InHand,
    /// The deliveries that may have given back their slots and not be settled yet.
    pub(crate) unsettled: Semaphore,
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
        from: &'a Gathered,
        spec: &'a Spec,
        staged: &'a StagedEffects,
        slots: &'a GatheredSlots,
    ) -> Lowering<'a> {
        Lowering {
            keys: &self.reads.keys,
            queue_name: &self.settings.queue_name,
            queues: &self.queues,
            open: self.port.open_number(),
            run_id,
            from,
            spec,
            staged,
            slots,
            drawn: self.drawn(),
            notification: None,
            history: self.settings.history,
            attempted: None,
        }
    }

    /// Reserves the id of a job to enqueue.
    pub(crate) fn next_job(&self) -> JobId {
        self.port.next_job_id()
    }

    /// A number that nobody else has.
    pub(crate) fn drawn(&self) -> SignalId {
        SignalId::new(self.ids.random())
    }

    /// Hands over a commit that throws signals away, and says whether it was applied. One of unknown outcome is an
    /// error and is not looked into: nothing tells whether a signal that is gone was thrown away or has reached a run,
    /// which needs its payload.
    pub(crate) async fn throw_away(&self, commit: Commit) -> Result<bool> {
        match self.port.commit(vec![commit]).await.pop() {
            Some(Ok(())) => Ok(true),
            Some(Err(Rejected::Conflict)) => Ok(false),
            Some(Err(Rejected::Invalid(error) | Rejected::Unknown(error))) => Err(error.into()),
            None => Err(Error::Queue("the store gave no answer to a commit".into())),
        }
    }

    /// Hands a commit over, and says whether it was applied: not if what it was decided on has changed.
    pub(crate) async fn apply(&self, commit: Commit) -> Result<bool> {
        match self.committer.commit(commit).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict | CommitError::Overtaken) => Ok(false),
            Err(CommitError::Invalid(error) | CommitError::Failed(error)) => Err(error.into()),
        }
    }

    /// 64 random bits.
    pub(crate) fn entropy(&self) -> u64 {
        self.ids.random() as u64
    }

    /// Does what follows a transition of `run_id` from `before` that has become durable: what it has let go is removed,
    /// best effort, but for what the history keeps. So is what the history had kept before, as it was
    /// [found](RunReads::retold).
    pub(crate) fn clean_up(&self, run_id: &RunId, before: &Run, transition: &Transition, retold: Vec<Value>) {
        if let Run::Ended(ended) = &transition.next {
            self.ends.note(ended.ended_at);
        }
        let mut values: Vec<Value> = released(transition).cloned().collect();
        values.extend(retold);
        if !values.is_empty() {
            let (reads, run_id, told) = (self.reads.clone(), run_id.clone(), self.step_with_values(before));
            tokio::spawn(async move { reads.let_go(&run_id, told, &values).await });
        }
        for effect in &transition.effects {
            if let Effect::DropDoorbell(job) = effect {
                let (port, job) = (self.port.clone(), job.clone());
                // One that stays is stale when it rings.
                tokio::spawn(async move { drop(port.settle(Settlement::Drop(vec![job])).await) });
            }
        }
    }

    /// The step whose row in the history may name what the record of `run` does. A run that is brought back may have
    /// been executed under another level before.
    fn step_with_values(&self, run: &Run) -> Option<(Incarnation, u32)> {
        match run {
            Run::Active(run) if run.redrive > 0 || self.settings.history == HistoryLevel::Full => {
                Some((run.incarnation, run.step))
            }
            Run::Ended(run) => Some((run.incarnation, run.final_step)),
            Run::Absent | Run::Active(_) => None,
        }
    }
}

impl<R, H: TerminalHook> Engine<R, H> {
    /// The notification of an end that the hook observes. `result` is what the run has resulted in.
    pub(crate) fn notification(
        &self,
        run_id: &RunId,
        spec: &Spec,
        transition: &Transition,
        result: Option<&Bytes>,
    ) -> Option<NotificationRow> {
        let Run::Ended(ended) = &transition.next else { return None };
        let result = ended.result.as_ref().and(result).map(|result| result.to_vec());
        let outcome = RunOutcome::new(run_id, ended, spec, result);
        self.observes(&outcome).then(|| NotificationRow {
            state: Notification::new(self.next_job()),
            status: ended.status,
            error: ended.error.clone(),
            final_step: ended.final_step,
        })
    }

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

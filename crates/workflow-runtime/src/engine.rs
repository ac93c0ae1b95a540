//! What every part of one runtime shares: the port, the settings, the user's code, and the rows it reads and writes.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use workflow_core::{EndedRun, Incarnation, JobId, Run, RunId};
use workflow_effects::{Committer, KeySpace, ObjectValues, Read, Spec};

use crate::ids::IdSource;
use crate::lease::Leases;
use crate::port::{Clock, QueuePort};
use crate::settings::{NOTIFICATION_SUFFIX, Settings};
use crate::{Result, RunOutcome, TerminalHook};

/// The priority of runs that do not ask for one.
pub(crate) const DEFAULT_PRIORITY: u32 = 1_000;

/// The shared inside of a runtime.
pub(crate) struct Engine<R, H> {
    pub(crate) port: Arc<dyn QueuePort>,
    pub(crate) committer: Committer,
    pub(crate) objects: Arc<ObjectValues>,
    pub(crate) keys: KeySpace,
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

    /// The queue of doorbells of `priority`. Remembers that the priority is in use.
    pub(crate) fn of_priority(&self, priority: u32) -> String {
        let known = self.by_priority.read().unwrap_or_else(PoisonError::into_inner).get(&priority).cloned();
        known.unwrap_or_else(|| {
            let mut queues = self.by_priority.write().unwrap_or_else(PoisonError::into_inner);
            queues.entry(priority).or_insert_with(|| format!("{}.{priority}", self.name)).clone()
        })
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

/// A run as it was read: the value, and the bytes that a commit has to expect.
#[derive(Clone)]
pub(crate) struct Gathered {
    pub(crate) run: Run,
    pub(crate) record: Option<Bytes>,
}

impl<R, H> Engine<R, H> {
    /// Reads a run's record.
    pub(crate) async fn gather(&self, run_id: &RunId, read: Read) -> Result<Gathered> {
        let record = self.port.get(&self.keys.run(run_id), read).await?;
        let run = workflow_effects::decode_run(run_id, record.as_deref())?;
        Ok(Gathered { run, record })
    }

    /// Reads what an incarnation was submitted with. Written once, so any read of it is good.
    pub(crate) async fn spec(&self, run_id: &RunId, incarnation: Incarnation) -> Result<Option<Spec>> {
        let bytes = self.port.get(&self.keys.spec(run_id, incarnation), Read::Latest).await?;
        Ok(bytes.map(|bytes| workflow_effects::decode_spec(run_id, &bytes)).transpose()?)
    }

    /// The end of a run as users see it, its result fetched.
    pub(crate) async fn outcome(&self, run_id: &RunId, ended: &EndedRun) -> Result<RunOutcome> {
        let spec = self.spec(run_id, ended.incarnation).await?;
        let result = match &ended.result {
            Some(value) => Some(self.objects.get(value).await?.to_vec()),
            None => None,
        };
        Ok(RunOutcome {
            run_id: run_id.to_string(),
            status: ended.status.into(),
            result,
            error: ended.error.clone(),
            headers: spec.map(|spec| spec.headers.into_iter().collect()).unwrap_or_default(),
            final_step: ended.final_step,
        })
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
        assert_eq!(queues.of_priority(1_000), "steps");
        assert_eq!(queues.of_priority(5), "steps.5");
        assert_eq!(queues.of_priority(2_000), "steps.2000");
        assert_eq!(queues.in_order(), ["steps.5", "steps", "steps.2000"]);
        assert_eq!(queues.notifications(), "steps.notifications");
    }
}

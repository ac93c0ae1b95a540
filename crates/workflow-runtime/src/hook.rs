//! Terminal hooks: what an application is told when a run ends.

use std::collections::HashMap;
use std::future::Future;

use workflow_core::{EndedRun, RunId, Status};
use workflow_effects::{EffectsHandle, EffectsSeal, NotificationRow, Spec, StagedEffects};

use crate::{Result, StepError};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The run's id.
    pub run_id: String,
    /// Succeeded, failed or cancelled.
    pub status: TerminalStatus,
    /// The result of a run that succeeded.
    pub result: Option<Vec<u8>>,
    /// Why it failed or was cancelled.
    pub error: Option<String>,
    /// The headers of the submission.
    pub headers: HashMap<String, String>,
    /// The number of the step that ended it.
    pub final_step: u32,
}

impl RunOutcome {
    /// The end that a run's record and specification tell of, with the bytes of its result.
    pub(crate) fn new(run_id: &RunId, ended: &EndedRun, spec: &Spec, result: Option<Vec<u8>>) -> Self {
        Self {
            run_id: run_id.to_string(),
            status: ended.status.into(),
            result,
            error: ended.error.clone(),
            headers: spec.headers.clone().into_iter().collect(),
            final_step: ended.final_step,
        }
    }

    /// The end that a notification tells of. A run that it has not kept as its end was brought back since, so it had
    /// no result.
    pub(crate) fn told(run_id: &RunId, row: &NotificationRow, spec: &Spec) -> Self {
        Self {
            run_id: run_id.to_string(),
            status: row.status.into(),
            result: None,
            error: row.error.clone(),
            headers: spec.headers.clone().into_iter().collect(),
            final_step: row.final_step,
        }
    }

    /// The end of a run that no runtime has executed, for unit tests of a hook. Change its public fields to taste.
    ///
    /// ```
    /// use workflow_runtime::{RunOutcome, TerminalStatus};
    ///
    /// let mut outcome = RunOutcome::detached("order-1", TerminalStatus::Failed);
    /// outcome.error = Some("card stolen".to_owned());
    /// ```
    pub fn detached(run_id: impl Into<String>, status: TerminalStatus) -> Self {
        Self { run_id: run_id.into(), status, result: None, error: None, headers: HashMap::new(), final_step: 0 }
    }
}

/// The ways in which a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TerminalStatus {
    /// With a result.
    Succeeded,
    /// With an error: the runner failed it, or its attempts were used up.
    Failed,
    /// Given up on purpose.
    Cancelled,
}

impl From<Status> for TerminalStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Succeeded => Self::Succeeded,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

/// Called with the committed end of every run that it observes, at least once.
///
/// What it stages on `effects` commits together with its own acknowledgement, exactly once. A failing hook is called
/// again by the retry policy, [`Settings::hook_attempts`](crate::Settings::hook_attempts) times at most; the run's end
/// stands in any case.
pub trait TerminalHook: Send + Sync {
    /// Takes note of the end of a run.
    ///
    /// # Errors
    ///
    /// A transient [`StepError`] calls the hook again later. A permanent one gives the notification up.
    fn on_termination(
        &self,
        outcome: &RunOutcome,
        effects: &TerminalEffects,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    /// Whether this hook wants to know of `outcome`. Asked before the end commits: an end that nobody observes costs
    /// no notification. A panic counts as `true`.
    fn observes(&self, outcome: &RunOutcome) -> bool {
        let _ = outcome;
        true
    }
}

/// A hook that observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopTerminalHook;

impl TerminalHook for NoopTerminalHook {
    async fn on_termination(&self, _: &RunOutcome, _: &TerminalEffects) -> Result<(), StepError> {
        Ok(())
    }

    fn observes(&self, _: &RunOutcome) -> bool {
        false
    }
}

/// KV writes and deletes that commit together with the hook's acknowledgement. Same limits as a step's effects.
#[derive(Clone, Debug)]
pub struct TerminalEffects(EffectsHandle);

impl TerminalEffects {
    pub(crate) fn sealable() -> (Self, EffectsSeal) {
        let (handle, seal) = EffectsHandle::sealable();
        (Self(handle), seal)
    }

    /// Stages a write. See [`EffectsHandle::put`].
    ///
    /// # Errors
    ///
    /// As [`EffectsHandle::put`].
    pub fn put(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> workflow_effects::Result<()> {
        self.0.put(key, value)
    }

    /// Stages a delete. See [`EffectsHandle::delete`].
    ///
    /// # Errors
    ///
    /// As [`EffectsHandle::delete`].
    pub fn delete(&self, key: impl Into<Vec<u8>>) -> workflow_effects::Result<()> {
        self.0.delete(key)
    }

    /// Effects that belong to no hook call, for unit tests of a hook; see [`TerminalEffects::staged`].
    pub fn detached() -> Self {
        Self(EffectsHandle::detached())
    }

    /// A copy of what has been staged so far.
    pub fn staged(&self) -> StagedEffects {
        self.0.staged()
    }
}

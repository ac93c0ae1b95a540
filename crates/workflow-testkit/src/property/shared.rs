//! A hook that is asked by the model, too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use workflow_runtime::{RunOutcome, StepError, TerminalEffects, TerminalHook};

/// The hook of a process. Clones are the same.
pub(super) struct Shared<H>(Arc<H>);

impl<H: TerminalHook> Shared<H> {
    pub(super) fn new(hook: H) -> Self {
        Self(Arc::new(hook))
    }

    /// Whether the hook is owed a call for `end`: a panic counts as that it is, as the runtime counts it.
    pub(super) fn is_owed(&self, end: &RunOutcome) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.0.observes(end))).unwrap_or(true)
    }
}

impl<H> Clone for Shared<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H: TerminalHook> TerminalHook for Shared<H> {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        self.0.on_termination(outcome, effects).await
    }

    fn observes(&self, outcome: &RunOutcome) -> bool {
        self.0.observes(outcome)
    }
}

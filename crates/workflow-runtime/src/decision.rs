//! The one place where events meet runs, so that whoever asks which pairs were met is told of all.

use std::sync::Arc;

use workflow_core::{Event, EventKind, PhaseKind, Run, Transition, decide};

/// A decision on a run, as [`on_decision`](crate::WorkflowRuntimeBuilder::on_decision) tells of it: the cell of the table
/// of decisions that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Decision {
    /// What happened.
    pub event: EventKind,
    /// What the run was in.
    pub phase: PhaseKind,
    /// Why it was decided so: a name such as `rang_early`, as in the logs.
    pub reason: &'static str,
}

/// Decides, and tells of it.
#[derive(Clone, Default)]
pub(crate) struct Decider {
    observer: Option<Arc<dyn Fn(Decision) + Send + Sync>>,
}

impl Decider {
    pub(crate) fn observed_by(observer: impl Fn(Decision) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)) }
    }

    /// What `event` does to `run`.
    pub(crate) fn decide(&self, run: &Run, event: Event) -> Transition {
        let Some(observer) = &self.observer else { return decide(run, event) };
        let (kind, phase) = (event.kind(), run.phase_kind(event.now()));
        let transition = decide(run, event);
        observer(Decision { event: kind, phase, reason: transition.reason.as_str() });
        transition
    }
}

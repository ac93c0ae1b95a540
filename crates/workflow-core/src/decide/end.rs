//! The end of a run: one transition with everything that belongs to it.

use crate::{Action, ActiveRun, Effect, EndedRun, Reason, Run, Status, Timestamp, Transition, Value};

/// How and when a run ends.
pub(super) struct End {
    pub(super) status: Status,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) at: Timestamp,
    pub(super) dead_letter: bool,
}

impl End {
    /// A failure whose job goes to the dead letters.
    pub(super) fn dead_letter(error: String, at: Timestamp) -> Self {
        Self { status: Status::Failed, result: None, error: Some(error), at, dead_letter: true }
    }
}

pub(super) fn end(active: &ActiveRun, end: End, reason: Reason) -> Transition {
    let action = if end.dead_letter { Action::DeadLetter } else { Action::Ack };
    let next = EndedRun {
        revision: active.revision.saturating_add(1),
        incarnation: active.incarnation,
        status: end.status,
        result: end.result,
        error: end.error,
        final_step: active.step,
        ended_at: end.at,
        final_job: active.job.clone(),
        dead_letter: end.dead_letter,
    };
    Transition {
        next: Run::Ended(next),
        action,
        effects: vec![Effect::RecordStep, Effect::NotifyEnd, Effect::ReleaseValue(active.payload.clone())],
        reason,
    }
}

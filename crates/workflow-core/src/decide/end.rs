//! The end of a run: one transition with everything that belongs to it.

use crate::{Action, ActiveRun, Effect, EndedRun, Phase, Reason, Remains, Run, Status, Timestamp, Transition, Value};

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

    /// An end that somebody asked for.
    pub(super) fn cancelled(error: Option<String>, at: Timestamp) -> Self {
        Self { status: Status::Cancelled, result: None, error, at, dead_letter: false }
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
        redrive: active.redrive,
        remains: (end.status != Status::Succeeded).then(|| remains(active)),
    };
    let mut effects = vec![Effect::RecordStep, Effect::NotifyEnd];
    effects.extend(leave_wait(active));
    if next.remains.is_none() {
        effects.extend(release_step(active));
    }
    Transition { next: Run::Ended(next), action, effects, reason }
}

/// The step in hand, for a redrive to go on from.
fn remains(active: &ActiveRun) -> Remains {
    let phase = match &active.phase {
        Phase::Ready | Phase::BackingOff { .. } => Phase::Ready,
        Phase::Delayed { .. } | Phase::Waiting { .. } => active.phase.clone(),
    };
    Remains { payload: active.payload.clone(), signal: active.signal.clone(), phase }
}

/// What goes with the end of a wait: its keys are free.
pub(super) fn leave_wait(active: &ActiveRun) -> Option<Effect> {
    match &active.phase {
        Phase::Waiting { keys, .. } => Some(Effect::FreeWaiter { keys: keys.clone() }),
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => None,
    }
}

/// What goes with a change that no delivery brings: a doorbell that is still to ring would ring for nobody.
pub(super) fn drop_doorbell(active: &ActiveRun, now: Timestamp) -> Option<Effect> {
    let is_under_way = active.phase.due().is_some_and(|due| due > now);
    is_under_way.then(|| Effect::DropDoorbell(active.job.clone()))
}

/// What goes with the step in hand: the values that it was called with.
pub(super) fn release_step(active: &ActiveRun) -> impl Iterator<Item = Effect> {
    let signal = active.signal.as_ref().map(|signal| &signal.payload);
    [Some(&active.payload), signal].into_iter().flatten().cloned().map(Effect::ReleaseValue)
}

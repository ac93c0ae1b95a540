//! A cancellation: an idle run ends at once, a step in hand ends its run when it has stopped.

use super::end::{End, drop_doorbell, end};
use super::{guarded, revised};
use crate::{Action, ActiveRun, CancelGraceOver, CancelRequest, CancelRequested, Reason, Run, Timestamp, Transition};

pub(super) fn cancel_requested(run: &Run, event: CancelRequested) -> Transition {
    let active = match run {
        Run::Absent => return Transition::keep(run, Action::None, Reason::NoRun),
        Run::Ended(_) => return Transition::keep(run, Action::None, Reason::AlreadyEnded),
        Run::Active(active) => active,
    };
    // A delivery before the due time starts nothing, whoever holds it, and neither does a parked one: it commits the
    // end of its parking first.
    let may_execute = event.in_hand && active.phase.is_due(event.now) && !active.attempts.parked;
    match (&active.cancel, may_execute) {
        (Some(_), true) => Transition::keep(run, Action::None, Reason::CancelPending),
        (Some(first), false) => at_once(active, first, event.now),
        (None, false) => at_once(active, &CancelRequest { reason: event.reason }, event.now),
        (None, true) => Transition {
            next: Run::Active(revised(active, |run| run.cancel = Some(CancelRequest { reason: event.reason }))),
            action: Action::None,
            effects: Vec::new(),
            reason: Reason::CancelRequested,
        },
    }
}

pub(super) fn cancel_grace_over(run: &Run, event: &CancelGraceOver) -> Transition {
    guarded(run, &event.attempt, event.now, |_| Transition::keep(run, Action::Discard, Reason::NotCancelled))
}

/// The end of an idle run, brought by no delivery.
fn at_once(active: &ActiveRun, request: &CancelRequest, at: Timestamp) -> Transition {
    let mut transition = Transition { action: Action::None, ..cancelled(active, request, at) };
    transition.effects.extend(drop_doorbell(active, at));
    transition
}

/// The end of a run that `request` asked for.
pub(super) fn cancelled(active: &ActiveRun, request: &CancelRequest, at: Timestamp) -> Transition {
    end(active, End::cancelled(request.reason.clone(), at), Reason::CancelledOnRequest)
}

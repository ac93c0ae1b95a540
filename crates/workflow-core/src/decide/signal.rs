//! A signal for a run that waits: the wait is over, and the step may start.

use super::end::{drop_doorbell, leave_wait};
use super::{revised, ring};
use crate::{Action, Attempts, Phase, Reason, Run, Signalled, Transition};

pub(super) fn signalled(run: &Run, event: Signalled) -> Transition {
    let Run::Active(active) = run else {
        return Transition::keep(run, Action::None, Reason::NobodyWaits);
    };
    let waits = match &active.phase {
        Phase::Waiting { keys, .. } => keys.contains(&event.signal.key),
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => false,
    };
    let is_meant = active.incarnation == event.incarnation && active.step == event.step;
    if !waits || !is_meant || active.cancel.is_some() {
        return Transition::keep(run, Action::None, Reason::NobodyWaits);
    }
    let next = revised(active, |run| {
        run.phase = Phase::Ready;
        run.signal = Some(event.signal);
        run.job = event.next_job;
        run.attempts = Attempts::default();
    });
    let mut effects: Vec<_> = ring(&next, event.now).into_iter().collect();
    effects.extend(leave_wait(active));
    effects.extend(drop_doorbell(active, event.now));
    Transition { next: Run::Active(next), action: Action::None, effects, reason: Reason::Signalled }
}

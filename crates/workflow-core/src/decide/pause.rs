//! A pause keeps steps from starting, and nothing else from happening; a resumption ends it.

use super::{revised, ring, under_new_job};
use crate::{Action, Effect, Reason, Resumed, Run, Transition};

pub(super) fn pause_requested(run: &Run) -> Transition {
    let keep = |reason| Transition::keep(run, Action::None, reason);
    match run {
        Run::Absent => keep(Reason::NoRun),
        Run::Ended(_) => keep(Reason::AlreadyEnded),
        Run::Active(active) if active.cancel.is_some() => keep(Reason::CancelPending),
        Run::Active(active) if active.paused => keep(Reason::AlreadyPaused),
        Run::Active(active) => Transition {
            next: Run::Active(revised(active, |run| run.paused = true)),
            action: Action::None,
            effects: Vec::new(),
            reason: Reason::Paused,
        },
    }
}

/// A delivery that is in somebody's hands goes on, or comes back: it needs no other doorbell.
pub(super) fn resumed(run: &Run, event: Resumed) -> Transition {
    let keep = |reason| Transition::keep(run, Action::None, reason);
    let active = match run {
        Run::Absent => return keep(Reason::NoRun),
        Run::Ended(_) => return keep(Reason::AlreadyEnded),
        Run::Active(active) if active.cancel.is_some() => return keep(Reason::CancelPending),
        Run::Active(active) if !active.paused => return keep(Reason::NotPaused),
        Run::Active(active) => active,
    };
    let (next, effects): (_, Vec<Effect>) = if event.has_doorbell {
        (revised(active, |run| run.paused = false), Vec::new())
    } else {
        let next = under_new_job(active, event.next_job, |run| run.paused = false);
        let effects = ring(&next, event.now).into_iter().collect();
        (next, effects)
    };
    Transition { next: Run::Active(next), action: Action::None, effects, reason: Reason::Resumed }
}

//! The one decision function: every event in every phase.

mod claim;
mod end;
mod failure;
mod hand_back;
mod outcome;
mod submit;

use crate::{ActiveRun, Attempt, Event, Reason, Run, Transition};

/// Decides what `event` does to `run`. Total and deterministic: late, duplicate and stale events are decisions too.
///
/// The caller commits [`Transition::next`] and its effects in one transaction that expects the record `run` was read
/// from, and only then acts. When the commit is refused it reads the run again and decides again.
pub fn decide(run: &Run, event: Event) -> Transition {
    match event {
        Event::Submitted(event) => submit::submitted(run, event),
        Event::Claimed(event) => claim::claimed(run, event),
        Event::TurnCame(event) => claim::turn_came(run, &event),
        Event::StepReturned(event) => outcome::step_returned(run, event),
        Event::StepFailed(event) => failure::step_failed(run, event),
        Event::HandedBack(event) => hand_back::handed_back(run, event),
    }
}

/// The active run that `attempt` is the current attempt of, or the reason why it is not.
fn current<'a>(run: &'a Run, attempt: &Attempt) -> Result<&'a ActiveRun, Reason> {
    match run {
        Run::Absent => Err(Reason::NoRun),
        Run::Ended(_) => Err(Reason::AlreadyEnded),
        Run::Active(active) => {
            let same_job = active.incarnation == attempt.incarnation && active.job == attempt.job;
            if !same_job {
                Err(Reason::StaleDoorbell)
            } else if active.step != attempt.step || active.attempts.is_late(attempt.deliveries) {
                Err(Reason::LateAttempt)
            } else {
                Ok(active)
            }
        }
    }
}

/// The next revision of an active run, for `change` to alter.
fn revised(active: &ActiveRun, change: impl FnOnce(&mut ActiveRun)) -> Run {
    let mut next = active.clone();
    next.revision = next.revision.saturating_add(1);
    change(&mut next);
    Run::Active(next)
}

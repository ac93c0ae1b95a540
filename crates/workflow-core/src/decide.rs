//! The one decision function: every event in every phase.

mod cancel;
mod claim;
mod end;
mod failure;
mod hand_back;
mod outcome;
mod pause;
mod redrive;
mod signal;
mod submit;

use crate::{Action, ActiveRun, Attempt, Effect, Event, JobId, Phase, Reason, Run, Timestamp, Transition};

/// Decides what `event` does to `run`. Total and deterministic: late, duplicate and stale events are decisions too.
///
/// The caller commits [`Transition::next`] and its effects in one transaction that expects the record `run` was read
/// from, and only then acts. When the commit is refused it reads the run again and decides again.
pub fn decide(run: &Run, event: Event) -> Transition {
    let now = event.now();
    let mut transition = decided(run, event);
    let state = |run: &Run| run.state().map(|(state, _)| state);
    if state(run) != state(&transition.next)
        && let Run::Active(next) = &mut transition.next
    {
        next.since = now;
    }
    transition
}

fn decided(run: &Run, event: Event) -> Transition {
    match event {
        Event::Submitted(event) => submit::submitted(run, event),
        Event::Claimed(event) => claim::claimed(run, event),
        Event::TurnCame(event) => claim::turn_came(run, event),
        Event::StepReturned(event) => outcome::step_returned(run, event),
        Event::StepFailed(event) => failure::step_failed(run, &event),
        Event::HandedBack(event) => hand_back::handed_back(run, &event),
        Event::Signalled(event) => signal::signalled(run, event),
        Event::CancelRequested(event) => cancel::cancel_requested(run, event),
        Event::CancelGraceOver(event) => cancel::cancel_grace_over(run, &event),
        Event::PauseRequested(_) => pause::pause_requested(run),
        Event::Resumed(event) => pause::resumed(run, event),
        Event::RedriveRequested(event) => redrive::redrive_requested(run, event),
        Event::DoorbellMissed(event) => claim::doorbell_missed(run, event),
    }
}

/// `decision` on the active run that `attempt` is the current attempt of, if it may go on. Otherwise the attempt is late,
/// or the run is to be cancelled and ends with it.
fn guarded(
    run: &Run,
    attempt: &Attempt,
    now: Timestamp,
    decision: impl FnOnce(&ActiveRun) -> Transition,
) -> Transition {
    let discard = |reason| Transition::keep(run, Action::Discard, reason);
    let active = match run {
        Run::Absent => return discard(Reason::NoRun),
        Run::Ended(_) => return discard(Reason::AlreadyEnded),
        Run::Active(active) => active,
    };
    if active.incarnation != attempt.incarnation || active.job != attempt.job {
        return discard(Reason::StaleDoorbell);
    }
    if active.step != attempt.step || active.attempts.is_late(attempt.deliveries) {
        return discard(Reason::LateAttempt);
    }
    match (&active.phase, &active.cancel) {
        // No attempt begins before the wait is resolved, so none can end it.
        (Phase::Waiting { .. }, _) => discard(Reason::NotBegun),
        (Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. }, Some(request)) => {
            cancel::cancelled(active, request, now)
        }
        (Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. }, None) => decision(active),
    }
}

/// The next revision of an active run, for `change` to alter.
fn revised(active: &ActiveRun, change: impl FnOnce(&mut ActiveRun)) -> ActiveRun {
    let mut next = active.clone();
    next.revision = next.revision.saturating_add(1);
    change(&mut next);
    next
}

/// The doorbell of `next`, whose job is new: rung at its time, if it needs one.
fn ring(next: &ActiveRun, now: Timestamp) -> Option<Effect> {
    let due = next.phase.due().filter(|due| *due > now);
    next.needs_doorbell().then(|| Effect::EnqueueStep { job: next.job.clone(), due })
}

/// The run under another job, which takes the place of one that is gone or gives way.
fn under_new_job(active: &ActiveRun, job: JobId, change: impl FnOnce(&mut ActiveRun)) -> ActiveRun {
    revised(active, |run| {
        run.job = job;
        run.attempts = run.attempts.carried_to_new_job(run.attempts.used);
        change(run);
    })
}

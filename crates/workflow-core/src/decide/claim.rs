//! A delivery: starts the step, waits, or means nothing.

use super::cancel::cancelled;
use super::end::{End, end, leave_wait};
use super::redrive::put_back;
use super::{guarded, revised, ring, under_new_job};
use crate::{
    Action, ActiveRun, Attempt, Attempts, ClaimVerdict, Claimed, DoorbellMissed, EndedRun, JobId, Phase, Reason, Run,
    Transition, TurnCame,
};

pub(super) fn claimed(run: &Run, event: Claimed) -> Transition {
    let active = match run {
        Run::Absent => return Transition::keep(run, Action::Discard, Reason::NoRun),
        Run::Ended(ended) => return after_the_end(run, ended, event),
        Run::Active(active) => active,
    };
    if active.incarnation != event.incarnation || active.job != event.job {
        return Transition::keep(run, Action::Discard, Reason::StaleDoorbell);
    }
    if active.attempts.is_late(event.deliveries) {
        return Transition::keep(run, Action::Discard, Reason::LateAttempt);
    }
    if let Some(request) = &active.cancel {
        return cancelled(active, request, event.now);
    }
    if event.recorded.as_ref().is_some_and(|recorded| counts(active, recorded)) {
        return Transition::keep(run, Action::Replay, Reason::Replayed);
    }
    match active.phase {
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } if active.paused => {
            held_back(active, event.deliveries, event.next_job)
        }
        Phase::BackingOff { until } | Phase::Delayed { until } if until > event.now => {
            rang_early(active, active.attempts.replaced(event.deliveries), event)
        }
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => due(run, active, &event),
        Phase::Waiting { until: None, .. } => Transition::keep(run, Action::Discard, Reason::NotBegun),
        // Nothing of the step has started, so no delivery that was lost is counted.
        Phase::Waiting { until: Some(until), .. } if until > event.now => {
            rang_early(active, Attempts::default(), event)
        }
        Phase::Waiting { until: Some(_), .. } => timed_out(active, event),
    }
}

/// Whether `recorded` is an attempt of the step in hand that no other has overtaken. Of a step that waits none has begun.
fn counts(active: &ActiveRun, recorded: &Attempt) -> bool {
    let begun = !matches!(active.phase, Phase::Waiting { .. });
    let is_of_step = active.incarnation == recorded.incarnation && active.step == recorded.step;
    begun && is_of_step && active.job == recorded.job && !active.attempts.is_late(recorded.deliveries)
}

/// The delivery of a paused run's step: it is not counted, and nothing rings until the run is resumed. The job that the
/// record names then is not there, so whoever resumes the run knows that this delivery has given it up.
fn held_back(active: &ActiveRun, deliveries: u32, job: JobId) -> Transition {
    let next = revised(active, |run| {
        run.job = job;
        run.attempts = run.attempts.replaced(deliveries);
    });
    Transition { next: Run::Active(next), action: Action::Ack, effects: Vec::new(), reason: Reason::HeldBack }
}

/// A wait that is over without a signal is resolved before the step starts: every attempt sees the same answer. What
/// was lost of the doorbell before that has started nothing. Where the run is paused, that is all.
fn timed_out(active: &ActiveRun, event: Claimed) -> Transition {
    let attempts = if active.paused { Attempts::default() } else { Attempts::next_step_in(event.deliveries) };
    let next = revised(active, |run| {
        run.phase = Phase::Ready;
        run.attempts = attempts;
        if run.paused {
            run.job = event.next_job;
        }
    });
    let action = if next.paused { Action::Ack } else { Action::Execute { attempt: attempts.number(event.deliveries) } };
    let effects = leave_wait(active).into_iter().collect();
    Transition { next: Run::Active(next), action, effects, reason: Reason::TimedOut }
}

fn after_the_end(run: &Run, ended: &EndedRun, event: Claimed) -> Transition {
    let final_job = ended.incarnation == event.incarnation && ended.final_job == event.job;
    if !final_job || !ended.dead_letter {
        Transition::keep(run, Action::Discard, Reason::AlreadyEnded)
    } else if event.requeued {
        put_back(run, ended, event)
    } else {
        Transition::keep(run, Action::DeadLetter, Reason::EndedAsDeadLetter)
    }
}

/// A new doorbell at the due time replaces the one that rang.
fn rang_early(active: &ActiveRun, attempts: Attempts, event: Claimed) -> Transition {
    let next = revised(active, |run| {
        run.job = event.next_job;
        run.attempts = attempts;
    });
    let effects = ring(&next, event.now).into_iter().collect();
    Transition { next: Run::Active(next), action: Action::Ack, effects, reason: Reason::RangEarly }
}

fn due(run: &Run, active: &ActiveRun, event: &Claimed) -> Transition {
    match active.attempts.claim(event.deliveries, event.max_attempts) {
        ClaimVerdict::Late => Transition::keep(run, Action::Discard, Reason::LateAttempt),
        ClaimVerdict::Exhausted => attempts_lost(active, event),
        ClaimVerdict::Park(attempts) => recounted(run, active, attempts, Action::Park, Reason::Suspected),
        ClaimVerdict::Start(attempts) => {
            let action = Action::Execute { attempt: attempts.number(event.deliveries) };
            let reason = if attempts == active.attempts { Reason::Started } else { Reason::StartedAfterLoss };
            recounted(run, active, attempts, action, reason)
        }
    }
}

/// Writes the counters only when they changed: a first delivery costs no commit.
fn recounted(run: &Run, active: &ActiveRun, attempts: Attempts, action: Action, reason: Reason) -> Transition {
    if attempts == active.attempts {
        return Transition::keep(run, action, reason);
    }
    let next = revised(active, |run| run.attempts = attempts);
    Transition { next: Run::Active(next), action, effects: Vec::new(), reason }
}

fn attempts_lost(active: &ActiveRun, event: &Claimed) -> Transition {
    let message = format!(
        "step {} used up its {} attempts: each was lost with its process or its lease",
        active.step, event.max_attempts
    );
    end(active, End::dead_letter(message, event.now), Reason::AttemptsLost)
}

pub(super) fn turn_came(run: &Run, event: TurnCame) -> Transition {
    let TurnCame { attempt, now, next_job } = event;
    guarded(run, &attempt, now, |active| {
        if active.paused {
            return held_back(active, attempt.deliveries, next_job);
        }
        let attempts = Attempts { parked: false, ..active.attempts };
        let action = Action::Execute { attempt: attempts.number(attempt.deliveries) };
        recounted(run, active, attempts, action, Reason::StartedAfterLoss)
    })
}

/// A run whose doorbell somebody took away has another. Nothing tells whether a delivery of the old one started. One
/// that is to be cancelled needs no other to end.
pub(super) fn doorbell_missed(run: &Run, event: DoorbellMissed) -> Transition {
    let active = match run {
        Run::Active(active) if active.job == event.job && active.needs_doorbell() => active,
        Run::Absent | Run::Active(_) | Run::Ended(_) => {
            return Transition::keep(run, Action::None, Reason::NotMissed);
        }
    };
    if let Some(request) = &active.cancel {
        return Transition { action: Action::None, ..cancelled(active, request, event.now) };
    }
    let next = under_new_job(active, event.next_job, |_| {});
    let effects = ring(&next, event.now).into_iter().collect();
    Transition { next: Run::Active(next), action: Action::None, effects, reason: Reason::RungAgain }
}

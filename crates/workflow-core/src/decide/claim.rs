//! A delivery: starts the step, waits, or means nothing.

use super::cancel::cancelled;
use super::end::{End, end, leave_wait};
use super::{guarded, revised};
use crate::{
    Action, ActiveRun, Attempts, ClaimVerdict, Claimed, Effect, EndedRun, JobId, Phase, Reason, Run, Timestamp,
    Transition, TurnCame,
};

pub(super) fn claimed(run: &Run, event: Claimed) -> Transition {
    let active = match run {
        Run::Absent => return Transition::keep(run, Action::Discard, Reason::NoRun),
        Run::Ended(ended) => return after_the_end(run, ended, &event),
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
    match active.phase {
        Phase::BackingOff { until } | Phase::Delayed { until } if until > event.now => {
            rang_early(active, until, active.attempts.replaced(event.deliveries), event.next_job)
        }
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => due(run, active, &event),
        Phase::Waiting { until: None, .. } => Transition::keep(run, Action::Discard, Reason::NotBegun),
        // Nothing of the step has started, so no delivery that was lost is counted.
        Phase::Waiting { until: Some(until), .. } if until > event.now => {
            rang_early(active, until, Attempts::default(), event.next_job)
        }
        Phase::Waiting { until: Some(_), .. } => timed_out(active, &event),
    }
}

/// A wait that is over without a signal is resolved before the step starts: every attempt sees the same answer. What
/// was lost of the doorbell before that has started nothing.
fn timed_out(active: &ActiveRun, event: &Claimed) -> Transition {
    let attempts = Attempts::next_step_in(event.deliveries);
    Transition {
        next: revised(active, |run| {
            run.phase = Phase::Ready;
            run.attempts = attempts;
        }),
        action: Action::Execute { attempt: attempts.number(event.deliveries) },
        effects: leave_wait(active).into_iter().collect(),
        reason: Reason::TimedOut,
    }
}

fn after_the_end(run: &Run, ended: &EndedRun, event: &Claimed) -> Transition {
    let final_job = ended.incarnation == event.incarnation && ended.final_job == event.job;
    if final_job && ended.dead_letter {
        Transition::keep(run, Action::DeadLetter, Reason::EndedAsDeadLetter)
    } else {
        Transition::keep(run, Action::Discard, Reason::AlreadyEnded)
    }
}

/// A new doorbell at the due time replaces the one that rang.
fn rang_early(active: &ActiveRun, until: Timestamp, attempts: Attempts, job: JobId) -> Transition {
    let next = revised(active, |run| {
        run.job = job.clone();
        run.attempts = attempts;
    });
    let effects = vec![Effect::EnqueueStep { job, due: Some(until) }];
    Transition { next, action: Action::Ack, effects, reason: Reason::RangEarly }
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
    Transition { next, action, effects: Vec::new(), reason }
}

fn attempts_lost(active: &ActiveRun, event: &Claimed) -> Transition {
    let message = format!(
        "step {} used up its {} attempts: each was lost with its process or its lease",
        active.step, event.max_attempts
    );
    end(active, End::dead_letter(message, event.now), Reason::AttemptsLost)
}

pub(super) fn turn_came(run: &Run, event: &TurnCame) -> Transition {
    guarded(run, &event.attempt, event.now, |active| {
        let attempts = Attempts { parked: false, ..active.attempts };
        let action = Action::Execute { attempt: attempts.number(event.attempt.deliveries) };
        recounted(run, active, attempts, action, Reason::StartedAfterLoss)
    })
}

//! A delivery: starts the step, waits, or means nothing.

use super::end::{End, end};
use super::{current, revised};
use crate::{
    Action, ActiveRun, Attempts, ClaimVerdict, Claimed, Effect, EndedRun, Phase, Reason, Run, Transition, TurnCame,
};

pub(super) fn claimed(run: &Run, event: Claimed) -> Transition {
    match run {
        Run::Absent => Transition::keep(run, Action::Discard, Reason::NoRun),
        Run::Ended(ended) => after_the_end(run, ended, &event),
        Run::Active(active) => {
            if active.incarnation != event.incarnation || active.job != event.job {
                return Transition::keep(run, Action::Discard, Reason::StaleDoorbell);
            }
            if active.attempts.is_late(event.deliveries) {
                return Transition::keep(run, Action::Discard, Reason::LateAttempt);
            }
            match active.phase {
                Phase::BackingOff { until } | Phase::Delayed { until } if until > event.now => {
                    rang_early(active, event)
                }
                Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => due(run, active, &event),
            }
        }
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

/// A new doorbell at the due time replaces the one that rang. What was lost before this one is counted.
fn rang_early(active: &ActiveRun, event: Claimed) -> Transition {
    let due = active.phase.due();
    let next = revised(active, |run| {
        run.job = event.next_job.clone();
        run.attempts = run.attempts.replaced(event.deliveries);
    });
    Transition {
        next,
        action: Action::Ack,
        effects: vec![Effect::EnqueueStep { job: event.next_job, due }],
        reason: Reason::RangEarly,
    }
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
    match current(run, &event.attempt) {
        Err(reason) => Transition::keep(run, Action::Discard, reason),
        Ok(active) => {
            let attempts = Attempts { parked: false, ..active.attempts };
            let action = Action::Execute { attempt: attempts.number(event.attempt.deliveries) };
            recounted(run, active, attempts, action, Reason::StartedAfterLoss)
        }
    }
}

//! A failed attempt: another one after a pause, or the end.

use super::end::{End, end};
use super::{current, revised};
use crate::{Action, ActiveRun, Effect, FailureKind, Phase, Reason, Run, StepFailed, Transition};

pub(super) fn step_failed(run: &Run, event: StepFailed) -> Transition {
    let active = match current(run, &event.attempt) {
        Ok(active) => active,
        Err(reason) => return Transition::keep(run, Action::Discard, reason),
    };
    match event.failure.kind {
        FailureKind::Permanent => {
            end(active, End::dead_letter(event.failure.message, event.now), Reason::FailedPermanently)
        }
        FailureKind::Transient | FailureKind::Panicked | FailureKind::TimedOut => {
            let attempt = active.attempts.number(event.attempt.deliveries);
            if attempt >= event.max_attempts {
                end(active, End::dead_letter(event.failure.message, event.now), Reason::AttemptsExhausted)
            } else {
                retry(active, attempt, event)
            }
        }
    }
}

fn retry(active: &ActiveRun, attempt: u32, event: StepFailed) -> Transition {
    let delay = event.retry_after.unwrap_or_else(|| event.retry.delay(attempt, event.entropy));
    let until = event.now.after(delay);
    let next = revised(active, |run| {
        run.job = event.next_job.clone();
        run.phase = Phase::BackingOff { until };
        run.attempts = run.attempts.carried_to_new_job(attempt);
    });
    let due = (until > event.now).then_some(until);
    Transition {
        next,
        action: Action::Ack,
        effects: vec![Effect::EnqueueStep { job: event.next_job, due }],
        reason: Reason::Retrying,
    }
}

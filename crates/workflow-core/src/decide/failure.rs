//! A failed attempt: another one after a pause, or the end.

use super::end::{End, end};
use super::{guarded, revised, ring};
use crate::failure::AfterFailure;
use crate::{Action, ActiveRun, AttemptFailed, Attempts, Phase, Reason, Run, Timestamp, Transition};

pub(super) fn step_failed(run: &Run, event: &AttemptFailed) -> Transition {
    guarded(run, &event.attempt, event.now, |active| match event.follow_up(&active.attempts) {
        AfterFailure::GiveUp(reason) => end(active, End::dead_letter(event.failure.message.clone(), event.now), reason),
        AfterFailure::Retry { attempts, until } => retry(active, event, attempts, until),
    })
}

fn retry(active: &ActiveRun, event: &AttemptFailed, attempts: Attempts, until: Timestamp) -> Transition {
    let next = revised(active, |run| {
        run.job = event.next_job.clone();
        run.phase = Phase::BackingOff { until };
        run.attempts = attempts;
    });
    let effects = ring(&next, event.now).into_iter().collect();
    Transition { next: Run::Active(next), action: Action::Ack, effects, reason: Reason::Retrying }
}

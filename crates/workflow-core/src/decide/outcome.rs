//! A runner's answer: the run moves on or ends, and what the step staged commits with it.

use super::end::{End, end};
use super::{current, revised};
use crate::{
    Action, ActiveRun, Attempts, Effect, Outcome, Phase, Reason, Run, Status, StepReturned, Timestamp, Transition,
    Value,
};

pub(super) fn step_returned(run: &Run, event: StepReturned) -> Transition {
    let active = match current(run, &event.attempt) {
        Ok(active) => active,
        Err(reason) => return Transition::keep(run, Action::Discard, reason),
    };
    let now = event.now;
    match event.outcome {
        Outcome::Continue { payload, due } => {
            let due = due.filter(|due| *due > now);
            go_on(
                active,
                event.attempt.deliveries,
                Next { payload, due, inline: event.inline, job: event.next_job, now },
            )
        }
        Outcome::Succeed { result } => ended(active, Status::Succeeded, Some(result), None, now),
        Outcome::Fail { reason } => ended(active, Status::Failed, None, Some(reason), now),
        Outcome::Cancel { reason } => ended(active, Status::Cancelled, None, Some(reason), now),
    }
}

/// What is known of the step that follows.
struct Next {
    payload: Value,
    due: Option<Timestamp>,
    inline: bool,
    job: crate::JobId,
    now: Timestamp,
}

fn go_on(active: &ActiveRun, deliveries: u32, next: Next) -> Transition {
    let Some(step) = active.step.checked_add(1) else {
        let message = format!("step {} is the last a run can have", active.step);
        let mut transition = end(active, End::dead_letter(message, next.now), Reason::StepLimit);
        transition.effects.push(Effect::ReleaseValue(next.payload));
        return transition;
    };
    let inline = next.inline && next.due.is_none();
    let mut effects = vec![Effect::ApplyStaged, Effect::RecordStep];
    let run = revised(active, |run| {
        run.step = step;
        run.payload = next.payload;
        run.phase = next.due.map_or(Phase::Ready, |until| Phase::Delayed { until });
        if inline {
            run.attempts = Attempts::next_step_in(deliveries);
        } else {
            run.attempts = Attempts::default();
            run.job = next.job.clone();
        }
    });
    if !inline {
        effects.push(Effect::EnqueueStep { job: next.job, due: next.due });
    }
    effects.push(Effect::ReleaseValue(active.payload.clone()));
    let (action, reason) = match (inline, next.due) {
        (true, _) => (Action::Advance, Reason::Advanced),
        (false, None) => (Action::Ack, Reason::Continued),
        (false, Some(_)) => (Action::Ack, Reason::Delayed),
    };
    Transition { next: run, action, effects, reason }
}

fn ended(
    active: &ActiveRun,
    status: Status,
    result: Option<Value>,
    error: Option<String>,
    at: Timestamp,
) -> Transition {
    let reason = match status {
        Status::Succeeded => Reason::Succeeded,
        Status::Failed => Reason::Failed,
        Status::Cancelled => Reason::Cancelled,
    };
    let mut transition = end(active, End { status, result, error, at, dead_letter: false }, reason);
    transition.effects.insert(0, Effect::ApplyStaged);
    transition
}

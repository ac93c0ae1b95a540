//! A runner's answer: the run moves on or ends, and what the step staged commits with it.

use super::end::{End, end, release_step};
use super::{guarded, revised, ring};
use crate::{
    Action, ActiveRun, Attempts, CorrelationKey, Effect, JobId, KeyState, Outcome, Phase, Reason, Run, Signal, Status,
    StepReturned, Timestamp, Transition, Value, WaitKey, When,
};

pub(super) fn step_returned(run: &Run, event: StepReturned) -> Transition {
    let StepReturned { attempt, outcome, now, next_job, inline } = event;
    let value = outcome.value().cloned();
    let mut transition = guarded(run, &attempt, now, |active| match outcome {
        Outcome::Continue { payload, when } => match start(when, now) {
            Ok(start) => {
                go_on(active, Next { payload, start, deliveries: attempt.deliveries, inline, job: next_job, now })
            }
            Err(key) => {
                let message = format!("correlation key {:?} has a waiter already", key.as_str());
                end(active, End::dead_letter(message, now), Reason::KeyTaken)
            }
        },
        Outcome::Succeed { result } => ended(active, Status::Succeeded, Some(result), None, now),
        Outcome::Fail { reason } => ended(active, Status::Failed, None, Some(reason), now),
        Outcome::Cancel { reason } => ended(active, Status::Cancelled, None, Some(reason), now),
    });
    // An answer that does not count lets its value go. A late attempt writes nothing, so it releases nothing either:
    // whoever stored the value knows.
    let counts = transition.effects.contains(&Effect::ApplyStaged);
    if !counts && transition.action != Action::Discard {
        transition.effects.extend(value.map(Effect::ReleaseValue));
    }
    transition
}

/// How a step starts.
pub(super) enum Start {
    /// At once, with the signal that ended a wait before it began.
    AtOnce(Option<Signal>, Reason),
    Later(Timestamp),
    OnSignal(Vec<CorrelationKey>, Option<Timestamp>),
}

/// When the next step starts, or the key that another run waits for.
fn start(when: When, now: Timestamp) -> Result<Start, CorrelationKey> {
    match when {
        When::Now => Ok(Start::AtOnce(None, Reason::Continued)),
        When::At(due) if due > now => Ok(Start::Later(due)),
        When::At(_) => Ok(Start::AtOnce(None, Reason::Continued)),
        When::OnSignal { keys, until } => wait(keys, until, now),
    }
}

pub(super) fn wait(keys: Vec<WaitKey>, until: Option<Timestamp>, now: Timestamp) -> Result<Start, CorrelationKey> {
    if let Some(taken) = keys.iter().find(|key| key.state == KeyState::Taken) {
        return Err(taken.key.clone());
    }
    let buffered = keys.iter().find_map(|key| match &key.state {
        KeyState::Buffered(signal) => Some(signal.clone()),
        KeyState::Free | KeyState::Taken => None,
    });
    Ok(match (buffered, until) {
        (Some(signal), _) => Start::AtOnce(Some(signal), Reason::ConsumedBuffered),
        (None, Some(until)) if until <= now => Start::AtOnce(None, Reason::WaitedNoTime),
        (None, until) => Start::OnSignal(keys.into_iter().map(|key| key.key).collect(), until),
    })
}

/// What a start makes of the record and of the slots of its keys.
pub(super) struct Started {
    pub(super) phase: Phase,
    pub(super) signal: Option<Signal>,
    pub(super) slots: Option<Effect>,
    pub(super) reason: Reason,
}

pub(super) fn started(start: Start) -> Started {
    match start {
        Start::AtOnce(signal, reason) => {
            let slots = signal.as_ref().map(|signal| Effect::TakeSignal { key: signal.key.clone() });
            Started { phase: Phase::Ready, signal, slots, reason }
        }
        Start::Later(until) => {
            Started { phase: Phase::Delayed { until }, signal: None, slots: None, reason: Reason::Delayed }
        }
        Start::OnSignal(keys, until) => {
            let slots = Some(Effect::RegisterWaiter { keys: keys.clone() });
            Started { phase: Phase::Waiting { keys, until }, signal: None, slots, reason: Reason::Waiting }
        }
    }
}

/// What is known of the step that follows.
struct Next {
    payload: Value,
    start: Start,
    deliveries: u32,
    inline: bool,
    job: JobId,
    now: Timestamp,
}

fn go_on(active: &ActiveRun, next: Next) -> Transition {
    let Some(step) = active.step.checked_add(1) else {
        let message = format!("step {} is the last a run can have", active.step);
        return end(active, End::dead_letter(message, next.now), Reason::StepLimit);
    };
    let mut effects = vec![Effect::ApplyStaged, Effect::RecordStep];
    let Started { phase, signal, slots, reason } = started(next.start);
    effects.extend(slots);
    let inline = next.inline && phase == Phase::Ready && !active.paused;
    let run = revised(active, |run| {
        run.step = step;
        run.payload = next.payload;
        run.phase = phase;
        run.signal = signal;
        run.attempts = if inline { Attempts::next_step_in(next.deliveries) } else { Attempts::default() };
        if !inline {
            run.job = next.job;
        }
    });
    if !inline {
        effects.extend(ring(&run, next.now));
    }
    effects.extend(release_step(active));
    let (action, reason) = match (inline, reason) {
        (true, Reason::Continued) => (Action::Advance, Reason::Advanced),
        (true, reason) => (Action::Advance, reason),
        (false, reason) => (Action::Ack, reason),
    };
    Transition { next: Run::Active(run), action, effects, reason }
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

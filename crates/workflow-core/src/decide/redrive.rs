//! A redrive: a run that failed or was cancelled goes on, from the step that ended it or from an earlier one.

use super::outcome::{Started, started, wait};
use super::ring;
use crate::{
    Action, ActiveRun, Attempts, Claimed, Effect, EndedRun, JobId, Phase, Reason, RecordedStep, RedriveRequested,
    Remains, Run, Signal, Timestamp, Transition, Value, WaitKey,
};

pub(super) fn redrive_requested(run: &Run, event: RedriveRequested) -> Transition {
    let keep = |reason| Transition::keep(run, Action::None, reason);
    let ended = match run {
        Run::Absent => return keep(Reason::NoRun),
        Run::Active(_) => return keep(Reason::NotEnded),
        Run::Ended(ended) => ended,
    };
    let Some(remains) = &ended.remains else { return keep(Reason::NothingToRedrive) };
    let begun = match event.from {
        Some(earlier) if earlier.step < ended.final_step => Begun::from(earlier),
        Some(later) if later.step > ended.final_step => return keep(Reason::NothingToRedrive),
        // What remains of the step that ended the run also tells whether it had begun.
        Some(_) | None => match Begun::again(ended, remains, event.keys, event.now) {
            Some(begun) => begun,
            None => return keep(Reason::KeyTaken),
        },
    };
    let begun = Begun { payload: event.payload.unwrap_or(begun.payload), ..begun };
    let mut transition = bring_back(ended, remains, begun, event.next_job, event.now);
    transition.effects.extend(ended.dead_letter.then(|| Effect::DropDoorbell(ended.final_job.clone())));
    transition
}

/// An operator put the dead job back into the queue, which asks for a redrive. Another job takes its place, so that it
/// asks only once.
pub(super) fn put_back(run: &Run, ended: &EndedRun, event: Claimed) -> Transition {
    let Some(remains) = &ended.remains else {
        return Transition::keep(run, Action::DeadLetter, Reason::NothingToRedrive);
    };
    let Remains { payload, signal, .. } = remains.clone();
    let begun = Begun { step: ended.final_step, payload, signal, phase: Phase::Ready, slots: None };
    let redriven = bring_back(ended, remains, begun, event.next_job, event.now);
    Transition { action: Action::Ack, reason: Reason::PutBack, ..redriven }
}

/// The step that a redriven run goes on with.
struct Begun {
    step: u32,
    payload: Value,
    signal: Option<Signal>,
    phase: Phase,
    slots: Option<Effect>,
}

/// A step that is over began once, so it waits for nothing.
impl From<RecordedStep> for Begun {
    fn from(RecordedStep { step, payload, signal }: RecordedStep) -> Self {
        Self { step, payload, signal, phase: Phase::Ready, slots: None }
    }
}

impl Begun {
    /// The step that ended the run, which waits again for what it waited for; `None` when another run does by now.
    fn again(ended: &EndedRun, remains: &Remains, keys: Vec<WaitKey>, now: Timestamp) -> Option<Self> {
        let (step, Remains { payload, signal, phase }) = (ended.final_step, remains.clone());
        let Phase::Waiting { until, .. } = phase else {
            return Some(Self { step, payload, signal, phase, slots: None });
        };
        let Started { phase, signal, slots, .. } = started(wait(keys, until, now).ok()?);
        Some(Self { step, payload, signal, phase, slots })
    }
}

fn bring_back(ended: &EndedRun, remains: &Remains, begun: Begun, job: JobId, now: Timestamp) -> Transition {
    let Begun { step, payload, signal, phase, slots } = begun;
    let next = ActiveRun {
        revision: ended.revision.saturating_add(1),
        incarnation: ended.incarnation,
        redrive: ended.redrive.saturating_add(1),
        since: now,
        step,
        job,
        phase,
        payload,
        signal,
        attempts: Attempts::default(),
        cancel: None,
        paused: false,
    };
    let mut effects: Vec<Effect> = ring(&next, now).into_iter().chain(slots).collect();
    let named = [Some(&next.payload), next.signal.as_ref().map(|signal| &signal.payload)];
    let before = [Some(&remains.payload), remains.signal.as_ref().map(|signal| &signal.payload)];
    let superseded = before.into_iter().filter(|value| !named.contains(value)).flatten();
    effects.extend(superseded.cloned().map(Effect::ReleaseValue));
    Transition { next: Run::Active(next), action: Action::None, effects, reason: Reason::Redriven }
}

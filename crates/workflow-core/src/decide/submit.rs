//! A submission: makes the run, or finds it made.

use crate::{Action, ActiveRun, Attempts, Effect, Phase, Reason, Run, Submitted, Transition};

pub(super) fn submitted(run: &Run, event: Submitted) -> Transition {
    match run {
        Run::Absent => first(event),
        Run::Active(_) | Run::Ended(_) if event.stored_input_hash == Some(event.input_hash) => {
            Transition::keep(run, Action::None, Reason::Duplicate)
        }
        Run::Active(_) | Run::Ended(_) => Transition::keep(run, Action::None, Reason::InputMismatch),
    }
}

fn first(event: Submitted) -> Transition {
    let due = event.run_at.filter(|at| *at > event.now);
    let next = ActiveRun {
        revision: 1,
        incarnation: event.incarnation,
        redrive: 0,
        since: event.now,
        step: 0,
        job: event.job.clone(),
        phase: due.map_or(Phase::Ready, |until| Phase::Delayed { until }),
        payload: event.input,
        signal: None,
        attempts: Attempts::default(),
        cancel: None,
        paused: false,
    };
    Transition {
        next: Run::Active(next),
        action: Action::None,
        effects: vec![Effect::RecordSubmission, Effect::EnqueueStep { job: event.job, due }],
        reason: Reason::Submitted,
    }
}

//! A delivery given back at shutdown: the attempt counts as if it had never begun.

use super::{current, revised};
use crate::{Action, Effect, HandedBack, Reason, Run, Transition};

pub(super) fn handed_back(run: &Run, event: HandedBack) -> Transition {
    let active = match current(run, &event.attempt) {
        Ok(active) => active,
        Err(reason) => return Transition::keep(run, Action::Discard, reason),
    };
    let next = revised(active, |run| {
        run.job = event.next_job.clone();
        run.attempts = run.attempts.replaced(event.attempt.deliveries);
    });
    Transition {
        next,
        action: Action::Ack,
        effects: vec![Effect::EnqueueStep {
            job: event.next_job,
            due: active.phase.due().filter(|due| *due > event.now),
        }],
        reason: Reason::HandedBack,
    }
}

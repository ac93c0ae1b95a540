//! A delivery given back at shutdown: the attempt counts as if it had never begun.

use super::{guarded, revised};
use crate::{Action, Effect, HandedBack, Reason, Run, Transition};

pub(super) fn handed_back(run: &Run, event: &HandedBack) -> Transition {
    guarded(run, &event.attempt, event.now, |active| {
        let next = revised(active, |run| {
            run.job = event.next_job.clone();
            run.attempts = run.attempts.replaced(event.attempt.deliveries);
        });
        let due = active.phase.due().filter(|due| *due > event.now);
        let effects = vec![Effect::EnqueueStep { job: event.next_job.clone(), due }];
        Transition { next, action: Action::Ack, effects, reason: Reason::HandedBack }
    })
}

//! A delivery given back at shutdown: the attempt counts as if it had never begun.

use super::{guarded, revised, ring};
use crate::{Action, HandedBack, Reason, Run, Transition};

pub(super) fn handed_back(run: &Run, event: &HandedBack) -> Transition {
    guarded(run, &event.attempt, event.now, |active| {
        let next = revised(active, |run| {
            run.job = event.next_job.clone();
            run.attempts = run.attempts.replaced(event.attempt.deliveries);
        });
        let effects = ring(&next, event.now).into_iter().collect();
        Transition { next: Run::Active(next), action: Action::Ack, effects, reason: Reason::HandedBack }
    })
}

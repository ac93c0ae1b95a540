//! Outcomes that were written down: which of them are applied, and that they can be.

use proptest::prelude::*;
use workflow_core::{Action, ActiveRun, Attempt, Claimed, Event, Phase, Reason, Run, StepReturned};

use super::config;
use super::generators::{active, aimed, attempt, claimed, step_returned};
use super::invariants::checked;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_outcome_is_replayed_only_if_no_attempt_overtook_it(
        run in active(), claim in claimed(), recorded in attempt(), aim: bool,
    ) {
        let Event::Claimed(claim) = aimed(claim, &run) else { unreachable!("a claim") };
        let recorded = if aim { claim.recorded.clone().unwrap_or(recorded) } else { recorded };
        let counts = (recorded.incarnation, recorded.step, &recorded.job) == (run.incarnation, run.step, &run.job)
            && recorded.deliveries > run.attempts.base;
        let current = claim.deliveries > run.attempts.base && run.cancel.is_none();
        let begun = !matches!(run.phase, Phase::Waiting { .. });
        let transition = checked(&Run::Active(run), Event::Claimed(Claimed { recorded: Some(recorded), ..claim }))?;
        prop_assert_eq!(transition.action == Action::Replay, counts && current && begun);
        prop_assert_eq!(transition.reason == Reason::Replayed, transition.action == Action::Replay);
    }

    #[test]
    fn an_outcome_that_is_replayed_counts_as_if_the_runner_had_answered(
        run in active(), claim in claimed(), answer in step_returned(),
    ) {
        let run = ActiveRun { revision: run.revision / 2, ..run };
        let Event::Claimed(claim) = aimed(claim, &run) else { unreachable!("a claim") };
        let replayed = checked(&Run::Active(run.clone()), Event::Claimed(claim.clone()))?;
        if replayed.action != Action::Replay {
            return Ok(());
        }
        let Event::StepReturned(answer) = answer else { unreachable!("an answer") };
        let (incarnation, job) = (claim.incarnation, claim.job);
        let attempt = Attempt { incarnation, step: run.step, job, deliveries: claim.deliveries };
        let applied = checked(&replayed.next, Event::StepReturned(StepReturned { attempt, ..answer }))?;
        prop_assert_ne!(applied.action, Action::Discard);
        prop_assert_ne!(&applied.next, &replayed.next);
        if let (Action::Advance, Run::Active(next)) = (applied.action, &applied.next) {
            prop_assert_eq!(next.attempts.number(claim.deliveries), 1, "the delivery goes on");
            prop_assert!(next.attempts.is_late(claim.deliveries - 1), "the attempt that wrote it down is fenced");
        }
    }
}

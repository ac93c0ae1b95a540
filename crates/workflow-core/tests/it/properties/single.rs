//! What holds for one decision, whatever the run and the event say.

use proptest::prelude::*;
use workflow_core::{
    Action, Attempt, Attempts, ClaimVerdict, Claimed, Event, FailureKind, Phase, Reason, Run, SUSPECT_AFTER, Timestamp,
    TurnCame, decide,
};

use super::config;
use super::generators::{
    active, aimed, attempt_event, attempt_failed, attempt_of, attempts, claimed, ended, event, event_at, number, run,
};
use super::invariants::checked;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_decision_is_total_deterministic_and_consistent(run in run(), event in event(), aim: bool) {
        let event = event_at(&run, event, aim);
        let transition = checked(&run, event.clone())?;
        prop_assert_eq!(&decide(&run, event), &transition);
    }

    #[test]
    fn an_ended_run_absorbs_everything_but_a_redrive(run in ended(), event in event(), aim: bool) {
        let run = Run::Ended(run);
        let event = event_at(&run, event, aim);
        let asks = match &event {
            Event::RedriveRequested(_) => true,
            Event::Claimed(claimed) => claimed.requeued,
            _ => false,
        };
        let transition = decide(&run, event);
        if matches!(transition.reason, Reason::Redriven | Reason::PutBack) {
            prop_assert!(asks, "nobody asked for a redrive");
            return Ok(());
        }
        prop_assert_eq!(&transition.next, &run);
        prop_assert_eq!(transition.effects, []);
        prop_assert!(matches!(transition.action, Action::Discard | Action::DeadLetter | Action::None));
    }

    #[test]
    fn a_claim_starts_an_attempt_within_the_limit_when_it_is_due(run in active(), event in claimed()) {
        let Event::Claimed(claimed) = event else { unreachable!("a claim") };
        let mut run = run;
        run.attempts.lost %= 3;
        let deliveries = claimed.deliveries.max(run.attempts.base.saturating_add(1));
        let max_attempts = claimed.max_attempts.max(1);
        let claimed = Claimed { incarnation: run.incarnation, job: run.job.clone(), deliveries, max_attempts, ..claimed };
        let run = Run::Active(run);
        let transition = checked(&run, Event::Claimed(claimed.clone()))?;
        if let (Action::Execute { .. } | Action::Park, Run::Active(active)) = (transition.action, &run) {
            prop_assert!(active.phase.due().is_none_or(|due| due <= claimed.now), "started before its time");
        }
        if let Action::Execute { attempt } = transition.action {
            prop_assert!((1..=claimed.max_attempts).contains(&attempt), "attempt {attempt}");
            let Run::Active(next) = transition.next else { panic!("started a run that is not active") };
            prop_assert_eq!(next.attempts.number(claimed.deliveries), attempt);
            prop_assert!(next.attempts.lost < SUSPECT_AFTER && !next.attempts.parked, "a suspect started unasked");
            prop_assert!(next.attempts.base + 1 >= claimed.deliveries, "an earlier delivery is not fenced");
        }
    }

    #[test]
    fn a_late_or_stale_attempt_changes_nothing(run in run(), mut event in attempt_event()) {
        let attempt = attempt_of(&mut event).expect("it is about an attempt").clone();
        let is_current = matches!(&run, Run::Active(active)
            if active.incarnation == attempt.incarnation
                && active.job == attempt.job
                && active.step == attempt.step
                && active.attempts.base < attempt.deliveries
                && !matches!(active.phase, Phase::Waiting { .. }));
        let means_nothing = matches!((&run, &event), (Run::Active(active), Event::CancelGraceOver(_))
            if active.cancel.is_none());
        let transition = decide(&run, event);
        prop_assert_eq!(transition.action == Action::Discard, !is_current || means_nothing);
        prop_assert!(is_current || transition.next == run);
    }

    #[test]
    fn a_new_job_or_step_takes_the_counters_along(run in active(), mut event in attempt_event()) {
        let mut run = run;
        run.attempts.base = run.attempts.base.min(u32::MAX - 1);
        run.attempts.parked = false;
        let deliveries = run.attempts.base + 1;
        attempt_of(&mut event).expect("it is about an attempt").deliveries = deliveries;
        let event = aimed(event, &run);
        let transition = decide(&Run::Active(run.clone()), event.clone());
        let Run::Active(next) = transition.next else { return Ok(()) };
        if transition.action == Action::Discard {
            return Ok(());
        }
        if transition.reason == Reason::HeldBack {
            prop_assert_eq!(next.attempts.number(1), run.attempts.number(deliveries), "it is not counted");
        }
        let (number, lost) = (run.attempts.number(deliveries), run.attempts.lost);
        match event {
            Event::StepReturned(_) if transition.action == Action::Advance => {
                prop_assert_eq!((next.attempts.number(deliveries), next.attempts.lost), (1, 0));
                prop_assert_eq!(next.attempts.base, run.attempts.base, "the delivery goes on");
            }
            Event::StepReturned(_) => prop_assert_eq!(next.attempts, Attempts::default()),
            Event::StepFailed(_) => {
                prop_assert_eq!((next.attempts.number(1), next.attempts.lost), (number.saturating_add(1), lost));
            }
            Event::HandedBack(_) => prop_assert_eq!((next.attempts.number(1), next.attempts.lost), (number, lost)),
            Event::TurnCame(_)
            | Event::Submitted(_)
            | Event::Claimed(_)
            | Event::Signalled(_)
            | Event::CancelRequested(_)
            | Event::CancelGraceOver(_)
            | Event::PauseRequested(_)
            | Event::Resumed(_)
            | Event::RedriveRequested(_)
            | Event::DoorbellMissed(_) => {}
        }
    }

    #[test]
    fn a_doorbell_that_starts_nothing_uses_no_attempt(run in active(), event in claimed()) {
        let Event::Claimed(claimed) = event else { unreachable!("a claim") };
        let deliveries = claimed.deliveries.max(run.attempts.base.saturating_add(1));
        let claimed = Claimed { incarnation: run.incarnation, job: run.job.clone(), deliveries, ..claimed };
        let transition = decide(&Run::Active(run.clone()), Event::Claimed(claimed));
        let Run::Active(next) = &transition.next else { return Ok(()) };
        if !matches!(transition.reason, Reason::RangEarly | Reason::HeldBack) {
            return Ok(());
        }
        if let Phase::Waiting { .. } = run.phase {
            prop_assert_eq!(next.attempts, Attempts::default(), "nothing of a step that waits has started");
            return Ok(());
        }
        if let ClaimVerdict::Start(counted) | ClaimVerdict::Park(counted) = run.attempts.claim(deliveries, u32::MAX) {
            prop_assert_eq!(next.attempts.number(1), counted.number(deliveries));
            prop_assert_eq!(next.attempts.lost, counted.lost);
        }
    }

    #[test]
    fn a_parked_delivery_lost_in_the_queue_costs_no_attempt(
        counters in attempts(), lost_in_queue in 0..1_000_u32, max_attempts in number(),
    ) {
        let Attempts { used, lost, .. } = counters;
        let base = counters.base.min(u32::MAX - 1_001);
        let lost = lost.max(SUSPECT_AFTER);
        let parked = Attempts { base, lost, parked: true, ..counters };
        let deliveries = base + 1 + lost_in_queue;
        match parked.claim(deliveries, max_attempts) {
            ClaimVerdict::Park(next) => {
                prop_assert_eq!(next, Attempts { used, base: deliveries - 1, lost, parked: true });
                prop_assert_eq!(next.number(deliveries), parked.number(base + 1));
            }
            ClaimVerdict::Exhausted => prop_assert!(parked.number(base + 1) > max_attempts),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn a_failed_attempt_is_counted_by_the_number_it_started_with(
        run in active(), claim in claimed(), mut failed in attempt_failed(),
    ) {
        let Event::Claimed(claim) = claim else { unreachable!("as drawn") };
        let deliveries = claim.deliveries.max(run.attempts.base.saturating_add(1));
        let (incarnation, step, job) = (run.incarnation, run.step, run.job.clone());
        let max_attempts = u32::MAX;
        let (now, next_job) = (Timestamp::NEVER, claim.next_job.clone());
        let claim = Claimed { incarnation, job: job.clone(), deliveries, max_attempts, now, ..claim };
        let mut started = decide(&Run::Active(run), Event::Claimed(claim));
        failed.attempt = Attempt { incarnation, step, job, deliveries };
        if started.action == Action::Park {
            let turn = TurnCame { attempt: failed.attempt.clone(), now, next_job };
            started = decide(&started.next, Event::TurnCame(turn));
        }
        let Action::Execute { attempt } = started.action else { return Ok(()) };
        failed.failure.kind = FailureKind::Transient;
        failed.max_attempts = attempt;
        let last = decide(&started.next, Event::StepFailed(failed.clone()));
        prop_assert_eq!(last.reason, Reason::AttemptsExhausted);
        failed.max_attempts = attempt.saturating_add(1);
        if let Run::Active(next) = decide(&started.next, Event::StepFailed(failed)).next {
            prop_assert_eq!(next.attempts.used, attempt);
            prop_assert_eq!(next.attempts.parked, next.attempts.lost >= SUSPECT_AFTER);
        } else {
            prop_assert_eq!(attempt, u32::MAX);
        }
    }

    #[test]
    fn a_lost_delivery_that_may_have_started_is_counted_once(counters in attempts(), deliveries in number()) {
        if let ClaimVerdict::Start(next) | ClaimVerdict::Park(next) = counters.claim(deliveries, u32::MAX) {
            let lost = u32::from(!counters.parked && deliveries - 1 > counters.base);
            prop_assert_eq!(next.base, deliveries - 1, "every delivery before it is fenced");
            prop_assert_eq!(next.used, counters.used.saturating_add(lost));
            prop_assert_eq!(next.lost, counters.lost.saturating_add(lost));
            prop_assert_eq!(next.claim(deliveries, u32::MAX), counters.claim(deliveries, u32::MAX), "decided again");
        }
    }
}

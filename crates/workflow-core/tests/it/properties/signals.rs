//! Waits and cancellations, over more than one decision.

use proptest::collection::vec;
use proptest::prelude::*;
use workflow_core::{
    Action, ActiveRun, Attempts, CancelRequest, CancelRequested, Claimed, Effect, Event, JobId, KeyState, Outcome,
    Phase, Reason, Run, Signal, Signalled, Timestamp, When, decide,
};

use super::config;
use super::generators::{
    active, active_in, aimed, attempt_event, claimed, event, outcome, phase, signalled, step_returned, time, waiting,
};
use super::invariants::checked;

/// A run that waits and was asked for nothing else.
fn waiting_run() -> impl Strategy<Value = ActiveRun> {
    active_in(waiting()).prop_map(|run| {
        let revision = run.revision / 2;
        ActiveRun { revision, attempts: Attempts::default(), cancel: None, ..run }
    })
}

/// `event` as a signal on one of the keys that `run` waits for.
fn on_its_key(event: Event, run: &ActiveRun) -> Signalled {
    let Event::Signalled(event) = aimed(event, run) else { unreachable!("a signal") };
    let Phase::Waiting { keys, .. } = &run.phase else { unreachable!("it waits") };
    let signal = Signal { key: keys[event.signal.id.value() as usize % keys.len()].clone(), ..event.signal };
    Signalled { signal, ..event }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_run_that_is_to_be_cancelled_only_ends(
        mut run in active(), reason: Option<String>, events in vec(event(), 1..9),
    ) {
        run.revision /= 2;
        run.cancel = Some(CancelRequest { reason });
        let active = run.clone();
        let mut run = Run::Active(run);
        for event in events {
            run = checked(&run, aimed(event, &active))?.next;
            if let Run::Ended(_) = run {
                break;
            }
        }
    }

    #[test]
    fn a_cancel_ends_what_is_idle_and_asks_what_may_be_in_hand(
        run in active(), reason: Option<String>, in_hand: bool, now in time(),
    ) {
        let before = Run::Active(run.clone());
        let event = Event::CancelRequested(CancelRequested { reason: reason.clone(), in_hand, now });
        let transition = checked(&before, event)?;
        prop_assert_eq!(transition.action, Action::None);
        let first = run.cancel.clone().unwrap_or(CancelRequest { reason });
        match transition.next {
            Run::Active(next) => {
                prop_assert!(in_hand && run.phase.is_due(now) && !run.attempts.parked, "it was idle");
                prop_assert_eq!(next.cancel, Some(first));
            }
            Run::Ended(next) => prop_assert_eq!(next.error, first.reason),
            Run::Absent => prop_assert!(false, "the run is gone"),
        }
    }

    #[test]
    fn a_signal_that_ended_a_wait_is_seen_by_every_attempt(
        run in waiting_run(), event in signalled(), events in vec(prop_oneof![claimed(), attempt_event()], 0..20),
    ) {
        let event = on_its_key(event, &run);
        let step = run.step;
        let mut run = Run::Active(run);
        let transition = checked(&run, Event::Signalled(event.clone()))?;
        prop_assert_eq!(transition.reason, Reason::Signalled);
        run = transition.next;
        for next in events {
            let Run::Active(active) = &mut run else { break };
            if active.step != step {
                break;
            }
            // No job is enqueued twice, but all of these events bring the same along.
            active.job = JobId::from("a");
            prop_assert_eq!(active.signal.as_ref(), Some(&event.signal));
            let next = aimed(next, active);
            let transition = checked(&run, next)?;
            run = transition.next;
        }
    }

    #[test]
    fn a_signal_after_the_end_of_a_wait_is_for_somebody_else(
        run in waiting_run(), first in signalled(), second in signalled(), claim in claimed(), by_signal: bool,
    ) {
        let (first, second) = (on_its_key(first, &run), on_its_key(second, &run));
        let Event::Claimed(claim) = aimed(claim, &run) else { unreachable!("a claim") };
        let claim = Claimed { now: Timestamp::NEVER, ..claim };
        let ending = if by_signal { Event::Signalled(first) } else { Event::Claimed(claim) };
        let resolved = decide(&Run::Active(run), ending);
        if matches!(resolved.reason, Reason::Signalled | Reason::TimedOut) {
            let late = decide(&resolved.next, Event::Signalled(second));
            prop_assert_eq!((late.reason, late.action), (Reason::NobodyWaits, Action::None));
            prop_assert_eq!(late.next, resolved.next);
        } else {
            prop_assert_eq!(resolved.reason, Reason::NotBegun, "a wait without an end");
        }
    }

    #[test]
    fn a_wait_that_timed_out_stays_decided(run in waiting_run(), claim in claimed(), again in claimed(), until in time()) {
        let Phase::Waiting { keys, .. } = run.phase else { unreachable!("it waits") };
        let run = ActiveRun { phase: Phase::Waiting { keys, until: Some(until) }, paused: false, ..run };
        let Event::Claimed(claim) = aimed(claim, &run) else { unreachable!("a claim") };
        let claim = Claimed { now: claim.now.max(until), ..claim };
        let before = Run::Active(run);
        let transition = checked(&before, Event::Claimed(claim.clone()))?;
        prop_assert_eq!((transition.reason, transition.action), (Reason::TimedOut, Action::Execute { attempt: 1 }));
        let Run::Active(started) = &transition.next else { panic!("a step of an ended run started") };
        prop_assert_eq!((&started.phase, &started.signal), (&Phase::Ready, &None));
        // It dies, and is delivered again, by a clock that says anything.
        let Event::Claimed(again) = aimed(again, started) else { unreachable!("a claim") };
        let (deliveries, max_attempts) = (claim.deliveries.saturating_add(1), 2);
        let again = Claimed { deliveries, max_attempts, recorded: None, ..again };
        let redelivered = decide(&transition.next, Event::Claimed(again));
        if deliveries > claim.deliveries {
            prop_assert_eq!(redelivered.action, Action::Execute { attempt: 2 }, "the first attempt counts");
            let Run::Active(next) = &redelivered.next else { panic!("a step of an ended run started") };
            prop_assert_eq!((&next.phase, &next.signal), (&Phase::Ready, &None));
        }
    }

    #[test]
    fn a_wait_takes_the_first_buffered_signal_or_is_entered_at_every_key(run in active_in(phase()), event in step_returned()) {
        let Event::StepReturned(returned) = aimed(event, &run) else { unreachable!("an answer") };
        let Outcome::Continue { when: When::OnSignal { keys, until }, .. } = &returned.outcome else { return Ok(()) };
        let before = Run::Active(ActiveRun { step: run.step / 2, cancel: None, ..run });
        let mut returned = returned.clone();
        returned.attempt.step /= 2;
        let transition = checked(&before, Event::StepReturned(returned.clone()))?;
        let Run::Active(next) = &transition.next else {
            prop_assert_eq!(transition.reason, Reason::KeyTaken);
            prop_assert!(!transition.effects.contains(&Effect::ApplyStaged));
            return Ok(());
        };
        if transition.action == Action::Discard {
            return Ok(());
        }
        prop_assert!(!keys.iter().any(|key| key.state == KeyState::Taken), "the first waiter is left alone");
        let buffered = keys.iter().find_map(|key| match &key.state {
            KeyState::Free | KeyState::Taken => None,
            KeyState::Buffered(signal) => Some(signal),
        });
        prop_assert_eq!(next.signal.as_ref(), buffered);
        let has_time = until.is_none_or(|until| until > returned.now);
        let all = keys.iter().map(|key| key.key.clone()).collect();
        let waits = (buffered.is_none() && has_time).then_some(Phase::Waiting { keys: all, until: *until });
        prop_assert_eq!(&next.phase, &waits.unwrap_or(Phase::Ready));
    }

    #[test]
    fn what_an_answer_brings_along_is_named_or_released(run in active(), event in step_returned(), outcome in outcome()) {
        let Event::StepReturned(returned) = aimed(event, &run) else { unreachable!("an answer") };
        let Some(value) = outcome.value().filter(|value| value.object().is_some()).cloned() else { return Ok(()) };
        let mut returned = returned;
        returned.outcome = outcome;
        let transition = decide(&Run::Active(run), Event::StepReturned(returned));
        let is_named = match &transition.next {
            Run::Absent => false,
            Run::Active(next) => next.payload == value,
            Run::Ended(next) => next.result.as_ref() == Some(&value),
        };
        let is_released = transition.effects.contains(&Effect::ReleaseValue(value));
        // Of a late answer, whoever has stored the value knows.
        prop_assert_eq!(is_named || is_released, transition.action != Action::Discard);
        prop_assert!(!(is_named && is_released));
    }
}

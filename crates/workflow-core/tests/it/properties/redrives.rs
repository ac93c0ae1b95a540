//! Redrives: of the step that ended the run, of an earlier one, and of a dead job that an operator put back.

use proptest::prelude::*;
use workflow_core::{
    Action, ActiveRun, Claimed, Effect, EndedRun, Event, JobId, KeyState, Phase, Reason, RedriveRequested, Remains,
    Run, Status, WaitKey,
};

use super::config;
use super::generators::{
    active, aimed, aimed_at_end, attempt_event, cancel_requested, claimed, ended, redrive_requested, time,
};
use super::invariants::checked;

/// A run that did not succeed, with revisions to come.
fn failed() -> impl Strategy<Value = (EndedRun, Remains)> {
    let failed = ended().prop_map(|run| EndedRun { revision: run.revision / 2, ..run });
    failed.prop_filter_map("a success", |run| run.remains.clone().map(|remains| (run, remains)))
}

/// A redrive that fits `run`.
fn redrive_of(event: Event, run: &EndedRun) -> RedriveRequested {
    let Event::RedriveRequested(event) = aimed_at_end(event, run) else { unreachable!("as drawn") };
    event
}

fn keys_of(phase: &Phase) -> Vec<WaitKey> {
    match phase {
        Phase::Waiting { keys, .. } => {
            keys.iter().map(|key| WaitKey { key: key.clone(), state: KeyState::Free }).collect()
        }
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]

    /// However it ended, its step begins again with what it had.
    #[test]
    fn a_run_that_is_redriven_goes_on_where_it_ended(
        run in active(), event in prop_oneof![attempt_event(), cancel_requested(), claimed()], now in time(),
    ) {
        let run = ActiveRun { revision: run.revision / 2, ..run };
        let over = checked(&Run::Active(run.clone()), aimed(event, &run))?.next;
        let Run::Ended(ended) = &over else { return Ok(()) };
        let keys = keys_of(&run.phase);
        let event = RedriveRequested { from: None, payload: None, keys, now, next_job: JobId::from("after") };
        let redriven = checked(&over, Event::RedriveRequested(event.clone()))?;
        let Run::Active(next) = &redriven.next else {
            prop_assert_eq!((redriven.reason, ended.status), (Reason::NothingToRedrive, Status::Succeeded));
            return Ok(());
        };
        prop_assert_eq!((next.step, &next.payload, &next.signal), (run.step, &run.payload, &run.signal));
        let waits = match run.phase {
            Phase::Ready | Phase::BackingOff { .. } => Phase::Ready,
            Phase::Waiting { until: Some(until), .. } if until <= now => Phase::Ready,
            phase @ (Phase::Delayed { .. } | Phase::Waiting { .. }) => phase,
        };
        prop_assert_eq!(&next.phase, &waits);
        let rival = checked(&redriven.next, Event::RedriveRequested(event))?;
        prop_assert_eq!((rival.reason, &rival.next), (Reason::NotEnded, &redriven.next));
    }

    #[test]
    fn a_redrive_begins_at_an_earlier_step_or_at_the_last((run, remains) in failed(), event in redrive_requested()) {
        let event = redrive_of(event, &run);
        let from = event.from.clone().filter(|from| from.step < run.final_step);
        let before = Run::Ended(run.clone());
        let transition = checked(&before, Event::RedriveRequested(event.clone()))?;
        let Run::Active(next) = &transition.next else {
            let taken = event.keys.iter().any(|key| key.state == KeyState::Taken);
            prop_assert!(from.is_none() && taken && transition.reason == Reason::KeyTaken, "{:?}", transition);
            return Ok(());
        };
        let (step, payload) = match &from {
            Some(from) => (from.step, &from.payload),
            None => (run.final_step, &remains.payload),
        };
        prop_assert_eq!((next.step, &next.payload), (step, event.payload.as_ref().unwrap_or(payload)));
        if let Some(from) = &from {
            prop_assert_eq!((&next.signal, &next.phase), (&from.signal, &Phase::Ready), "it had begun");
        }
        for value in event.payload.iter().chain(from.as_ref().map(|from| &from.payload)) {
            prop_assert!(!transition.effects.contains(&Effect::ReleaseValue(value.clone())) || *value == remains.payload);
        }
    }

    #[test]
    fn a_step_that_the_run_never_came_to_is_not_redriven((run, _) in failed(), event in redrive_requested()) {
        let Event::RedriveRequested(event) = event else { unreachable!("as drawn") };
        let Some(from) = event.from.clone() else { return Ok(()) };
        if from.step <= run.final_step {
            return Ok(());
        }
        let run = Run::Ended(run);
        let transition = checked(&run, Event::RedriveRequested(event))?;
        prop_assert_eq!((transition.reason, &transition.next), (Reason::NothingToRedrive, &run));
    }

    #[test]
    fn a_redriven_wait_takes_the_first_buffered_signal_or_is_entered_again(
        (run, remains) in failed(), event in redrive_requested(),
    ) {
        let Phase::Waiting { keys, until } = &remains.phase else { return Ok(()) };
        let event = RedriveRequested { from: None, ..redrive_of(event, &run) };
        let states: Vec<KeyState> = event.keys.iter().map(|key| key.state.clone()).collect();
        let transition = checked(&Run::Ended(run), Event::RedriveRequested(event.clone()))?;
        let Run::Active(next) = &transition.next else {
            prop_assert!(states.contains(&KeyState::Taken));
            return Ok(());
        };
        prop_assert!(!states.contains(&KeyState::Taken), "the first waiter is left alone");
        let buffered = states.iter().find_map(|state| match state {
            KeyState::Free | KeyState::Taken => None,
            KeyState::Buffered(signal) => Some(signal),
        });
        prop_assert_eq!(next.signal.as_ref(), buffered);
        let has_time = until.is_none_or(|until| until > event.now);
        let waits = Phase::Waiting { keys: keys.clone(), until: *until };
        let expected = if buffered.is_none() && has_time { waits } else { Phase::Ready };
        prop_assert_eq!(&next.phase, &expected);
    }

    #[test]
    fn a_dead_job_that_was_put_back_asks_once((run, remains) in failed(), claim in claimed()) {
        let Event::Claimed(claim) = aimed_at_end(claim, &run) else { unreachable!("a claim") };
        let claim = Claimed { requeued: true, ..claim };
        let dead = Run::Ended(EndedRun { dead_letter: true, ..run });
        let put_back = checked(&dead, Event::Claimed(claim.clone()))?;
        prop_assert_eq!((put_back.reason, put_back.action), (Reason::PutBack, Action::Ack));
        let Run::Active(next) = &put_back.next else { panic!("it was put back") };
        prop_assert_eq!((&next.payload, &next.signal), (&remains.payload, &remains.signal));
        let again = checked(&put_back.next, Event::Claimed(claim))?;
        prop_assert_eq!((again.reason, &again.next), (Reason::StaleDoorbell, &put_back.next));
    }

    #[test]
    fn a_job_that_is_not_dead_redrives_nothing(run in ended(), claim in claimed(), aim: bool) {
        let Event::Claimed(claim) = (if aim { aimed_at_end(claim, &run) } else { claim }) else { unreachable!("a claim") };
        let requeued = aim && !run.dead_letter;
        let run = Run::Ended(run);
        let transition = checked(&run, Event::Claimed(Claimed { requeued, ..claim }))?;
        prop_assert_eq!(&transition.next, &run);
    }
}

//! What every transition must be, seen from the run that it was decided on.

use proptest::prelude::*;
use workflow_core::{
    Action, ActiveRun, Attempts, CorrelationKey, Effect, Event, JobId, Phase, Reason, Remains, Run, Status, Timestamp,
    Transition, Value, decide,
};

type Checked = Result<(), TestCaseError>;

/// The decision, once it was found to be what every decision must be.
pub(crate) fn checked(run: &Run, event: Event) -> Result<Transition, TestCaseError> {
    let now = event.now();
    let transition = decide(run, event);
    check_record(run, &transition)?;
    check_state(run, now, &transition)?;
    check_doorbells(run, now, &transition)?;
    check_end(run, &transition)?;
    check_redrive(run, &transition)?;
    check_pause(run, &transition)?;
    check_wait(run, &transition)?;
    check_signal(run, &transition)?;
    check_cancel(run, &transition)?;
    check_values(run, &transition)?;
    Ok(transition)
}

/// Whether the transition brings a run back from its end.
fn brings_back(transition: &Transition) -> bool {
    matches!(transition.reason, Reason::Redriven | Reason::PutBack)
}

fn active(run: &Run) -> Option<&ActiveRun> {
    match run {
        Run::Active(run) => Some(run),
        Run::Absent | Run::Ended(_) => None,
    }
}

fn step(run: &Run) -> Option<u32> {
    match run {
        Run::Absent => None,
        Run::Active(run) => Some(run.step),
        Run::Ended(run) => Some(run.final_step),
    }
}

/// Revisions and step numbers only rise, and an ended run is left alone, but for a redrive.
fn check_record(run: &Run, transition: &Transition) -> Checked {
    let Transition { next, action, effects, .. } = transition;
    let written = next != run;
    prop_assert_eq!(next.revision(), run.revision() + u64::from(written), "one revision for every write, and no other");
    prop_assert!(written || effects.is_empty(), "effects commit with the record");
    prop_assert!(!matches!(action, Action::Discard | Action::Replay) || !written, "{:?} writes nothing", action);
    prop_assert!(matches!(run, Run::Absent) || next.incarnation() == run.incarnation(), "another submission's run");
    match (step(run), step(next)) {
        (None, after) => prop_assert!(after.is_none_or(|after| after == 0)),
        (Some(before), after) if brings_back(transition) => {
            prop_assert!(after.is_some_and(|after| after <= before), "step {before} was left out for {after:?}");
        }
        (Some(before), after) => {
            let risen = after.and_then(|after| after.checked_sub(before));
            prop_assert!(matches!(risen, Some(0 | 1)), "step {before} became {after:?}");
        }
    }
    if let Run::Ended(_) = run {
        prop_assert_eq!(written, brings_back(transition), "an ended run changed, or did not");
    }
    Ok(())
}

/// A run that goes on knows since when it has been doing what it does.
fn check_state(run: &Run, now: Timestamp, Transition { next, .. }: &Transition) -> Checked {
    let state = |run: &Run| run.state().map(|(state, _)| state);
    if state(run) == state(next) {
        prop_assert_eq!(next.state(), run.state(), "the state is as old as it was");
    } else {
        prop_assert_eq!(next.state().map(|(_, since)| since), Some(now), "the state is new");
    }
    Ok(())
}

/// A run that goes on has a doorbell to come, unless it waits without an end or is paused.
fn check_doorbells(run: &Run, now: Timestamp, transition: &Transition) -> Checked {
    let Transition { next, effects, .. } = transition;
    let rings = effects.iter().filter_map(|effect| match effect {
        Effect::EnqueueStep { job, due } => Some((job, *due)),
        _ => None,
    });
    let rings: Vec<_> = rings.collect();
    let changed_job = |next: &ActiveRun| active(run).is_none_or(|before| before.job != next.job);
    let expected = active(next).filter(|next| changed_job(next) && next.needs_doorbell());
    prop_assert_eq!(rings.len(), usize::from(expected.is_some()), "one doorbell for every new job that needs one");
    if let (Some(next), Some((job, rung))) = (expected, rings.first()) {
        prop_assert_eq!(*job, &next.job);
        prop_assert_eq!(*rung, next.phase.due().filter(|due| *due > now), "a doorbell rings at its phase's time");
        let ends_wait = matches!(next.phase, Phase::Waiting { until: Some(_), .. });
        prop_assert!(!next.paused || ends_wait, "a paused run's step rings");
    }
    if let (Some(before), Some(after)) = (active(run), active(next))
        && before.job == after.job
    {
        prop_assert!(transition.action != Action::Ack, "the run goes on with a job that is done with");
        // Whoever asked has seen it, waiting or in somebody's hands.
        let seen = matches!(transition.reason, Reason::Resumed | Reason::CancelRequested);
        prop_assert!(seen || before.needs_doorbell() || !after.needs_doorbell(), "nothing rings for the run");
    }
    effects.iter().try_for_each(|effect| match effect {
        Effect::DropDoorbell(dropped) => check_dropped(run, transition, dropped),
        _ => Ok(()),
    })
}

/// A doorbell that is dropped was still to ring, or dead, and is in nobody's hands.
fn check_dropped(run: &Run, Transition { next, action, .. }: &Transition, dropped: &JobId) -> Checked {
    prop_assert_eq!(*action, Action::None, "a delivery is settled, not dropped");
    match run {
        Run::Absent => prop_assert!(false, "an absent run has no doorbell"),
        Run::Active(before) => {
            prop_assert_eq!(dropped, &before.job);
            prop_assert!(before.phase.due().is_some(), "there is none that is still to ring");
        }
        Run::Ended(before) => {
            prop_assert_eq!(dropped, &before.final_job);
            prop_assert!(before.dead_letter, "there is none that is dead");
        }
    }
    prop_assert!(active(next).is_none_or(|next| next.job != *dropped), "the run's own doorbell is dropped");
    Ok(())
}

/// An end is told, and keeps what a redrive needs.
fn check_end(run: &Run, Transition { next, action, effects, reason }: &Transition) -> Checked {
    let ends = matches!((run, next), (Run::Active(_), Run::Ended(_)));
    prop_assert_eq!(effects.contains(&Effect::NotifyEnd), ends, "every end is told, and nothing else");
    let (Run::Active(before), Run::Ended(ended)) = (run, next) else { return Ok(()) };
    let by_no_delivery = *action == Action::None && *reason == Reason::CancelledOnRequest;
    let action_of_end = if ended.dead_letter { Action::DeadLetter } else { Action::Ack };
    prop_assert!(*action == action_of_end || by_no_delivery, "{action:?}");
    prop_assert!(!ended.dead_letter || ended.status == Status::Failed, "{:?} is no dead letter", ended.status);
    prop_assert_eq!((ended.redrive, ended.final_step, &ended.final_job), (before.redrive, before.step, &before.job));
    prop_assert_eq!(ended.result.is_some(), ended.status == Status::Succeeded);
    let failed = ended.status != Status::Succeeded;
    let of_step = |remains: &Remains| (remains.payload.clone(), remains.signal.clone());
    let held = failed.then(|| (before.payload.clone(), before.signal.clone()));
    prop_assert_eq!(ended.remains.as_ref().map(of_step), held, "what a redrive goes on from");
    let paused_only = match &before.phase {
        Phase::Ready | Phase::BackingOff { .. } => Phase::Ready,
        phase @ (Phase::Delayed { .. } | Phase::Waiting { .. }) => phase.clone(),
    };
    prop_assert!(ended.remains.as_ref().is_none_or(|remains| remains.phase == paused_only), "{:?}", ended.remains);
    let of_run = named(run).into_iter().filter(|value| effects.contains(&Effect::ReleaseValue((*value).clone())));
    let released = if failed { 0 } else { named(run).len() };
    prop_assert_eq!(of_run.count(), released, "a run that succeeded lets its step go, and no other does");
    Ok(())
}

/// A run that is brought back counts it, and begins its step anew: it holds what the step began with.
fn check_redrive(run: &Run, transition: &Transition) -> Checked {
    let Transition { next, effects, action, reason } = transition;
    let redrive = |run: &Run| match run {
        Run::Absent => 0,
        Run::Active(run) => run.redrive,
        Run::Ended(run) => run.redrive,
    };
    let back = brings_back(transition);
    prop_assert_eq!(redrive(next), redrive(run) + u32::from(back), "one more for every redrive");
    if !back {
        return Ok(());
    }
    let (Run::Ended(ended), Run::Active(active)) = (run, next) else {
        return Err(TestCaseError::fail("nothing is brought back"));
    };
    prop_assert_ne!(&active.job, &ended.final_job, "late deliveries of the end would go on with it");
    prop_assert_eq!((active.attempts, &active.cancel, active.paused), (Attempts::default(), &None, false));
    let applied = [Effect::ApplyStaged, Effect::RecordStep, Effect::NotifyEnd, Effect::RecordSubmission];
    prop_assert!(!applied.iter().any(|effect| effects.contains(effect)), "what was committed stays as it is");
    let Some(remains) = &ended.remains else { return Err(TestCaseError::fail("it had nothing to go on from")) };
    let waited = matches!(remains.phase, Phase::Waiting { .. });
    if active.step == ended.final_step && !waited {
        prop_assert_eq!(&active.signal, &remains.signal, "the step sees another signal");
    }
    let dropped = effects.contains(&Effect::DropDoorbell(ended.final_job.clone()));
    match reason {
        Reason::PutBack => prop_assert!(*action == Action::Ack && active.phase == Phase::Ready && !dropped),
        _ => prop_assert!(*action == Action::None && dropped == ended.dead_letter),
    }
    Ok(())
}

/// While a run is paused nothing starts. A pause and a resumption change nothing else about it.
fn check_pause(run: &Run, transition: &Transition) -> Checked {
    let Transition { next, action, effects, reason } = transition;
    let Some(before) = active(run) else { return Ok(()) };
    if before.paused {
        let starts = matches!(action, Action::Execute { .. } | Action::Advance | Action::Park);
        prop_assert!(!starts, "{:?} while paused", action);
    }
    let Some(after) = active(next) else { return Ok(()) };
    match reason {
        Reason::Paused => {
            let ActiveRun { revision, since, .. } = *after;
            prop_assert_eq!(after, &ActiveRun { revision, since, paused: true, ..before.clone() });
            prop_assert!(!before.paused && effects.is_empty());
        }
        Reason::Resumed => {
            let ActiveRun { revision, since, ref job, attempts, .. } = *after;
            let job = job.clone();
            prop_assert_eq!(after, &ActiveRun { revision, since, job, attempts, paused: false, ..before.clone() });
            prop_assert!(before.paused);
            prop_assert!(effects.iter().all(|effect| matches!(effect, Effect::EnqueueStep { .. })), "{:?}", effects);
            prop_assert!(after.job != before.job || after.attempts == before.attempts, "another's deliveries");
            let counted = |run: &ActiveRun| (run.attempts.used, run.attempts.lost);
            prop_assert_eq!(counted(after), counted(before), "no attempt is lost or won");
        }
        _ => prop_assert_eq!(after.paused, before.paused, "nobody asked"),
    }
    Ok(())
}

/// The keys that a run waits for.
fn waits_for(run: &Run) -> &[CorrelationKey] {
    match active(run).map(|run| &run.phase) {
        Some(Phase::Waiting { keys, .. }) => keys,
        Some(Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. }) | None => &[],
    }
}

/// The slots follow the phase: who begins to wait is entered, and who ceases to is taken out, for every key.
fn check_wait(run: &Run, Transition { next, effects, .. }: &Transition) -> Checked {
    let is_waiting = |run: &Run| active(run).is_some_and(|run| matches!(run.phase, Phase::Waiting { .. }));
    let register = Effect::RegisterWaiter { keys: waits_for(next).to_vec() };
    let free = Effect::FreeWaiter { keys: waits_for(run).to_vec() };
    let begins = (!is_waiting(run) && is_waiting(next)).then_some(register);
    let ceases = (is_waiting(run) && !is_waiting(next)).then_some(free);
    let expected: Vec<Effect> = begins.into_iter().chain(ceases).collect();
    let of_slots = |effect: &&Effect| matches!(effect, Effect::RegisterWaiter { .. } | Effect::FreeWaiter { .. });
    let found: Vec<Effect> = effects.iter().filter(of_slots).cloned().collect();
    prop_assert_eq!(found, expected);
    if is_waiting(run) && is_waiting(next) {
        let same = |run: &Run| active(run).map(|run| (run.step, run.phase.clone()));
        prop_assert_eq!(same(next), same(run), "a wait became another");
    }
    Ok(())
}

/// Every attempt of a step sees the same signal: it changes with the step, or where a wait ends.
fn check_signal(run: &Run, transition: &Transition) -> Checked {
    let Transition { next, action, effects, reason } = transition;
    let taken: Vec<_> = effects.iter().filter(|effect| matches!(effect, Effect::TakeSignal { .. })).collect();
    let Some(after) = active(next) else {
        prop_assert_eq!(taken.len(), 0, "a signal for nobody");
        return Ok(());
    };
    let held = after.signal.as_ref().map(|signal| Effect::TakeSignal { key: signal.key.clone() });
    let Some(before) = active(run) else {
        let waited = matches!(run, Run::Ended(run) if run.final_step == after.step
            && run.remains.as_ref().is_some_and(|remains| matches!(remains.phase, Phase::Waiting { .. })));
        let waits_again = waited && *reason == Reason::Redriven;
        prop_assert_eq!(taken, held.iter().filter(|_| waits_again).collect::<Vec<_>>(), "it had been taken before");
        return Ok(());
    };
    if before.step != after.step {
        prop_assert_eq!(taken, held.iter().collect::<Vec<_>>(), "a buffered signal is in one place");
        return Ok(());
    }
    prop_assert_eq!(taken.len(), 0);
    match reason {
        Reason::Signalled => {
            let signal = after.signal.as_ref().expect("a signal ended the wait");
            prop_assert!(waits_for(run).contains(&signal.key));
            prop_assert_eq!(&after.phase, &Phase::Ready);
        }
        Reason::TimedOut => {
            prop_assert!(next != run, "it is written before the step starts");
            let starts = matches!(action, Action::Execute { .. });
            prop_assert!(starts != before.paused && (starts || *action == Action::Ack), "{action:?}");
            prop_assert_eq!((&after.phase, &after.signal), (&Phase::Ready, &None));
        }
        _ => prop_assert_eq!(&after.signal, &before.signal),
    }
    Ok(())
}

/// Once somebody has asked for the end of a run, all that happens to it is that end, for the first reason given.
fn check_cancel(run: &Run, Transition { next, action, effects, .. }: &Transition) -> Checked {
    let Some(request) = active(run).and_then(|run| run.cancel.as_ref()) else { return Ok(()) };
    let goes_on = matches!(action, Action::Execute { .. } | Action::Advance | Action::Park | Action::Replay);
    prop_assert!(!goes_on, "{action:?}");
    prop_assert!(!effects.contains(&Effect::ApplyStaged));
    if let Run::Ended(ended) = next {
        prop_assert_eq!((ended.status, &ended.error, &ended.result), (Status::Cancelled, &request.reason, &None));
    } else {
        prop_assert_eq!(next, run, "nothing but the end");
    }
    Ok(())
}

/// The values that are objects and that `run` names.
fn named(run: &Run) -> Vec<&Value> {
    let values: Vec<Option<&Value>> = match run {
        Run::Absent => Vec::new(),
        Run::Active(run) => vec![Some(&run.payload), run.signal.as_ref().map(|signal| &signal.payload)],
        Run::Ended(run) => {
            let remains = run.remains.as_ref();
            let signal = remains.and_then(|remains| remains.signal.as_ref());
            vec![run.result.as_ref(), remains.map(|remains| &remains.payload), signal.map(|signal| &signal.payload)]
        }
    };
    values.into_iter().flatten().filter(|value| value.object().is_some()).collect()
}

/// What is released is named no more, and what is named no more is released.
fn check_values(run: &Run, Transition { next, effects, .. }: &Transition) -> Checked {
    let released = |value: &Value| effects.contains(&Effect::ReleaseValue(value.clone()));
    for value in named(next) {
        prop_assert!(!released(value), "{value:?} is named");
    }
    for value in named(run) {
        prop_assert!(released(value) || named(next).contains(&value), "{value:?} is orphaned");
    }
    Ok(())
}

//! What every transition must be, seen from the run that it was decided on.

use proptest::prelude::*;
use workflow_core::{Action, ActiveRun, CorrelationKey, Effect, Phase, Reason, Run, Status, Transition, Value};

type Checked = Result<(), TestCaseError>;

pub(crate) fn check(run: &Run, transition: &Transition) -> Checked {
    check_record(run, transition)?;
    check_doorbells(run, transition)?;
    check_end(run, transition)?;
    check_wait(run, transition)?;
    check_signal(run, transition)?;
    check_cancel(run, transition)?;
    check_values(run, transition)
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

/// Revisions and step numbers only rise, and an ended run is left alone.
fn check_record(run: &Run, Transition { next, action, effects, .. }: &Transition) -> Checked {
    let written = next != run;
    prop_assert_eq!(next.revision(), run.revision() + u64::from(written), "one revision for every write, and no other");
    prop_assert!(written || effects.is_empty(), "effects commit with the record");
    prop_assert!(*action != Action::Discard || !written, "a discarded delivery writes nothing");
    match (step(run), step(next)) {
        (None, after) => prop_assert!(after.is_none_or(|after| after == 0)),
        (Some(before), after) => {
            let risen = after.and_then(|after| after.checked_sub(before));
            prop_assert!(matches!(risen, Some(0 | 1)), "step {before} became {after:?}");
        }
    }
    if let Run::Ended(_) = run {
        prop_assert!(!written, "an ended run changed");
    }
    Ok(())
}

/// A run that goes on has a doorbell to come, unless it waits without an end.
fn check_doorbells(run: &Run, Transition { next, action, effects, .. }: &Transition) -> Checked {
    let rings = effects.iter().filter_map(|effect| match effect {
        Effect::EnqueueStep { job, due } => Some((job, *due)),
        _ => None,
    });
    let rings: Vec<_> = rings.collect();
    let changed_job = |next: &ActiveRun| active(run).is_none_or(|before| before.job != next.job);
    let expected = active(next).filter(|next| changed_job(next) && next.phase.has_doorbell());
    prop_assert_eq!(rings.len(), usize::from(expected.is_some()), "one doorbell for every new job");
    if let (Some(next), Some((job, rung))) = (expected, rings.first()) {
        prop_assert_eq!(*job, &next.job);
        let has_passed = rung.is_none() && !matches!(next.phase, Phase::Waiting { .. });
        prop_assert!(has_passed || *rung == next.phase.due(), "a doorbell rings at its phase's time");
    }
    for effect in effects {
        let Effect::DropDoorbell(dropped) = effect else { continue };
        prop_assert_eq!(*action, Action::None, "a delivery is settled, not dropped");
        let before = active(run).expect("only an active run has a doorbell");
        prop_assert_eq!(dropped, &before.job);
        prop_assert!(before.phase.due().is_some(), "there is none that is still to ring");
        prop_assert!(active(next).is_none_or(|next| next.job != *dropped), "the run's own doorbell is dropped");
    }
    Ok(())
}

fn check_end(run: &Run, Transition { next, action, effects, reason }: &Transition) -> Checked {
    let ends = matches!((run, next), (Run::Active(_), Run::Ended(_)));
    prop_assert_eq!(effects.contains(&Effect::NotifyEnd), ends, "every end is told, and nothing else");
    if let (true, Run::Ended(ended)) = (ends, next) {
        let by_no_delivery = *action == Action::None && *reason == Reason::CancelledOnRequest;
        let action_of_end = if ended.dead_letter { Action::DeadLetter } else { Action::Ack };
        prop_assert!(*action == action_of_end || by_no_delivery, "{action:?}");
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
fn check_signal(run: &Run, Transition { next, action, effects, reason }: &Transition) -> Checked {
    let (Some(before), Some(after)) = (active(run), active(next)) else { return Ok(()) };
    let taken: Vec<_> = effects.iter().filter(|effect| matches!(effect, Effect::TakeSignal { .. })).collect();
    if before.step != after.step {
        let held = after.signal.as_ref().map(|signal| Effect::TakeSignal { key: signal.key.clone() });
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
            prop_assert!(
                next != run && matches!(action, Action::Execute { .. }),
                "it is written before the step starts"
            );
            prop_assert_eq!((&after.phase, &after.signal), (&Phase::Ready, &None));
        }
        _ => prop_assert_eq!(&after.signal, &before.signal),
    }
    Ok(())
}

/// Once somebody has asked for the end of a run, all that happens to it is that end, for the first reason given.
fn check_cancel(run: &Run, Transition { next, action, effects, .. }: &Transition) -> Checked {
    let Some(request) = active(run).and_then(|run| run.cancel.as_ref()) else { return Ok(()) };
    prop_assert!(!matches!(action, Action::Execute { .. } | Action::Advance | Action::Park), "{action:?}");
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
        Run::Ended(run) => vec![run.result.as_ref()],
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

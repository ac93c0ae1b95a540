//! Pauses, resumptions and doorbells that somebody took away, over more than one decision.

use proptest::prelude::*;
use workflow_core::{
    Action, ActiveRun, Attempts, CancelRequest, Claimed, DoorbellMissed, Effect, Event, JobId, PauseRequested, Phase,
    Reason, Resumed, Run, Timestamp, decide,
};

use super::config;
use super::generators::{active, aimed, claimed, doorbell_missed, event, pause_requested, resumed, time};
use super::invariants::checked;

/// A run that goes on, is not to be cancelled, and has revisions to come.
fn run(paused: bool) -> impl Strategy<Value = ActiveRun> {
    active().prop_map(move |run| ActiveRun { revision: run.revision / 2, cancel: None, paused, ..run })
}

/// The doorbells that ring with the transition's commit, and when.
fn rings(effects: &[Effect]) -> Vec<(&JobId, Option<Timestamp>)> {
    let rings = effects.iter().filter_map(|effect| match effect {
        Effect::EnqueueStep { job, due } => Some((job, *due)),
        _ => None,
    });
    rings.collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_pause_that_nothing_happened_in_leaves_no_trace(run in run(false), paused_at in time(), now in time()) {
        let paused = checked(&Run::Active(run.clone()), Event::PauseRequested(PauseRequested { now: paused_at }))?;
        let again = checked(&paused.next, Event::PauseRequested(PauseRequested { now }))?;
        prop_assert_eq!((again.reason, &again.next), (Reason::AlreadyPaused, &paused.next));
        let event = Resumed { has_doorbell: true, now, next_job: JobId::from("next") };
        let resumed = checked(&paused.next, Event::Resumed(event.clone()))?;
        let (revision, since) = (run.revision + 2, now);
        prop_assert_eq!(&resumed.next, &Run::Active(ActiveRun { revision, since, ..run }));
        let again = checked(&resumed.next, Event::Resumed(event))?;
        prop_assert_eq!((again.reason, &again.next), (Reason::NotPaused, &resumed.next));
    }

    /// Whatever happens in the pause, the doorbell rings when the step is due.
    #[test]
    fn a_resumption_rings_at_the_time_of_the_phase(run in run(true), event in event(), now in time()) {
        let next = checked(&Run::Active(run.clone()), aimed(event, &run))?.next;
        let Run::Active(active) = &next else { return Ok(()) };
        if !active.paused || active.cancel.is_some() {
            return Ok(());
        }
        let (has_doorbell, next_job) = (false, JobId::from("after"));
        let event = Event::Resumed(Resumed { has_doorbell, now, next_job: next_job.clone() });
        let resumed = decide(&next, event);
        let due = active.phase.due().filter(|due| *due > now);
        let endless = matches!(active.phase, Phase::Waiting { until: None, .. });
        let expected = if endless { vec![] } else { vec![(&next_job, due)] };
        prop_assert_eq!(rings(&resumed.effects), expected);
    }

    #[test]
    fn a_delivery_that_was_held_back_is_stale_and_rings_for_nobody(run in run(true), claim in claimed()) {
        let Event::Claimed(claim) = aimed(claim, &run) else { unreachable!("a claim") };
        let claim = Claimed { recorded: None, ..claim };
        let held_back = checked(&Run::Active(run.clone()), Event::Claimed(claim.clone()))?;
        if run.attempts.is_late(claim.deliveries) || matches!(run.phase, Phase::Waiting { .. }) {
            return Ok(());
        }
        prop_assert_eq!((held_back.reason, held_back.action), (Reason::HeldBack, Action::Ack));
        prop_assert_eq!(held_back.effects, []);
        let again = checked(&held_back.next, Event::Claimed(claim))?;
        prop_assert_eq!((again.reason, &again.next), (Reason::StaleDoorbell, &held_back.next));
    }

    #[test]
    fn a_run_that_is_to_be_cancelled_is_neither_paused_nor_resumed(
        mut run in active(), event in prop_oneof![pause_requested(), resumed()], reason: Option<String>,
    ) {
        run.cancel = Some(CancelRequest { reason });
        let run = Run::Active(run);
        let transition = checked(&run, event)?;
        prop_assert_eq!((transition.reason, &transition.next), (Reason::CancelPending, &run));
    }

    #[test]
    fn a_doorbell_that_is_missed_rings_again_once(run in active(), event in doorbell_missed()) {
        let run = ActiveRun { revision: run.revision / 2, ..run };
        let asleep = match run.phase {
            Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => run.paused && run.cancel.is_none(),
            Phase::Waiting { until, .. } => until.is_none(),
        };
        let needed = !asleep;
        prop_assert_eq!(run.needs_doorbell(), needed);
        let Event::DoorbellMissed(event) = aimed(event, &run) else { unreachable!("as drawn") };
        let before = Run::Active(run.clone());
        let other = DoorbellMissed { job: JobId::from("other"), ..event.clone() };
        prop_assert_eq!(checked(&before, Event::DoorbellMissed(other))?.reason, Reason::NotMissed);
        let missed = checked(&before, Event::DoorbellMissed(event.clone()))?;
        match &missed.next {
            next if !needed => prop_assert_eq!((missed.reason, next), (Reason::NotMissed, &before)),
            Run::Active(next) => {
                prop_assert_eq!(missed.reason, Reason::RungAgain);
                prop_assert_eq!(rings(&missed.effects).len(), 1);
                let Attempts { used, lost, .. } = run.attempts;
                prop_assert_eq!((next.attempts.used, next.attempts.lost, next.attempts.base), (used, lost, 0));
                let (revision, job, attempts) = (next.revision, next.job.clone(), next.attempts);
                prop_assert_eq!(next, &ActiveRun { revision, job, attempts, ..run });
            }
            Run::Absent | Run::Ended(_) => prop_assert_eq!(missed.reason, Reason::CancelledOnRequest),
        }
        let again = checked(&missed.next, Event::DoorbellMissed(event))?;
        prop_assert_eq!((again.reason, &again.next), (Reason::NotMissed, &missed.next));
    }
}

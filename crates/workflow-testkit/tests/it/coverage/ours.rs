//! Every event meets a run in every phase in which it can without a race, and the rest is named.

use std::collections::BTreeSet;

use workflow_runtime::{EventKind, PhaseKind};
use workflow_testkit::Coverage;

use super::page::not_on_it;
use super::phases::{Act, Stage};

/// What anybody may do, in every phase.
const WISHES: &[&[Act]] = &[
    &[Act::Submit],
    &[Act::Signal],
    &[Act::Cancel],
    &[Act::Pause],
    &[Act::Resume],
    &[Act::Redrive],
    &[Act::Ring],
    &[Act::Miss],
];

/// What becomes of a step that is in hand.
const ATTEMPTS: &[&[Act]] = &[
    &[Act::Return],
    &[Act::Fail],
    &[Act::HandBack],
    &[Act::TakeTooLong],
    &[Act::Pause, Act::Return],
    &[Act::Pause, Act::Fail],
    &[Act::Pause, Act::HandBack],
    &[Act::Die, Act::Return],
    &[Act::Die, Act::Pause, Act::Return],
    &[Act::Die, Act::Cancel, Act::Return],
    &[Act::Die, Act::Pause, Act::Cancel, Act::Return],
];

/// Events, phases, and why the ones do not meet the others.
type Gap = (&'static [EventKind], &'static [&'static [PhaseKind]], &'static str);

/// The pairs that nothing above brings about, and why. Races do, and the decisions are in the table all the same.
const GAPS: &[Gap] = &[
    (
        &[EventKind::Signalled],
        &[&[PhaseKind::Absent], PhaseKind::STARTABLE, PhaseKind::PAUSED_STARTABLE, CANCELLING, PhaseKind::ENDED],
        "a signal comes to the run that the slot of its key names, and that one waits",
    ),
    (
        &[EventKind::RedriveRequested],
        &[&[PhaseKind::Absent], PhaseKind::ACTIVE],
        "a run is asked whether it has ended before it is brought back",
    ),
    (
        &[EventKind::DoorbellMissed],
        &[&[PhaseKind::Absent], PhaseKind::PAUSED_STARTABLE, WITHOUT_END, PhaseKind::ENDED],
        "nobody looks for the doorbell of a run that needs none",
    ),
    (
        &[EventKind::TurnCame],
        &[&[PhaseKind::Ready, PhaseKind::Signalled, PhaseKind::PausedReady, PhaseKind::PausedSignalled], EARLY],
        "whoever waits for its turn is parked, or its time has come",
    ),
    (
        &[EventKind::StepReturned, EventKind::StepFailed, EventKind::HandedBack],
        &[EARLY],
        "no step begins before its time",
    ),
    (&[EventKind::TurnCame], &[CANCELLING], "a cancel ends the run of a suspect that is parked at once"),
    (
        &[EventKind::StepReturned, EventKind::StepFailed],
        &[&[PhaseKind::Parked, PhaseKind::PausedParked]],
        "a suspect that is parked does not execute",
    ),
];

const CANCELLING: &[PhaseKind] = &[PhaseKind::ToBeCancelled, PhaseKind::PausedToBeCancelled];
const WITHOUT_END: &[PhaseKind] = &[PhaseKind::WaitingWithoutEnd, PhaseKind::PausedWaitingWithoutEnd];
const EARLY: &[PhaseKind] = &[PhaseKind::BackingOffEarly, PhaseKind::DelayedEarly];

/// The page has no run in these phases that has lost deliveries before.
const OF_SUSPECTS: [&str; 4] = [
    "Claimed, ready: suspected",
    "Claimed, backing off, due: started_after_loss",
    "Claimed, delayed, due: suspected",
    "Claimed, signalled: suspected",
];

/// Whether the run of a stage has a step in hand, or one that is parked.
fn is_in_hand(phase: PhaseKind) -> bool {
    use PhaseKind as P;
    let paused = [P::PausedReady, P::PausedParked, P::PausedSignalled, P::PausedToBeCancelled];
    let others = [P::Ready, P::BackingOffDue, P::DelayedDue, P::Parked, P::Signalled, P::ToBeCancelled];
    paused.contains(&phase) || others.contains(&phase)
}

async fn exercise(phase: PhaseKind, acts: &[Act]) -> Coverage {
    let mut stage = Stage::of(phase).await;
    for act in acts {
        stage.act(*act).await;
    }
    stage.end()
}

#[tokio::test(start_paused = true)]
async fn every_event_meets_every_phase_but_for_those_that_take_a_race() {
    let mut coverage = Coverage::new();
    for phase in PhaseKind::ALL {
        let attempts = if is_in_hand(phase) { ATTEMPTS } else { &[] };
        for acts in WISHES.iter().chain(attempts) {
            coverage.merge(&exercise(phase, acts).await);
        }
    }
    println!("{coverage}");
    let missing: BTreeSet<_> = coverage.missing().into_iter().collect();
    let named = GAPS.iter().flat_map(|(events, phases, _)| {
        let phases = phases.concat();
        events.iter().flat_map(move |event| phases.clone().into_iter().map(move |phase| (*event, phase)))
    });
    assert_eq!(missing, named.collect::<BTreeSet<_>>());
    assert_eq!(not_on_it(&coverage), OF_SUSPECTS);
}

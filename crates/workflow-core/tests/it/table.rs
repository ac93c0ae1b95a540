//! The decision table: every event in every phase, written to `docs/state-machine.md` and compared with it.

mod cases;
mod document;
mod fixtures;
mod notification;
mod reasons;
mod render;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use workflow_core::{Action, Reason, decide};

use self::cases::Kind;
use self::fixtures::Stage;

/// Compares `text` with the file at `path` below the repository's root, or writes it there when `UPDATE` is set to 1.
fn check(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        std::fs::write(&file, text).expect("the document can be written");
        return;
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    if stored.replace("\r\n", "\n") == text {
        return;
    }
    let line = stored.lines().zip(text.lines()).take_while(|(stored, now)| stored == now).count();
    let shown = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    panic!(
        "{path} does not say what the core decides. Line {} reads\n  {}\nand should read\n  {}\n\
         If the new decisions are meant, run `cargo xtask fix` and review the difference.",
        line + 1,
        shown(&stored),
        shown(text)
    );
}

#[test]
fn the_document_says_what_is_decided() {
    check("docs/state-machine.md", &document::write());
}

#[test]
fn every_reason_occurs_in_a_table() {
    let of_runs = decisions().map(|(_, _, transition)| transition.reason);
    let found: BTreeSet<&str> = of_runs.chain(notification::reasons()).map(Reason::as_str).collect();
    let all: BTreeSet<&str> = reasons::ALL.iter().map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(found, all);
    assert_eq!(all.len(), reasons::ALL.len(), "two reasons share a name");
}

#[test]
fn every_pair_that_can_be_current_answers_more_than_discard() {
    let mut answers: BTreeMap<(Kind, Stage), BTreeSet<bool>> = BTreeMap::new();
    for (kind, stage, transition) in decisions() {
        answers.entry((kind, stage)).or_default().insert(transition.action == Action::Discard);
    }
    assert_eq!(answers.len(), Kind::ALL.len() * Stage::ALL.len());
    for ((kind, stage), answers) in answers {
        let only_discard = !answers.contains(&false);
        assert_eq!(only_discard, always_late(kind, stage), "{kind:?} in phase {:?}", stage.name());
    }
}

/// The pairs in which whatever rings or answers is left over from something that is settled already.
fn always_late(kind: Kind, stage: Stage) -> bool {
    match (kind, stage) {
        // Nothing that is delivered.
        (
            Kind::Submitted
            | Kind::Signalled
            | Kind::CancelRequested
            | Kind::PauseRequested
            | Kind::Resumed
            | Kind::RedriveRequested
            | Kind::DoorbellMissed,
            _,
        ) => false,
        // A run without a record has no current doorbell and no attempt.
        (_, Stage::Absent) => true,
        // A wait without an end has no doorbell.
        (Kind::Claimed, Stage::WaitingWithoutEnd | Stage::PausedWaitingWithoutEnd) => true,
        // The end is committed; only a dead letter's doorbell has its settlement left to repeat, or rings anew.
        (Kind::Claimed, stage) => Stage::ENDED.contains(&stage) && stage != Stage::DeadLetter,
        // Only a run that is to be cancelled has a token that fired.
        (Kind::CancelGraceOver, stage) => !matches!(stage, Stage::ToBeCancelled | Stage::PausedToBeCancelled),
        // A step begins once its wait is resolved.
        (Kind::TurnCame | Kind::StepReturned | Kind::StepFailed | Kind::HandedBack, stage) => {
            [Stage::ENDED, Stage::WAITING, Stage::PAUSED_WAITING].iter().any(|late| late.contains(&stage))
        }
    }
}

fn decisions() -> impl Iterator<Item = (Kind, Stage, workflow_core::Transition)> {
    cases::all().into_iter().flat_map(|case| {
        Stage::ALL.iter().map(move |&stage| {
            let (run, event) = case.at(stage);
            (Kind::of(&event), stage, decide(&run, event))
        })
    })
}

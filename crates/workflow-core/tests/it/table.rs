//! The decision table: every event in every phase, written to `docs/state-machine.md` and compared with it.

mod cases;
mod document;
mod fixtures;
mod notification;
mod reasons;
mod render;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use workflow_core::{Action, EventKind as Kind, PhaseKind as Stage, Reason, decide};

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
fn what_is_left_over_is_discarded_and_nothing_else_always_is() {
    let mut answers: BTreeMap<(Kind, Stage), BTreeSet<bool>> = BTreeMap::new();
    for (kind, stage, transition) in decisions() {
        answers.entry((kind, stage)).or_default().insert(transition.action == Action::Discard);
    }
    assert_eq!(answers.len(), Kind::ALL.len() * Stage::ALL.len());
    for ((kind, stage), answers) in answers {
        let only_discard = !answers.contains(&false);
        assert_eq!(only_discard, kind.is_left_over(stage), "{kind:?} in phase {:?}", stage.name());
    }
}

#[test]
fn the_runs_of_the_table_are_in_the_phases_that_it_says() {
    for stage in Stage::ALL {
        assert_eq!(fixtures::run_in(stage).phase_kind(fixtures::NOW), stage);
    }
}

fn decisions() -> impl Iterator<Item = (Kind, Stage, workflow_core::Transition)> {
    cases::all().into_iter().flat_map(|case| {
        Stage::ALL.iter().map(move |&stage| {
            let (run, event) = case.at(stage);
            (event.kind(), stage, decide(&run, event))
        })
    })
}

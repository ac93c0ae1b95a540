//! The table of a coverage, and its marks on the page of all decisions.

use std::path::Path;

use workflow_runtime::{Decision, EventKind, NoopTerminalHook, PhaseKind, RunSpec, StepOutcome};
use workflow_testkit::{Coverage, Sim};

use crate::scripted::{RUN, Scripted};

/// The page of all decisions.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/state-machine.md");
    std::fs::read_to_string(path).unwrap().replace("\r\n", "\n")
}

/// The decisions that are in no row of the page: it has one run for each phase.
pub(super) fn not_on_it(coverage: &Coverage) -> Vec<String> {
    let page = page();
    let is_on_it = |decision| {
        let mut alone = Coverage::new();
        alone.add(decision);
        marked(&alone, &page).next().is_some()
    };
    let decisions = coverage.decisions().map(|(decision, _)| decision).filter(|decision| !is_on_it(*decision));
    decisions.map(|Decision { event, phase, reason, .. }| format!("{event}, {phase}: {reason}")).collect()
}

/// The lines that a mark changes.
fn marked<'a>(coverage: &Coverage, page: &'a str) -> impl Iterator<Item = (&'a str, String)> + use<'a> {
    let marked: Vec<String> = coverage.mark(page).lines().map(str::to_owned).collect();
    // The summary and an empty line are new.
    let new = marked.iter().position(|line| line.contains("pairs of event and phase")).unwrap();
    let rest: Vec<String> = marked[..new - 1].iter().chain(&marked[new + 1..]).cloned().collect();
    assert_eq!(rest.len(), page.lines().count());
    page.lines().zip(rest).filter(|(before, after)| before != after)
}

/// A run that succeeds, is submitted again, and paused when it is too late.
fn simulated() -> Coverage {
    Sim::run(1, |sim| async move {
        let runner = Scripted::new(|_| async { Ok(StepOutcome::Succeed { result: Vec::new() }) });
        let runtime = sim.start(runner, NoopTerminalHook);
        let spec = RunSpec { run_id: Some(RUN.to_owned()), ..RunSpec::default() };
        runtime.submit(spec.clone()).await.unwrap();
        runtime.wait(RUN).await.unwrap();
        runtime.submit(spec).await.unwrap();
        runtime.pause(RUN).await.unwrap();
    })
}

#[test]
fn a_phase_is_marked_where_it_was_decided_for_the_reason_of_the_row() {
    let coverage = simulated();
    let page = page();
    let lines: Vec<String> = marked(&coverage, &page).map(|(_, line)| line).collect();
    for (row, phases) in [
        ("| any but same input, to run later; other input, to run later ", "| absent ✓ |"),
        ("| any but other input; other input, to run later ", "| any active; any end ✓ 1 of 6 |"),
        ("| any but outcome recorded | the next delivery ", "| ready ✓; delayed, due; signalled |"),
    ] {
        let is_marked = |line: &&String| line.starts_with(row) && line.contains(phases);
        assert_eq!(lines.iter().filter(is_marked).count(), 1, "{row}: {lines:#?}");
    }
    let stripped = |line: &str| line.replace(" ✓ 1 of 6", "").replace(" ✓ 1 of 27", "").replace(" ✓", "");
    for (before, after) in marked(&coverage, &page) {
        assert_eq!(stripped(&after), before);
    }
    assert!(
        coverage.mark(&page).contains("\n\n5 of 266 pairs of event and phase were exercised. A phase is marked (✓)")
    );
}

#[test]
fn a_page_that_is_none_stays_as_it_is() {
    for text in
        ["", "# A page\n\n| a | b |\n| --- | --- |\n| ready | `Started` |\n", "### `Claimed`\n\n| phases | reason |\n"]
    {
        assert_eq!(simulated().mark(text), text);
    }
}

#[test]
fn a_table_tells_how_often_each_pair_was_met() {
    let once = simulated();
    let mut twice = once.clone();
    twice.merge(&once);
    for (event, phase, count) in [
        (EventKind::Submitted, PhaseKind::Absent, 1),
        (EventKind::Submitted, PhaseKind::Succeeded, 1),
        (EventKind::Claimed, PhaseKind::Ready, 1),
        (EventKind::StepReturned, PhaseKind::Ready, 1),
        (EventKind::PauseRequested, PhaseKind::Succeeded, 1),
        (EventKind::Signalled, PhaseKind::Ready, 0),
    ] {
        assert_eq!((once.count(event, phase), twice.count(event, phase)), (count, 2 * count), "{event} {phase}");
    }
    assert_eq!(once.missing().len(), 266 - 5);
    assert_eq!(Coverage::new().missing().len(), 266);
    let text = twice.to_string();
    let rows: Vec<&str> = text.lines().skip(2).collect();
    let width = rows[0].chars().count();
    assert!(rows.iter().all(|row| row.chars().count() == width), "{text}");
    assert_eq!(rows.len(), 2 + PhaseKind::ALL.len());
    let absent: Vec<&str> = rows[2].split('|').map(str::trim).collect();
    assert_eq!(absent, ["", "absent", "2", "", "", "", "", "", "–", "–", "", "–", "–", "–", "–", ""]);
}

#[test]
fn a_table_is_written_below_folders_that_are_not_there() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coverage");
    drop(std::fs::remove_dir_all(&folder));
    let (coverage, path) = (simulated(), folder.join("of/runs.md"));
    for _ in 0..2 {
        coverage.write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), coverage.to_string());
    }
    assert!(coverage.write(&folder).is_err());
}

//! The text of `docs/state-machine.md`: how to read it, both tables, and a sentence for every reason.

use workflow_core::{EventKind as Kind, PhaseKind as Stage, decide};

use super::cases::{self, Case};
use super::{notification, reasons, render};

const INTRODUCTION: &str = "\
# The state machine

<!-- Written by a test of workflow-core. `cargo xtask fix` rewrites it; do not edit it by hand. -->

Every change of a run is one call of `decide(run, event)`, and these are its answers: every kind of event, in the
variations that matter, in every phase. A test compares this page with the code, so a changed decision is a changed
line here and is reviewed as such.

How to read a row: when **event** happens, reported by **delivery**, to a run in one of the **phases**, the transition
writes **next** and the **effects** in one commit. Once that is durable, the delivery at hand is treated as **action**
says. **Reason** says why; [Reasons](#reasons) has a sentence for each.

- *early* and *due* tell whether the time of the phase is still to come: it is 10 s ahead, or 5 s past.
- The run's step is 3 and its job *current*; the job that the event brings along is *new*. At the step limit the step
  is the highest number there is.
- Counters are written used/base/lost. The number of an attempt is used + (deliveries of the job − base). A run that
  backs off has used two attempts of five, of which one was lost (2/0/1), a parked one has lost two (2/2/2 parked), the
  others none (0/0/0).
- Deliveries lost since the counters were written cost one attempt, however many they are: only the first of them can
  have started, for each later one commits its count before it starts.
- A run that waits does so for the keys *a* and *b*. A run that is *signalled*, or *to be cancelled*, is ready and has a
  signal on *a*; somebody asked for the end of the latter while the step was in hand.
- A run that is *paused* starts no step. One that was in hand goes on, so *paused, ready* may mean either. Where a paused
  run backs off or is delayed, that is early.
- A run that is over *succeeded*; *failed*, because its runner said so; failed by errors and left its job as a *dead
  letter*; or was cancelled when a step could start, while it waited, or while it was delayed (*cancelled ready*,
  *cancelled waiting*, *cancelled delayed*). Unless it succeeded it keeps the payload, the signal and the phase of its last
  step for a *redrive*, which brings it back. A step that failed or could start has a signal on *a*, and each of these runs
  was brought back once before.
- Some phases have a name together: *any active* is one of a run that goes on, paused or not; *startable* one of a step
  that may start, now or later; *waiting* each of the three of a wait; *any end* one of a run that is over, and
  *cancelled* each of the three. *Paused, any*, *paused, startable* and *paused, waiting* are the same of a paused run.
- An outcome is *recorded* by an attempt that writes it down before its commit. The recorded attempt is delivery base + 1
  or, where that was *overtaken*, the one before.
- What the slots of keys hold for a run that begins to wait comes with the event: a key is *free*, *taken* by another
  run that waits, or has a signal *buffered*.
- `Execute` is followed by the number of the attempt. *unchanged* means that nothing is written. A signal that the step
  keeps and a request that stays are not repeated in **next**.
- Some rows can follow from no history, such as the outcome of a step that is parked. They are decided all the same:
  `decide` is total.
";

const NOTIFICATIONS: &str = "
## Notifications

A run that somebody observes owes one call of the terminal hook. The row of that call is a small state machine of its
own, `decide_notification(row, event)`. Columns and counters are as above; **next** is the row that the commit writes,
and deleting it is what applies the hook's effects once. A *dead* row has had its last call, in delivery 3.
";

const REASONS: &str = "
## Reasons

Runs and notifications share them. For a notification read *hook* for step and runner, *call* for attempt, *row* for
record and *is dead* for ends as a dead letter.

";

pub(crate) fn write() -> String {
    let cases = cases::all();
    let mut text = INTRODUCTION.to_owned();
    text += "\n## Runs\n";
    for kind in Kind::ALL {
        let of_kind: Vec<&Case> = cases.iter().filter(|case| case.kind() == kind).collect();
        text += &format!("\n### `{kind:?}`\n\n{}\n\n", cases::about(kind));
        text += &runs(&of_kind);
    }
    text += NOTIFICATIONS;
    text += &notification::write();
    text += REASONS;
    let rows = reasons::ALL.iter().map(|(reason, sentence)| {
        vec![format!("`{}`", reasons::name(*reason)), format!("`{}`", reason.as_str()), (*sentence).to_owned()]
    });
    text + &render::table(&["reason", "in logs", "why"], rows)
}

/// The cells that say what is decided.
type Answer = Vec<String>;

fn runs(cases: &[&Case]) -> String {
    let answers = cases.iter().map(|case| {
        let answers = Stage::ALL.iter().map(|&stage| {
            let (run, event) = case.at(stage);
            let transition = decide(&run, event);
            let answer = vec![
                render::action(transition.action),
                render::effects(&transition.effects),
                render::next(&run, &transition.next),
                format!("`{}`", reasons::name(transition.reason)),
            ];
            (stage.name(), answer)
        });
        Row { what: case.what.clone(), delivery: case.delivery, answers: answers.collect() }
    });
    let answers = answers.collect();
    let head = ["event", "delivery", "phases", "action", "effects", "next", "reason"];
    table(&head, answers)
}

/// One event, and what is decided in each phase.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) delivery: &'static str,
    pub(crate) answers: Vec<(&'static str, Answer)>,
}

/// The table of `rows`. Events that are decided alike in the same phases share a line, and so do phases. A column that
/// says nothing is left out.
pub(crate) fn table(head: &[&str], rows: Vec<Row>) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut lines: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for row in rows {
        if !all.contains(&row.what) {
            all.push(row.what.clone());
        }
        for (phases, answer) in by_answer(row.answers) {
            let mut cells = vec![row.delivery.to_owned(), together(&phases).join("; ")];
            cells.extend(answer);
            match lines.iter_mut().find(|(_, other)| *other == cells) {
                Some((what, _)) => what.push(row.what.clone()),
                None => lines.push((vec![row.what.clone()], cells)),
            }
        }
    }
    let lines = lines.into_iter().map(|(what, cells)| [vec![events(&what, &all)], cells].concat());
    let lines: Vec<Vec<String>> = lines.collect();
    let used: Vec<bool> = (0..head.len()).map(|column| lines.iter().any(|line| !line[column].is_empty())).collect();
    let keep = |cells: Vec<String>| cells.into_iter().zip(&used).filter(|(_, used)| **used).map(|(cell, _)| cell);
    let head: Vec<&str> = head.iter().zip(&used).filter(|(_, used)| **used).map(|(name, _)| *name).collect();
    render::table(&head, lines.into_iter().map(|line| keep(line).collect()))
}

/// The events `what`, in few words; `all` are those of the table.
fn events(what: &[String], all: &[String]) -> String {
    let others: Vec<String> = all.iter().filter(|event| !what.contains(event)).cloned().collect();
    if others.is_empty() && all.len() > 1 {
        return "any".to_owned();
    }
    let (these, all_but) = (however(what), format!("any but {}", however(&others)));
    if all_but.len() < these.len() { all_but } else { these }
}

/// An event that is decided alike inline and not is named once.
fn however(events: &[String]) -> String {
    let other = |event: &String, how: &str, other: &str| {
        let name = event.strip_suffix(how)?;
        events.contains(&format!("{name}{other}")).then(|| name.to_owned())
    };
    let names = events.iter().filter_map(|event| match other(event, ", not inline", ", inline") {
        Some(_) => None,
        None => Some(other(event, ", inline", ", not inline").unwrap_or_else(|| event.clone())),
    });
    names.collect::<Vec<_>>().join("; ")
}

/// The names of `phases`, those that go by one name as that.
fn together(phases: &[&'static str]) -> Vec<&'static str> {
    let mut left = phases.to_vec();
    for (name, stages) in Stage::TOGETHER {
        let of_group = |phase: &&'static str| stages.iter().any(|stage| stage.name() == *phase);
        if left.iter().filter(|phase| of_group(phase)).count() == stages.len()
            && let Some(first) = left.iter().position(of_group)
        {
            left[first] = name;
            left.retain(|phase| !of_group(phase));
        }
    }
    left
}

fn by_answer(answers: Vec<(&'static str, Answer)>) -> Vec<(Vec<&'static str>, Answer)> {
    let mut groups: Vec<(Vec<&'static str>, Answer)> = Vec::new();
    for (phase, answer) in answers {
        match groups.iter_mut().find(|(_, other)| *other == answer) {
            Some((phases, _)) => phases.push(phase),
            None => groups.push((vec![phase], answer)),
        }
    }
    groups
}

//! Marks on the page of all decisions.

use workflow_runtime::{EventKind, PhaseKind};

use super::Coverage;

/// Where the decisions on runs begin and end on the page.
const BEGIN: &str = "## Runs";
const END: &str = "## Notifications";
const MARK: &str = "✓";

/// The page with its marks. What is not understood stays as it is.
pub(super) fn page(coverage: &Coverage, page: &str) -> String {
    let mut marking = Marking { coverage, is_of_runs: false, event: None, columns: None };
    let mut text = String::with_capacity(page.len());
    for line in page.lines() {
        text += &marking.line(line);
        text.push('\n');
        if line == BEGIN {
            text += &format!(
                "\n{}. A phase is marked ({MARK}) where it was decided for the reason of the row.\n",
                coverage.summary()
            );
        }
    }
    text
}

/// How far the page is read.
struct Marking<'a> {
    coverage: &'a Coverage,
    is_of_runs: bool,
    /// What the section is about.
    event: Option<EventKind>,
    /// The columns of phases and of reasons in the table.
    columns: Option<(usize, usize)>,
}

impl Marking<'_> {
    fn line(&mut self, line: &str) -> String {
        if line == BEGIN || line == END {
            self.is_of_runs = line == BEGIN;
        }
        if let Some(title) = line.strip_prefix("### ") {
            self.event = EventKind::ALL.into_iter().find(|event| title == format!("`{event}`"));
        }
        match (line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")), self.event, self.columns) {
            (Some(row), Some(event), Some(columns)) if self.is_of_runs => {
                format!("| {} |", self.row(row, event, columns))
            }
            (Some(head), ..) => {
                self.columns = columns(head);
                line.to_owned()
            }
            (None, ..) => {
                self.columns = None;
                line.to_owned()
            }
        }
    }

    /// The row, marked.
    fn row(&self, row: &str, event: EventKind, (phases, reason): (usize, usize)) -> String {
        let mut cells: Vec<String> = row.split(" | ").map(str::to_owned).collect();
        let Some(reason) = cells.get(reason).map(|cell| snake(cell.trim_matches('`'))) else { return row.to_owned() };
        if let Some(cell) = cells.get_mut(phases) {
            let marked: Vec<String> = cell.split("; ").map(|name| self.phase(name, event, &reason)).collect();
            *cell = marked.join("; ");
        }
        cells.join(" | ")
    }

    /// The name of a phase, or of several, marked if the event was decided there for this reason.
    fn phase(&self, name: &str, event: EventKind, reason: &str) -> String {
        let phases = PhaseKind::named(name).unwrap_or_default();
        let met = phases.iter().filter(|phase| self.coverage.has_met(event, **phase, reason)).count();
        match met {
            0 => name.to_owned(),
            _ if met == phases.len() => format!("{name} {MARK}"),
            _ => format!("{name} {MARK} {met} of {}", phases.len()),
        }
    }
}

/// The columns of phases and of reasons, if the row is the head of a table of decisions.
fn columns(head: &str) -> Option<(usize, usize)> {
    let column = |name| head.split(" | ").position(|cell| cell == name);
    Some((column("phases")?, column("reason")?))
}

/// The name of a reason as the logs have it.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

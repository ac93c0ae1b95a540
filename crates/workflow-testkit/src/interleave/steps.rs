//! What happened in one execution, as people read it.

use std::time::Duration;

use super::call::Call;

/// Something that happened during a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A call went on.
    Went(Call),
    /// Time passed.
    Passed(Duration),
}

/// The steps line by line: what one actor does in a row is one line, and a call that is answered in it is told once.
pub(super) fn numbered(steps: &[Step]) -> Vec<String> {
    let mut lines: Vec<Vec<Step>> = Vec::new();
    for step in steps {
        match lines.last_mut() {
            Some(line) if goes_on(line, step) => add(line, step),
            _ => lines.push(vec![step.clone()]),
        }
    }
    lines.iter().map(|line| text(line)).collect()
}

fn goes_on(line: &[Step], step: &Step) -> bool {
    match (line.last(), step) {
        (Some(Step::Went(last)), Step::Went(call)) => last.actor == call.actor,
        (Some(Step::Passed(_)), Step::Passed(_)) => true,
        _ => false,
    }
}

fn add(line: &mut Vec<Step>, step: &Step) {
    match (line.last_mut(), step) {
        (Some(Step::Went(asked)), Step::Went(answered)) if answered.answers(asked) => *asked = answered.clone(),
        (Some(Step::Passed(so_far)), Step::Passed(more)) => *so_far += *more,
        _ => line.push(step.clone()),
    }
}

fn text(line: &[Step]) -> String {
    let mut text = String::new();
    for step in line {
        match step {
            Step::Passed(duration) => text.push_str(&format!("time passes: {duration:?}")),
            Step::Went(call) if text.is_empty() => text.push_str(&format!("{}: {call}", call.actor)),
            Step::Went(call) => text.push_str(&format!("; {call}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::call::{Moment, Operation};
    use super::*;

    fn went(actor: &str, task: usize, subject: &str) -> Call {
        let (operation, moment) = (Operation::Get, Moment::Asked);
        Call { actor: actor.into(), task, operation, moment, subject: subject.to_owned(), answer: String::new() }
    }

    #[test]
    fn what_an_actor_does_in_a_row_is_one_line_and_an_answered_call_is_told_once() {
        let (a, b) = (went("a", 1, "x"), went("b", 2, "x"));
        let answered = |call: &Call| Step::Went(call.clone().answered("absent".to_owned()));
        let steps = [
            Step::Went(a.clone()),
            answered(&a),
            Step::Went(went("a", 1, "y")),
            Step::Went(b.clone()),
            Step::Passed(Duration::from_millis(1)),
            Step::Passed(Duration::from_millis(2)),
            answered(&b),
        ];
        let lines = numbered(&steps);
        assert_eq!(lines, ["a: get x -> absent; get y", "b: (2) get x", "time passes: 3ms", "b: (2) get x -> absent"]);
    }
}

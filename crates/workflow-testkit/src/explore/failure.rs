//! A schedule that failed, told so that one sees at once what went wrong.

use std::fmt;

use crate::sim::{Event, Fault, Injection, Place};

/// The most lines of a timeline.
const MAX_LINES: usize = 10;

/// A schedule after which something is other than without faults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedPoint {
    /// The faults: `crash@37` is the death of the process at point 37, `lease@12` the loss of its leases at point 12;
    /// those after the first count their points from the fault before. Empty when the scenario fails without one.
    pub schedule: String,
    /// What went wrong.
    pub problems: Vec<String>,
    /// What happened around the first fault.
    pub timeline: Vec<String>,
}

impl std::error::Error for FailedPoint {}

impl fmt::Display for FailedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.schedule.as_str() {
            "" => writeln!(f, "the scenario fails without any fault:")?,
            schedule => writeln!(f, "{schedule} does not hold:")?,
        }
        for problem in self.problems.iter().take(3) {
            writeln!(f, "  {problem}")?;
        }
        if let Some(more) = self.problems.len().checked_sub(3).filter(|more| *more > 0) {
            writeln!(f, "  and {more} more")?;
        }
        for line in &self.timeline {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

impl FailedPoint {
    pub(super) fn of(schedule: String, problems: Vec<String>, events: &[Event]) -> Box<Self> {
        Box::new(Self { schedule, problems, timeline: timeline(events) })
    }
}

/// What happened in the step or hook that the first fault hit, from its start to what it came to.
fn timeline(events: &[Event]) -> Vec<String> {
    let fault = events.iter().position(|event| matches!(event, Event::Fault(..)));
    let (from, to) = match fault {
        None => (events.len().saturating_sub(MAX_LINES), events.len()),
        Some(fault) => around(events, fault),
    };
    let shown: Vec<String> = events[from..to].iter().map(ToString::to_string).collect();
    elided(shown)
}

fn around(events: &[Event], fault: usize) -> (usize, usize) {
    let started = |event: &Event| match event {
        Event::Started(place, ..) => Some(place.clone()),
        Event::Told(end) => Some(Place::hook(&end.run_id)),
        _ => None,
    };
    let from = events[..fault].iter().rposition(|event| started(event).is_some());
    let Some((from, place)) = from.and_then(|from| Some((from, started(&events[from])?))) else {
        return (fault.saturating_sub(2), events.len().min(fault + MAX_LINES));
    };
    let answered = |event: &Event| matches!(event, Event::Answered(answered, _) if *answered == place);
    let rest = events[fault..].iter().position(answered).map_or(events.len(), |at| fault + at + 1);
    // The commit of the answer.
    let commit = events.get(rest).is_some_and(|event| is_of(event, &place));
    (from, rest + usize::from(commit))
}

fn is_of(event: &Event, place: &Place) -> bool {
    matches!(event, Event::Committed(Some(run_id), _) if *run_id == place.run_id)
}

/// Leaves out the middle of what is too long.
fn elided(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MAX_LINES {
        let half = MAX_LINES / 2;
        let left_out = lines.len() - 2 * half;
        lines.splice(half..half + left_out, [format!("… {left_out} more")]);
    }
    lines
}

/// The schedule in words that [`parse_schedule`] reads.
pub(super) fn schedule_text(injections: &[Injection]) -> String {
    let texts: Vec<String> = injections
        .iter()
        .map(|injection| match injection.fault {
            Fault::Crash => format!("crash@{}", injection.at),
            Fault::LeaseLost => format!("lease@{}", injection.at),
        })
        .collect();
    texts.join("+")
}

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseScheduleError(String);

impl std::error::Error for ParseScheduleError {}

impl fmt::Display for ParseScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no schedule such as crash@37+lease@12", self.0)
    }
}

pub(super) fn parse_schedule(text: &str) -> Result<Vec<Injection>, ParseScheduleError> {
    let parse = |part: &str| {
        let (fault, at) = part.split_once('@')?;
        let fault = match fault {
            "crash" => Fault::Crash,
            "lease" => Fault::LeaseLost,
            _ => return None,
        };
        Some(Injection { at: at.parse().ok()?, fault })
    };
    let parts = text.split('+').filter(|part| !part.is_empty());
    let parsed: Option<Vec<Injection>> = parts.map(parse).collect();
    parsed.ok_or_else(|| ParseScheduleError(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_back() {
        for text in ["", "crash@0", "lease@12+crash@37"] {
            assert_eq!(schedule_text(&parse_schedule(text).unwrap()), text);
        }
        for text in ["crash", "crash@x", "fire@1", "crash@1,lease@2"] {
            assert!(parse_schedule(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_timeline_leaves_out_its_middle() {
        let lines: Vec<String> = (0..30).map(|line| line.to_string()).collect();
        let shown = elided(lines);
        assert_eq!(shown.len(), MAX_LINES + 1);
        assert_eq!((&*shown[0], &*shown[5], &*shown[10]), ("0", "… 20 more", "29"));
    }
}

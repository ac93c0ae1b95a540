//! A case that fails, told so that one sees what went wrong.

use std::fmt;

use super::case::Case;
use crate::sim::Event;

/// The most events that are shown.
const MAX_EVENTS: usize = 24;

/// A case for which the property does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCase {
    /// The case, shrunk.
    pub case: Case,
    /// What went wrong.
    pub problem: String,
    /// What happened.
    pub timeline: Vec<String>,
}

impl std::error::Error for FailedCase {}

impl fmt::Display for FailedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.problem)?;
        writeln!(f, "in this case:")?;
        self.case.to_string().lines().try_for_each(|line| writeln!(f, "    {line}"))?;
        writeln!(f, "of which this came:")?;
        self.timeline.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

impl FailedCase {
    pub(super) fn new(case: Case, problem: String, events: &[Event]) -> Self {
        let mut timeline: Vec<String> = events.iter().map(ToString::to_string).collect();
        if timeline.len() > MAX_EVENTS {
            let half = MAX_EVENTS / 2;
            let left_out = timeline.len() - 2 * half;
            timeline.splice(half..half + left_out, [format!("… {left_out} more")]);
        }
        Self { case, problem, timeline }
    }
}

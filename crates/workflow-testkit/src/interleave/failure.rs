//! An order in which a scenario fails, and how it is told.

use std::fmt;

use super::choices::{Taken, print};

/// An order in which a scenario failed. Its text is what a test prints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedOrder {
    /// What went wrong.
    pub problem: Problem,
    /// What [`Interleaver::replay`](crate::Interleaver::replay) takes to run this order again.
    pub choices: String,
    /// What happened, one line for what one actor did in a row. A call that stands alone has reached the queue; with
    /// `-> answer` behind it, it has returned. `(2)` names the second task of the actor.
    pub steps: Vec<String>,
    /// How many orders were run up to this one.
    pub orders: u64,
    /// The seed that drew the order, if chance did.
    pub seed: Option<u64>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The scenario or one of its actors panicked, with this message.
    Panicked(String),
    /// The order has more steps than [`Interleaver::most_steps`](crate::Interleaver::most_steps) allows.
    TooManySteps,
    /// The scenario did not end within the time that [`Interleaver::longest`](crate::Interleaver::longest) allows.
    NeverEnds,
    /// The same choices led elsewhere the second time.
    NotDeterministic(String),
}

impl FailedOrder {
    pub(super) fn of(problem: Problem, taken: &[Taken], steps: Vec<String>, orders: u64) -> Self {
        Self { problem, choices: print(taken), steps, orders, seed: None }
    }
}

impl std::error::Error for FailedOrder {}

impl fmt::Display for FailedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "order {} fails: {}", self.orders, self.problem)?;
        for (line, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:>3}. {step}", line + 1)?;
        }
        if let Some(seed) = self.seed {
            writeln!(f, "drawn by seed {seed}")?;
        }
        write!(f, "run it again with `replay({:?}, scenario)`", self.choices)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "{message}"),
            Self::TooManySteps => write!(f, "it has too many steps, as if it had no end"),
            Self::NeverEnds => write!(f, "it does not end: whoever is left waits for something that never comes"),
            Self::NotDeterministic(what) => {
                write!(f, "the scenario is not deterministic, for the same choices lead elsewhere: {what}")
            }
        }
    }
}

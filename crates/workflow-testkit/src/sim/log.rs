//! What happened in an execution, in the order in which it did.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The step or hook that something happened in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) run_id: String,
    /// None in the run's hook.
    pub(crate) step: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "{} step {step}", self.run_id),
            None => write!(f, "{} hook", self.run_id),
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The user's code was called.
    Started(Place, u32),
    /// It answered.
    Answered(Place, String),
    /// A commit was applied.
    Committed(Option<String>, String),
    /// Something was done outside, for the time with this number.
    Outside(String, usize),
    /// A fault was injected.
    Fault(String),
    /// The next process began.
    Restarted,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(place, attempt) => write!(f, "{place}, attempt {attempt} starts"),
            Self::Answered(place, answer) => write!(f, "{place} answers {answer}"),
            Self::Committed(_, what) => write!(f, "committed: {what}"),
            Self::Outside(what, 1) => write!(f, "outside: {what}"),
            Self::Outside(what, time) => write!(f, "outside, time {time}: {what}"),
            Self::Fault(what) => write!(f, "** {what}"),
            Self::Restarted => f.write_str("the next process starts"),
        }
    }
}

/// Everything that happened.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<Event>>);

impl Log {
    pub(crate) fn tell(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! What happened in an execution, in the order in which it did.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use workflow_runtime::RunOutcome;

use super::points::Fault;
use crate::fixture::value_text;

/// The step or hook that something happened in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) run_id: String,
    /// None in the run's hook.
    pub(crate) step: Option<u32>,
}

impl Place {
    /// The hook of this run.
    pub(crate) fn hook(run_id: &str) -> Self {
        Self { run_id: run_id.to_owned(), step: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "{} step {step}", self.run_id),
            None => write!(f, "{} hook", self.run_id),
        }
    }
}

/// A signal that a step was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) key: String,
    pub(crate) payload: Vec<u8>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The user's runner was called, with this number of the attempt and the signal that a wait ended with.
    Started(Place, u32, Option<Signal>),
    /// The user's hook was called.
    Told(RunOutcome),
    /// It answered.
    Answered(Place, String),
    /// A commit was applied.
    Committed(Option<String>, String),
    /// Something was done outside, for the time with this number.
    Outside(String, usize),
    /// A fault was injected, at this point.
    Fault(Fault, String),
    /// The next process began.
    Restarted,
    /// The test asked for something, and was answered.
    #[cfg(feature = "property")]
    Asked(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(place, attempt, None) => write!(f, "{place}, attempt {attempt} starts"),
            Self::Started(place, attempt, Some(signal)) => {
                let Signal { key, payload } = signal;
                write!(f, "{place}, attempt {attempt} starts, on signal {key:?}: {}", value_text(payload))
            }
            Self::Told(end) => write!(f, "{} hook starts", end.run_id),
            Self::Answered(place, answer) => write!(f, "{place} answers {answer}"),
            Self::Committed(_, what) => write!(f, "committed: {what}"),
            Self::Outside(what, 1) => write!(f, "outside: {what}"),
            Self::Outside(what, time) => write!(f, "outside, time {time}: {what}"),
            Self::Fault(Fault::Crash, at) => write!(f, "** the process dies, at: {at}"),
            Self::Fault(Fault::LeaseLost, at) => write!(f, "** the lease is lost, at: {at}"),
            Self::Restarted => f.write_str("the next process starts"),
            #[cfg(feature = "property")]
            Self::Asked(what) => write!(f, "> {what}"),
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

    #[cfg(feature = "property")]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! What must hold, one file for each: every commit and every event is shown to all of them, and the first that does not
//! hold names itself.

mod acknowledged;
mod bounded;
mod liveness;
mod one_end;
mod orphans;
mod same_answer;
mod single_flight;

use std::fmt;
use std::time::Duration;

use workflow_runtime::ViolationKind;
use workflow_runtime::port::Timestamp;

use super::committed::{Committed, Landed};
use super::event::Event;

pub(crate) use self::liveness::goes_on;

/// Something that must hold whatever happens.
pub(crate) trait Invariant: Send {
    /// A commit is durable; `now` is how the store is after it.
    fn landed(&mut self, landed: &Landed, now: &Now<'_>) -> Result<(), Broken>;

    /// Something else happened.
    fn told(&mut self, event: &Event, now: &Now<'_>) -> Result<(), Broken>;
}

/// How things are.
pub(crate) struct Now<'a> {
    pub(crate) store: &'a Committed,
    pub(crate) time: Timestamp,
}

/// An invariant that does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    invariant: &'static str,
    run_id: Option<String>,
    what: String,
}

impl Broken {
    pub(crate) fn new(invariant: &'static str, run_id: Option<&str>, what: impl Into<String>) -> Self {
        Self { invariant, run_id: run_id.map(str::to_owned), what: what.into() }
    }

    pub(crate) fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.invariant)?;
        match &self.run_id {
            Some(run_id) => write!(f, "run {run_id}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// What a simulation promises to its users.
#[derive(Clone, Copy)]
pub(crate) struct Promises {
    pub(crate) retention: Duration,
    pub(crate) signal_ttl: Duration,
    /// Whoever loses a lease knows it. Nobody else is kept from starting a step after its run was paused.
    pub(crate) leases_hold: bool,
    /// An outcome that was written down is applied by whoever finds it.
    pub(crate) replay: bool,
    /// What several steps of a run commit may land as one.
    pub(crate) pipelined: bool,
}

/// All of them.
pub(crate) fn all(promises: Promises) -> Vec<Box<dyn Invariant>> {
    vec![
        // First, for where it is broken everything else follows.
        Box::new(single_flight::SingleFlight::new(promises)),
        Box::new(acknowledged::Acknowledged::new(promises)),
        Box::new(one_end::OneEnd::default()),
        Box::new(liveness::Liveness::default()),
        Box::new(orphans::Orphans),
        Box::new(same_answer::SameAnswer::default()),
        Box::new(bounded::Bounded),
    ]
}

/// What a check of the store found of one kind, if anything.
fn found(invariant: &'static str, kind: ViolationKind, event: &Event) -> Result<(), Broken> {
    let Event::Checked(findings) = event else { return Ok(()) };
    match findings.iter().find(|(found, ..)| *found == kind) {
        Some((_, run_id, text)) => Err(Broken::new(invariant, run_id.as_deref(), text)),
        None => Ok(()),
    }
}

//! What happens in a simulation beside commits, as it is told to whoever watches.

use std::fmt;

use super::answer::{Answer, End};
use super::op::Op;

/// An event.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A user calls, for the time with this number.
    Asked(u64, Op),
    /// The call with this number is answered.
    Answered(u64, Op, Answer),
    /// The runner is called.
    Started(Attempt),
    /// The runner has synced: what the step stands on is durable.
    Synced(Attempt),
    /// The runner looks at a memo, and finds or stores this.
    Remembered { attempt: Attempt, memo: Memo, value: u64 },
    /// The runner does not find what the step before has committed.
    Missing { attempt: Attempt, key: String },
    /// The runner answers.
    Left(Attempt, String),
    /// The hook is told, for the time with this number.
    Told(u64, End),
    /// A process begins, and so on.
    Process(Process),
    /// The process asked whether the store is in order. Each finding has its kind.
    Checked(Vec<(workflow_runtime::ViolationKind, Option<String>, String)>),
    /// No fault happens any more.
    Calm,
    /// By now everything has settled that settles by itself.
    Settled,
    /// By now every run has ended.
    Closed,
    /// By now nothing is kept any more: so many objects and jobs are left.
    Swept { objects: Vec<String>, jobs: Vec<String> },
    /// In a minute in which nothing was to be done, so often something was read or written.
    Idle { requests: u64 },
}

/// A call of the runner.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) number: u64,
    pub(crate) run_id: String,
    /// The call that submitted the run.
    pub(crate) call: u64,
    pub(crate) step: u32,
    /// What the step calls its attempt.
    pub(crate) attempts: u32,
    pub(crate) payload: Vec<u8>,
    pub(crate) signal: Option<Vec<u8>>,
    /// Whether the steps before it need not be durable.
    pub(crate) may_run_ahead: bool,
}

/// A memo of the run, or of a step, with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Memo {
    OfRun(&'static str),
    OfStep(u32, &'static str),
}

/// What becomes of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    Begins,
    /// By a fault.
    Dies,
    /// By a step.
    Killed,
    /// It shuts down in order.
    ShutDown,
    /// It goes on, and another takes its store over.
    LeftRunning,
    /// It has learned that it was taken over.
    Fenced,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    Run(&'a str),
    NoRun,
    AllRuns,
}

impl Event {
    /// What it is about.
    pub(crate) fn subject(&self) -> Subject<'_> {
        match self {
            Self::Asked(_, op) | Self::Answered(_, op, _) => op.run_id().map_or(Subject::NoRun, Subject::Run),
            Self::Started(attempt) | Self::Synced(attempt) | Self::Left(attempt, _) => Subject::Run(&attempt.run_id),
            Self::Remembered { attempt, .. } | Self::Missing { attempt, .. } => Subject::Run(&attempt.run_id),
            Self::Told(_, end) => Subject::Run(&end.run_id),
            Self::Process(_) | Self::Checked(_) | Self::Calm | Self::Settled => Subject::AllRuns,
            Self::Closed | Self::Swept { .. } | Self::Idle { .. } => Subject::AllRuns,
        }
    }

    /// The run that it is about, if it is about one.
    pub(crate) fn run_id(&self) -> Option<&str> {
        match self.subject() {
            Subject::Run(run_id) => Some(run_id),
            Subject::NoRun | Subject::AllRuns => None,
        }
    }

    /// The attempt whose start is durable by this.
    pub(crate) fn durable_start(&self) -> Option<&Attempt> {
        match self {
            Self::Started(attempt) if !attempt.may_run_ahead => Some(attempt),
            Self::Synced(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Whether it counts among the operations of a simulation.
    pub(crate) fn is_operation(&self) -> bool {
        matches!(self, Self::Asked(..) | Self::Started(_) | Self::Told(..))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{} of {} (call {}) step {}", self.number, self.run_id, self.call, self.step)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = super::workload::word;
        match self {
            Self::Asked(number, op) => write!(f, "call {number}: {op}"),
            Self::Answered(number, op, answer) => write!(f, "call {number}: {op}: {answer}"),
            Self::Started(attempt) => {
                let signal = attempt.signal.as_deref().map_or("no signal", word);
                let (number, payload) = (attempt.attempts, word(&attempt.payload));
                write!(f, "{attempt} starts as attempt {number}, with {payload} and {signal}")
            }
            Self::Remembered { attempt, memo, value } => write!(f, "{attempt} remembers a{value}, {memo:?}"),
            Self::Missing { attempt, key } => write!(f, "{attempt} does not find {key}"),
            Self::Synced(attempt) => write!(f, "{attempt} has synced"),
            Self::Left(attempt, answer) => write!(f, "{attempt} answers {answer}"),
            Self::Told(number, end) => write!(f, "hook {number} of {} (call {}): {end}", end.run_id, end.call),
            Self::Process(process) => write!(f, "process: {process:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}

//! What reading a run shows.

use std::collections::HashMap;
use std::time::SystemTime;

use workflow_core::{RunState as State, Status};
use workflow_effects::RecordedEnd;

use crate::TerminalStatus;

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStatus {
    /// The run's id.
    pub run_id: String,
    /// What it does, in a word: runs are listed by it.
    pub state: RunState,
    /// Since when it is in this state.
    pub since: SystemTime,
    /// What it does or waits for; of a paused run, what it goes on with.
    pub phase: RunPhase,
    /// The step in hand, or the one that ended the run.
    pub step: u32,
    /// Attempts of the step in hand that are over: failed ones, and deliveries that were lost.
    pub attempts_used: u32,
    /// Whether somebody has asked for the end of the run, which comes once the step in hand has stopped.
    pub cancel_requested: bool,
    /// How often the run was brought back after an end.
    pub redrives: u32,
    /// Attempts that each step may use.
    pub max_attempts: u32,
    /// When the run was submitted.
    pub submitted_at: SystemTime,
    /// The headers of the submission.
    pub headers: HashMap<String, String>,
}

/// What a run does, in a word. Steps that follow one another do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunState {
    /// A step executes, or is due now or later.
    Active,
    /// It waits for a signal.
    Waiting,
    /// It is [paused](crate::WorkflowRuntime::pause).
    Paused,
    /// It has ended with a result.
    Succeeded,
    /// It has ended with an error.
    Failed,
    /// It has ended because it was given up.
    Cancelled,
}

impl From<State> for RunState {
    fn from(state: State) -> Self {
        match state {
            State::Active => Self::Active,
            State::Waiting => Self::Waiting,
            State::Paused => Self::Paused,
            State::Ended(Status::Succeeded) => Self::Succeeded,
            State::Ended(Status::Failed) => Self::Failed,
            State::Ended(Status::Cancelled) => Self::Cancelled,
        }
    }
}

impl From<RunState> for State {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Active => Self::Active,
            RunState::Waiting => Self::Waiting,
            RunState::Paused => Self::Paused,
            RunState::Succeeded => Self::Ended(Status::Succeeded),
            RunState::Failed => Self::Ended(Status::Failed),
            RunState::Cancelled => Self::Ended(Status::Cancelled),
        }
    }
}

/// What a run does or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunPhase {
    /// The step in hand executes, or waits for a worker.
    Ready,
    /// The step in hand failed and is attempted again at this time.
    BackingOff {
        /// When.
        until: SystemTime,
    },
    /// The next step starts at this time.
    Delayed {
        /// When.
        until: SystemTime,
    },
    /// The next step starts when a signal comes.
    Waiting {
        /// The correlation keys, one of which it is to come on.
        keys: Vec<String>,
        /// When the step starts without one, if ever.
        until: Option<SystemTime>,
    },
    /// The run has ended.
    Ended {
        /// How.
        status: TerminalStatus,
        /// When.
        at: SystemTime,
    },
}

/// A signal that nobody has waited for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferedSignal {
    /// What it carries.
    pub payload: Vec<u8>,
    /// When it came.
    pub sent_at: SystemTime,
    /// Until when it is kept, at least.
    pub expires_at: SystemTime,
    /// The id by which its sender makes sure that it counts once.
    pub id: Option<String>,
}

/// How much is written down of the steps of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryLevel {
    /// Nothing.
    Off,
    /// One small row, for the step that ended the run.
    #[default]
    Ends,
    /// One small row for each committed step, which also keeps the step's payload.
    Full,
}

/// How one step of a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The step.
    pub step: u32,
    /// The number of the attempt that ended it, from 1; 0 when the run was cancelled before one began.
    pub attempt: u32,
    /// When that attempt started.
    pub started_at: SystemTime,
    /// When it ended.
    pub ended_at: SystemTime,
    /// What came of it.
    pub end: StepEnd,
    /// What the step was called with, where the [`HistoryLevel`] keeps it.
    pub payload: Option<Vec<u8>>,
    /// The correlation key of the signal that the step was called with.
    pub signal_key: Option<String>,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepEnd {
    /// Another step followed at once.
    Continued,
    /// Another step followed later.
    Delayed,
    /// Another step followed a wait for a signal.
    Waited,
    /// The run succeeded.
    Succeeded,
    /// The run failed.
    Failed,
    /// The run gave up.
    Cancelled,
}

impl From<RecordedEnd> for StepEnd {
    fn from(end: RecordedEnd) -> Self {
        match end {
            RecordedEnd::Continued => Self::Continued,
            RecordedEnd::Delayed => Self::Delayed,
            RecordedEnd::Waited => Self::Waited,
            RecordedEnd::Succeeded => Self::Succeeded,
            RecordedEnd::Failed => Self::Failed,
            RecordedEnd::Cancelled => Self::Cancelled,
        }
    }
}

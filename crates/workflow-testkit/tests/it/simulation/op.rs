//! What users ask of a simulated runtime, and what they are answered.

use std::fmt;

use workflow_core::Status;
use workflow_runtime::{RunOutcome, TerminalStatus};

/// A call of a user.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The input is told by its number.
    Submit {
        run_id: String,
        input: u64,
    },
    /// The idempotency id is a number, too.
    Signal {
        key: String,
        id: Option<u64>,
    },
    Cancel(String),
    Pause(String),
    Resume(String),
    Redrive {
        run_id: String,
        step: Option<u32>,
        payload: Option<u64>,
    },
    Forget(String),
    End(String),
    Wait(String),
    /// What operators do with the queue's own means: put every dead job back, or remove one that waits.
    Requeue,
    Remove,
}

impl Op {
    pub(crate) fn run_id(&self) -> Option<&str> {
        match self {
            Self::Submit { run_id, .. } | Self::Redrive { run_id, .. } => Some(run_id),
            Self::Cancel(id) | Self::Pause(id) | Self::Resume(id) | Self::Forget(id) => Some(id),
            Self::End(id) | Self::Wait(id) => Some(id),
            Self::Signal { .. } | Self::Requeue | Self::Remove => None,
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A run was made.
    Made,
    /// The run was there already.
    Known,
    Delivered,
    Buffered,
    Duplicate,
    /// Cancelled at once.
    Ended,
    /// To be cancelled.
    Requested,
    /// It had ended before.
    Over(End),
    Paused,
    /// Paused once the step in hand has ended.
    Finishing,
    Resumed,
    NotPaused,
    Redriven,
    /// It goes on already.
    Active,
    Forgotten,
    /// There is no such run, or no end of it.
    Nothing,
    /// The operator's doing.
    Done,
    /// For good.
    Refused(String),
    /// It may or may not have happened.
    Failed(String),
}

/// How a run ended, as users and hooks are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) run_id: String,
    /// The call that submitted the run.
    pub(crate) call: u64,
    pub(crate) status: Status,
    pub(crate) final_step: u32,
    pub(crate) error: Option<String>,
    pub(crate) result: Option<Vec<u8>>,
}

impl End {
    pub(crate) fn of(outcome: &RunOutcome) -> Self {
        let status = match outcome.status {
            TerminalStatus::Succeeded => Status::Succeeded,
            TerminalStatus::Failed => Status::Failed,
            TerminalStatus::Cancelled => Status::Cancelled,
            _ => unreachable!("there is no fourth way to end"),
        };
        Self {
            run_id: outcome.run_id.clone(),
            call: super::workload::call_of(&outcome.headers),
            status,
            final_step: outcome.final_step,
            error: outcome.error.clone(),
            result: outcome.result.clone(),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at step {}", self.status, self.final_step)?;
        if let Some(error) = &self.error {
            write!(f, ": {error}")?;
        }
        match &self.result {
            Some(result) => write!(f, " with {}", super::workload::word(result)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit { run_id, input } => write!(f, "submit {run_id} with i{input}"),
            Self::Signal { key, id: Some(id) } => write!(f, "signal {key} with id {id}"),
            Self::Signal { key, id: None } => write!(f, "signal {key}"),
            Self::Cancel(run_id) => write!(f, "cancel {run_id}"),
            Self::Pause(run_id) => write!(f, "pause {run_id}"),
            Self::Resume(run_id) => write!(f, "resume {run_id}"),
            Self::Redrive { run_id, step, payload } => write!(f, "redrive {run_id} from {step:?} with {payload:?}"),
            Self::Forget(run_id) => write!(f, "forget {run_id}"),
            Self::End(run_id) => write!(f, "end of {run_id}"),
            Self::Wait(run_id) => write!(f, "wait for {run_id}"),
            Self::Requeue => f.write_str("put all dead jobs back"),
            Self::Remove => f.write_str("remove a waiting job"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over(end) => write!(f, "it is over, {end}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "perhaps: {why}"),
            answer => write!(f, "{answer:?}"),
        }
    }
}

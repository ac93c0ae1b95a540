//! What users ask of a simulated runtime.

use std::fmt;

use workflow_runtime::{RunFilter, RunOrder};

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
    /// Throw away what is buffered for a correlation key.
    Clear(String),
    /// Look at what is buffered for a correlation key.
    Kept(String),
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
    List(RunFilter, RunOrder),
    Count(RunFilter),
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
            Self::Signal { .. } | Self::Clear(_) | Self::Kept(_) => None,
            Self::List(..) | Self::Count(_) | Self::Requeue | Self::Remove => None,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit { run_id, input } => write!(f, "submit {run_id} with i{input}"),
            Self::Signal { key, id: Some(id) } => write!(f, "signal {key} with id {id}"),
            Self::Signal { key, id: None } => write!(f, "signal {key}"),
            Self::Clear(key) => write!(f, "clear {key}"),
            Self::Kept(key) => write!(f, "what is buffered for {key}"),
            Self::Cancel(run_id) => write!(f, "cancel {run_id}"),
            Self::Pause(run_id) => write!(f, "pause {run_id}"),
            Self::Resume(run_id) => write!(f, "resume {run_id}"),
            Self::Redrive { run_id, step, payload } => write!(f, "redrive {run_id} from {step:?} with {payload:?}"),
            Self::Forget(run_id) => write!(f, "forget {run_id}"),
            Self::End(run_id) => write!(f, "end of {run_id}"),
            Self::Wait(run_id) => write!(f, "wait for {run_id}"),
            Self::List(filter, order) => write!(f, "list {order:?} {filter:?}"),
            Self::Count(filter) => write!(f, "count {filter:?}"),
            Self::Requeue => f.write_str("put all dead jobs back"),
            Self::Remove => f.write_str("remove a waiting job"),
        }
    }
}

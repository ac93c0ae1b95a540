//! What users are answered, with as much of it as can be held against the store.

use std::fmt;

use workflow_core::{Run, Status, Timestamp};
use workflow_runtime::{BufferedSignal, RunOutcome, RunState, RunStatus, TerminalStatus};

use super::committed::Committed;

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
    /// So many signals were thrown away.
    Cleared(u64),
    Kept(Vec<KeptSignal>),
    Listed(Vec<Listed>),
    Counted(u64),
    /// There is no such run, or no end of it.
    Nothing,
    /// The operator's doing.
    Done,
    /// For good.
    Refused(String),
    /// It may or may not have happened.
    Failed(String),
}

/// A buffered signal, as users are shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptSignal {
    pub(crate) payload: Vec<u8>,
    pub(crate) sent_at: Timestamp,
    pub(crate) id: Option<String>,
}

impl KeptSignal {
    pub(crate) fn of(signal: BufferedSignal) -> Self {
        Self { payload: signal.payload, sent_at: signal.sent_at.into(), id: signal.id }
    }
}

/// A run, as listings tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) run_id: String,
    /// The call that submitted the run.
    pub(crate) call: u64,
    pub(crate) state: RunState,
    pub(crate) since: Timestamp,
    pub(crate) submitted_at: Timestamp,
    pub(crate) step: u32,
    pub(crate) redrives: u32,
    pub(crate) cancel_requested: bool,
}

impl Listed {
    pub(crate) fn of(status: &RunStatus) -> Self {
        Self {
            run_id: status.run_id.clone(),
            call: super::workload::call_of(&status.headers),
            state: status.state,
            since: status.since.into(),
            submitted_at: status.submitted_at.into(),
            step: status.step,
            redrives: status.redrives,
            cancel_requested: status.cancel_requested,
        }
    }

    /// As a record tells of it, which `store` has; nothing of a run that there is not.
    pub(crate) fn of_record(run_id: &str, run: &Run, store: &Committed) -> Option<Self> {
        let (incarnation, (state, since)) = (run.incarnation()?, run.state()?);
        let (step, redrives, cancel_requested) = match run {
            Run::Absent => return None,
            Run::Active(run) => (run.step, run.redrive, run.cancel.is_some()),
            Run::Ended(run) => (run.final_step, run.redrive, false),
        };
        let (call, submitted_at) = (store.call(incarnation)?, store.spec(incarnation)?.submitted_at);
        let (run_id, state) = (run_id.to_owned(), state.into());
        Some(Self { run_id, call, state, since, submitted_at, step, redrives, cancel_requested })
    }
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

impl fmt::Display for KeptSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", super::workload::word(&self.payload), self.sent_at)
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run_id, call, state, since, step, .. } = self;
        write!(f, "{run_id} (call {call}), {state:?} since {since:?}, at step {step}")
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over(end) => write!(f, "it is over, {end}"),
            Self::Kept(signals) => {
                f.write_str("kept")?;
                signals.iter().try_for_each(|signal| write!(f, ", {signal}"))
            }
            Self::Listed(runs) => {
                f.write_str("listed")?;
                runs.iter().try_for_each(|run| write!(f, ", {run}"))
            }
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "perhaps: {why}"),
            answer => write!(f, "{answer:?}"),
        }
    }
}

//! What can go wrong with a call of the runtime, and whether asking again can help.

use workflow_core::{ParseCorrelationKeyError, ParseRunIdError};

/// The result of the runtime's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. Messages name the id, key or setting concerned; causes are in [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run id is taken by a run that was submitted with another input. Choose another id.
    #[error("run `{0}` exists with another input")]
    InputMismatch(String),
    /// The run id does not have the form of one.
    #[error("invalid run id `{run_id}`: {rule}")]
    InvalidRunId {
        /// The id, cut to a readable length.
        run_id: String,
        /// The rule that it breaks.
        rule: ParseRunIdError,
    },
    /// A correlation key does not have the form of one.
    #[error("invalid correlation key {key:?}: {rule}")]
    InvalidCorrelationKey {
        /// The key, cut to a readable length.
        key: String,
        /// The rule that it breaks.
        rule: ParseCorrelationKeyError,
    },
    /// As many signals as may be are waiting for somebody who waits for them. Nothing was written.
    #[error("{limit} signals are buffered for correlation key {key:?} already")]
    SignalBufferFull {
        /// The key, cut to a readable length.
        key: String,
        /// The setting `signal_limit`.
        limit: u64,
    },
    /// A header of a submission breaks a limit.
    #[error("invalid header `{name}`: {problem}")]
    InvalidHeader {
        /// The header's name, cut to a readable length.
        name: String,
        /// The limit.
        problem: String,
    },
    /// An option of a submission, or a setting of an opening, is out of its range.
    #[error("invalid option `{option}`: {problem}")]
    InvalidOption {
        /// The field of the submission's, call's or opening's options.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no run of this id.
    #[error("no run `{0}`")]
    NotFound(String),
    /// The run goes on, so it cannot be forgotten.
    #[error("run `{0}` has not ended")]
    NotEnded(String),
    /// Something is still to be done for the run that has ended: its hook is owed, or a step of it has just returned.
    #[error("run `{0}` has ended, and its hook or its last step is not done yet")]
    NotDone(String),
    /// Another run waits for the correlation key that this one waited for before it ended.
    #[error("another run waits for what run `{0}` waited for")]
    KeyTaken(String),
    /// The builder was given settings that cannot work.
    #[error("misconfigured runtime: {0}")]
    Misconfigured(String),
    /// The URL cannot be opened as a store.
    #[error("cannot open `{url}`: {problem}")]
    InvalidUrl {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The URL names a bucket of a provider whose feature is off. Turn it on where the crate is depended on.
    #[error("cannot open `{url}` without the feature `{feature}` of `workflow-runtime`")]
    MissingFeature {
        /// The URL as given.
        url: String,
        /// The feature.
        feature: &'static str,
    },
    /// Somebody else has the store open for writing.
    #[error("the store at `{path}` is held by {holder}; end that first, or read beside it")]
    Held {
        /// The store's directory.
        path: String,
        /// Who holds it, as they have written it down.
        holder: String,
    },
    /// The store's lock file cannot be used.
    #[error("the lock file `{path}` cannot be used")]
    Lock {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no store to read.
    #[error("there is no store at `{url}`")]
    NoStore {
        /// The URL as given.
        url: String,
    },
    /// `run` or `spawn` was called while this runtime was already running.
    #[error("the runtime of queue `{0}` is already running")]
    AlreadyRunning(String),
    /// The store was closed, or another process opened it and took it over. Open it again.
    #[error("the store is closed: {0}")]
    Closed(String),
    /// The store is still in use: a runtime, a handle or a running loop holds it.
    #[error("the store is still in use")]
    InUse,
    /// The step's lease was lost: another delivery may be executing it.
    #[error("the lease of job `{0}` is lost")]
    LeaseLost(String),
    /// The runtime's own tasks were torn down under the call. What the call began may or may not have happened.
    #[error("the call was interrupted by the shutdown of its async runtime")]
    Interrupted,
    /// The object store failed.
    #[error("the object store failed")]
    Store(#[source] object_store::Error),
    /// The queue failed.
    #[error("the queue failed")]
    Queue(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The key-value layer refused or failed.
    #[error(transparent)]
    Effects(workflow_effects::Error),
    /// A memo refused or failed.
    #[error(transparent)]
    Memo(#[from] workflow_memo::Error),
}

impl Error {
    /// Whether the same call would fail again: bad input and bugs are permanent, unavailability is not.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::InputMismatch(_)
            | Self::InvalidRunId { .. }
            | Self::InvalidCorrelationKey { .. }
            | Self::InvalidHeader { .. }
            | Self::InvalidOption { .. }
            | Self::NotFound(_)
            | Self::NotEnded(_)
            | Self::Misconfigured(_)
            | Self::NoStore { .. }
            | Self::InvalidUrl { .. }
            | Self::MissingFeature { .. }
            | Self::AlreadyRunning(_) => true,
            Self::SignalBufferFull { .. }
            | Self::KeyTaken(_)
            | Self::NotDone(_)
            | Self::Closed(_)
            | Self::InUse
            | Self::Held { .. }
            | Self::Lock { .. }
            | Self::LeaseLost(_)
            | Self::Interrupted
            | Self::Store(_)
            | Self::Queue(_) => false,
            Self::Effects(error) => error.is_permanent(),
            Self::Memo(error) => error.is_permanent(),
        }
    }

    /// Whether the store is gone for this process, so that only opening it again helps.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

impl From<workflow_effects::Error> for Error {
    fn from(error: workflow_effects::Error) -> Self {
        match error {
            workflow_effects::Error::Closed { reason } => Self::Closed(reason),
            workflow_effects::Error::Store(error) => Self::Store(error),
            workflow_effects::Error::Unavailable(error) => Self::Queue(error),
            error => Self::Effects(error),
        }
    }
}

#![doc = include_str!("../README.md")]

mod barrier;
mod check;
mod decision;
mod engine;
mod error;
mod group_commit;
mod hook;
mod ids;
mod in_hand;
mod lease;
mod listing;
mod lower;
pub mod port;
mod reads;
mod retention;
mod runtime;
mod settings;
mod signals;
mod spec;
mod step;
#[cfg(feature = "taquba")]
mod taquba;
mod views;
mod worker;

pub use workflow_core::{
    EventKind, Jitter, MAX_CORRELATION_KEY_LEN, MAX_RUN_ID_LEN, MAX_WAIT_KEYS, ParseCorrelationKeyError,
    ParseRunIdError, PhaseKind, RetryPolicy,
};
pub use workflow_effects::{
    EffectsHandle, Error as EffectsError, KvReadHandle, MAX_EFFECT_BYTES, MAX_EFFECT_KEY_LEN, MAX_EFFECT_VALUE_LEN,
    MAX_EFFECTS, MAX_INLINE_LIMIT, RESERVED_PREFIX, StagedEffects,
};
pub use workflow_memo::{Error as MemoError, MAX_MEMO_KEY_LEN, Memo};

pub use crate::barrier::Barrier;
pub use crate::check::{Violation, ViolationKind};
pub use crate::decision::Decision;
pub use crate::engine::MAX_PRIORITIES;
pub use crate::error::{Error, Result};
pub use crate::hook::{NoopTerminalHook, RunOutcome, TerminalEffects, TerminalHook, TerminalStatus};
pub use crate::ids::{IdSource, RandomIds};
pub use crate::lease::LeaseHandle;
pub use crate::listing::{RunFilter, RunOrder};
pub use crate::port::QueuePort;
pub use crate::runtime::{
    CancelOutcome, MAX_SIGNAL_ID_LEN, PauseOutcome, RedriveOptions, RedriveOutcome, ResumeOutcome, RunnerHandle,
    SignalOptions, SignalOutcome, WorkflowRuntime, WorkflowRuntimeBuilder,
};
pub use crate::settings::{CommitMode, MAX_QUEUE_NAME_LEN, Settings};
pub use crate::spec::{
    MAX_HEADER_NAME_LEN, MAX_HEADER_VALUE_LEN, MAX_HEADERS, MAX_HEADERS_LEN, RESERVED_HEADER_PREFIX, RunSpec,
    SubmitOutcome,
};
pub use crate::step::{Step, StepError, StepErrorKind, StepOutcome, StepRunner, Trigger};
#[cfg(feature = "taquba")]
pub use crate::taquba::{
    OpenSettings, RunReader, Storage, StoreReader, TaqubaQueue, open, open_on, open_on_with, open_reader, open_with,
};
pub use crate::views::{BufferedSignal, HistoryEntry, HistoryLevel, RunPhase, RunState, RunStatus, StepEnd};

/// Compiles and runs the snippets of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;

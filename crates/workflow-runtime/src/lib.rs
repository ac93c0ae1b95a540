#![doc = include_str!("../../../README.md")]

mod engine;
mod error;
mod hook;
mod ids;
mod lease;
mod lower;
pub mod port;
mod runtime;
mod settings;
mod spec;
mod step;
#[cfg(feature = "taquba")]
mod taquba;
mod worker;

pub use workflow_core::{Jitter, RetryPolicy};
pub use workflow_effects::{EffectsHandle, KvReadHandle, StagedEffects};
pub use workflow_memo::Memo;

pub use crate::error::{Error, Result};
pub use crate::hook::{NoopTerminalHook, RunOutcome, TerminalEffects, TerminalHook, TerminalStatus};
pub use crate::ids::{IdSource, RandomIds};
pub use crate::lease::LeaseHandle;
pub use crate::port::QueuePort;
pub use crate::runtime::{RunPhase, RunStatus, RunnerHandle, WorkflowRuntime, WorkflowRuntimeBuilder};
pub use crate::settings::{MAX_INLINE_LIMIT, MAX_QUEUE_NAME_LEN, Settings};
pub use crate::spec::{
    MAX_HEADER_NAME_LEN, MAX_HEADER_VALUE_LEN, MAX_HEADERS, MAX_HEADERS_LEN, RESERVED_HEADER_PREFIX, RunSpec,
    SubmitOutcome,
};
pub use crate::step::{Step, StepError, StepErrorKind, StepOutcome, StepRunner, Trigger};
#[cfg(feature = "taquba")]
pub use crate::taquba::{Storage, TaqubaQueue, open};

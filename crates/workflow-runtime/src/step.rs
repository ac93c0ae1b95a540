//! What a user's runner sees and answers: the step, its outcome, its error.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use workflow_effects::{EffectsHandle, KvReadHandle};
use workflow_memo::Memo;

use crate::{Barrier, Error, LeaseHandle, Result};

/// One call of a [`StepRunner`]: what to work on, and the handles to do it with.
///
/// Clones share the staged effects, the memos and the lease. The handles refuse to write once the attempt has ended.
#[derive(Clone)]
#[non_exhaustive]
pub struct Step {
    /// The run's id.
    pub run_id: String,
    /// The number of the step, 0 for the first of a run.
    pub step_number: u32,
    /// The input of the submission, or what the previous step's `Continue` carried.
    pub payload: Vec<u8>,
    /// The headers of the submission.
    pub headers: HashMap<String, String>,
    /// The queue job of this delivery, for tracing.
    pub job_id: String,
    /// The number of this attempt, from 1. A crash or a hand-back may deliver the step again with the same number, so
    /// it never tells whether work was done before: ask the memo.
    pub attempts: u32,
    /// A transient failure on the attempt with this number ends the run.
    pub max_attempts: u32,
    /// Fires when the run is cancelled: whatever the step returns then is discarded, so it should stop soon. Fires as
    /// well when the attempt is broken off: its time is up, its lease is lost, or the runtime stops. Cancelling it
    /// here reaches only its own children.
    pub cancel_token: CancellationToken,
    /// The lease of the delivery.
    pub lease: LeaseHandle,
    /// What [`sync`](Self::sync) waits for.
    pub barrier: Barrier,
    /// Memoized work of this step of this run.
    pub memo: Memo,
    /// Memoized work of the whole run.
    pub run_memo: Memo,
    /// KV writes and deletes that commit together with this step's outcome.
    pub effects: EffectsHandle,
    /// Committed application KV. It does not see what this step has staged. With pipelined commits it sees what the
    /// earlier steps of the run have committed, although a crash may still undo that.
    pub kv: KvReadHandle,
    /// The payload of the signal that ended the wait before this step; `None` when the wait timed out, or there was
    /// none. Every attempt of the step sees the same.
    pub signal: Option<Vec<u8>>,
    /// The correlation key that the signal came on.
    pub signal_key: Option<String>,
}

impl Step {
    /// A step with `payload` and detached handles, for calling a runner in a unit test.
    ///
    /// It is the first attempt of five of step 0 of the run `detached`. Change its public fields to taste.
    ///
    /// ```
    /// let step = workflow_runtime::Step::detached("order 17");
    /// assert_eq!(step.payload, b"order 17");
    /// assert!(!step.is_last_attempt());
    /// ```
    pub fn detached(payload: impl Into<Vec<u8>>) -> Self {
        Self {
            run_id: "detached".to_owned(),
            step_number: 0,
            payload: payload.into(),
            headers: HashMap::new(),
            job_id: "detached".to_owned(),
            attempts: 1,
            max_attempts: 5,
            cancel_token: CancellationToken::new(),
            lease: LeaseHandle::detached(),
            barrier: Barrier::detached(),
            memo: Memo::detached(),
            run_memo: Memo::detached(),
            effects: EffectsHandle::detached(),
            kv: KvReadHandle::detached(),
            signal: None,
            signal_key: None,
        }
    }

    /// Waits until the steps before this one are durable, so that neither a crash nor a cancel nor a pause can undo what
    /// this one stands on. Await it before an effect outside that must not happen on a branch that is undone: a payment,
    /// a message. With strict commits it answers at once, since they are durable before the step starts; a
    /// [memo](Memo::put) waits for the same by itself.
    ///
    /// It says nothing of this step, which may be executed again after a crash: the effect outside needs an idempotency
    /// key as ever. Dropping the future has no effect.
    ///
    /// # Errors
    ///
    /// [`EffectsError::Undone`](workflow_effects::Error::Undone), as [`Error::Effects`], when somebody has changed the run
    /// meanwhile: return it with `?`; whatever the step returns then is discarded.
    pub async fn sync(&self) -> Result<()> {
        self.barrier.wait().await
    }

    /// Whether a transient failure now ends the run.
    pub fn is_last_attempt(&self) -> bool {
        self.attempts >= self.max_attempts
    }
}

/// Ids, numbers, lengths and header names, never the user's bytes.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut header_names: Vec<_> = self.headers.keys().collect();
        header_names.sort();
        f.debug_struct("Step")
            .field("run_id", &self.run_id)
            .field("step_number", &self.step_number)
            .field("payload_len", &self.payload.len())
            .field("header_names", &header_names)
            .field("job_id", &self.job_id)
            .field("signal_len", &self.signal.as_ref().map(Vec::len))
            .field("attempts", &self.attempts)
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}

/// The user's workflow: answers each step of a run with an outcome.
///
/// A step runs at least once, and never again once its outcome is committed. Write `async fn run_step`:
///
/// ```
/// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
///
/// struct Greeter;
///
/// impl StepRunner for Greeter {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         Ok(match step.step_number {
///             0 => StepOutcome::continue_now([b"hello ", step.payload.as_slice()].concat()),
///             _ => StepOutcome::Succeed { result: step.payload.clone() },
///         })
///     }
/// }
/// ```
pub trait StepRunner: Send + Sync {
    /// Executes one step. A panic counts as a transient error with the panic's message.
    ///
    /// # Errors
    ///
    /// A transient [`StepError`] is retried by policy and ends the run on the last attempt; a permanent one ends it.
    fn run_step(&self, step: &Step) -> impl Future<Output = Result<StepOutcome, StepError>> + Send;
}

/// When the next step may start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// At once.
    Immediate,
    /// Not before this delay has passed, counted from the end of the step that asked for it.
    After(Duration),
    /// When a signal comes on the key, or without one once the timeout is over; [`Duration::MAX`] waits for ever. A
    /// signal that came before the wait and is still buffered counts, and the next step starts at once.
    OnSignal {
        /// The key: 1 to 1,024 bytes of any text. One run waits for a key at a time; a second one fails its step.
        correlation_key: String,
        /// Counted from the end of the step that asked for it.
        timeout: Duration,
    },
    /// As [`OnSignal`](Self::OnSignal), on several keys: the first signal ends the wait on all of them. Of signals that
    /// are buffered already, the one of the key that is named first is taken.
    OnAnySignal {
        /// The keys: 1 to 16, each once.
        correlation_keys: Vec<String>,
        /// Counted from the end of the step that asked for it.
        timeout: Duration,
    },
}

/// A runner's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The run goes on with another step.
    Continue {
        /// What the next step is called with.
        payload: Vec<u8>,
        /// When it may start.
        when: Trigger,
    },
    /// The run has succeeded.
    Succeed {
        /// Its result.
        result: Vec<u8>,
    },
    /// The run has failed. Nothing is retried.
    Fail {
        /// Why; cut to 8 KiB.
        reason: String,
    },
    /// The run gives up on purpose.
    Cancel {
        /// Why; cut to 8 KiB.
        reason: String,
    },
}

impl StepOutcome {
    /// Goes on at once.
    pub fn continue_now(payload: Vec<u8>) -> Self {
        Self::Continue { payload, when: Trigger::Immediate }
    }

    /// Goes on after `delay`. A delay beyond the year 9999 means never.
    pub fn continue_after(payload: Vec<u8>, delay: Duration) -> Self {
        Self::Continue { payload, when: Trigger::After(delay) }
    }

    /// Goes on when a signal comes on `correlation_key`, or once `timeout` is over. The next step finds the signal in
    /// [`Step::signal`].
    pub fn continue_on_signal(payload: Vec<u8>, correlation_key: impl Into<String>, timeout: Duration) -> Self {
        Self::Continue { payload, when: Trigger::OnSignal { correlation_key: correlation_key.into(), timeout } }
    }

    /// Goes on when a signal comes on one of `correlation_keys`, or once `timeout` is over. The next step finds the
    /// signal in [`Step::signal`] and its key in [`Step::signal_key`].
    pub fn continue_on_any_signal<K: Into<String>>(
        payload: Vec<u8>,
        correlation_keys: impl IntoIterator<Item = K>,
        timeout: Duration,
    ) -> Self {
        let correlation_keys = correlation_keys.into_iter().map(Into::into).collect();
        Self::Continue { payload, when: Trigger::OnAnySignal { correlation_keys, timeout } }
    }
}

/// Why an attempt failed, and whether another may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct StepError {
    /// What went wrong; cut to 8 KiB when stored.
    pub message: String,
    /// Whether another attempt may help.
    pub kind: StepErrorKind,
    retry_after: Option<Duration>,
}

/// Whether another attempt may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepErrorKind {
    /// It may.
    Transient,
    /// It will not.
    Permanent,
}

impl StepError {
    /// A failure that another attempt may mend.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: StepErrorKind::Transient, retry_after: None }
    }

    /// A failure that no attempt will mend.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: StepErrorKind::Permanent, retry_after: None }
    }

    /// Waits `delay` before the next attempt, instead of the policy's delay.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The wait asked for by [`retry_after`](Self::retry_after).
    pub fn asked_delay(&self) -> Option<Duration> {
        self.retry_after
    }

    fn from_error(error: &dyn std::error::Error, permanent: bool) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        if permanent { Self::permanent(message) } else { Self::transient(message) }
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        Self::from_error(&error, error.is_permanent())
    }
}

impl From<workflow_effects::Error> for StepError {
    fn from(error: workflow_effects::Error) -> Self {
        Self::from_error(&error, error.is_permanent())
    }
}

impl From<workflow_memo::Error> for StepError {
    fn from(error: workflow_memo::Error) -> Self {
        Self::from_error(&error, error.is_permanent())
    }
}

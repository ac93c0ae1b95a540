//! The pure state machine of a durable workflow run.
//!
//! A [`Run`] is what the store knows of one run. An [`Event`] is one thing that happened to it, with every fact that
//! the decision needs. [`decide`] answers with a [`Transition`]: the next run, the one [`Action`] for the queue
//! delivery at hand, the [`Effect`]s that commit with it, and the [`Reason`].
//!
//! Nothing here does IO, reads a clock, draws a random number, waits or serializes. The same run and event always
//! give the same transition, so whoever carries a decision out can refuse it, forget it and decide again.
//!
//! ```
//! use workflow_core::{Action, Event, InputHash, Run, Submitted, Timestamp, Value, decide};
//!
//! let submitted = Event::Submitted(Submitted {
//!     incarnation: workflow_core::Incarnation::new(7),
//!     job: "job-1".into(),
//!     input: Value::from("order 17"),
//!     input_hash: InputHash([1; 32]),
//!     stored_input_hash: None,
//!     now: Timestamp::from_millis(1_000),
//!     run_at: None,
//! });
//! let transition = decide(&Run::absent(), submitted);
//! assert_eq!(transition.action, Action::None);
//! assert_eq!(transition.next.revision(), 1);
//! ```

mod attempts;
mod decide;
mod event;
mod failure;
mod id;
mod kind;
mod notification;
mod retry;
mod run;
mod signal;
mod text;
mod time;
mod transition;
mod value;

pub use attempts::{Attempts, ClaimVerdict, SUSPECT_AFTER};
pub use decide::decide;
pub use event::{
    Attempt, CancelGraceOver, CancelRequested, Claimed, DoorbellMissed, Event, HandedBack, InputHash, KeyState,
    Outcome, PauseRequested, RecordedStep, RedriveRequested, Resumed, Signalled, StepReturned, Submitted, TurnCame,
    WaitKey, When,
};
pub use failure::{AttemptFailed, Failure, FailureKind};
pub use id::{Incarnation, JobId, MAX_RUN_ID_LEN, ParseRunIdError, RunId};
pub use kind::{EventKind, PhaseKind};
pub use notification::{
    Notification, NotificationAction, NotificationClaimed, NotificationEvent, NotificationTransition,
    decide_notification,
};
pub use retry::{Jitter, RetryPolicy};
pub use run::{ActiveRun, CancelRequest, EndedRun, Phase, Remains, Run, RunState, Status};
pub use signal::{
    CorrelationKey, MAX_CORRELATION_KEY_LEN, MAX_WAIT_KEYS, ParseCorrelationKeyError, Signal, SignalId, Slot, Waiter,
};
pub use text::{MAX_TEXT_LEN, cut_text};
pub use time::Timestamp;
pub use transition::{Action, Effect, Reason, Transition};
pub use value::{ObjectRef, Value};

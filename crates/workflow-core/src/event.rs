//! Everything that can happen to a run, each event with every fact its decision needs.
//!
//! A fact can be out of date by the time its transition commits. The expectation that the commit names on the run
//! record guards everything read from the record; a fact with another guard says so.

use crate::{AttemptFailed, CorrelationKey, Incarnation, JobId, Signal, Timestamp, Value};

/// One thing that happened to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody submitted the run's id.
    Submitted(Submitted),
    /// A doorbell of the run was delivered.
    Claimed(Claimed),
    /// A parked suspect's turn came.
    TurnCame(TurnCame),
    /// The runner answered.
    StepReturned(StepReturned),
    /// The runner failed, panicked or took too long.
    StepFailed(AttemptFailed),
    /// The runtime shuts down and gives the delivery back.
    HandedBack(HandedBack),
    /// A signal came for a key whose slot names the run.
    Signalled(Signalled),
    /// Somebody asked for the end of the run.
    CancelRequested(CancelRequested),
    /// A runner did not return in time after its token fired.
    CancelGraceOver(CancelGraceOver),
}

/// See [`Event::Submitted`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The incarnation of the run, should it be new. Random, so nobody else has it.
    pub incarnation: Incarnation,
    /// The job to enqueue, should the run be new. Reserved by the queue, so nobody else has it.
    pub job: JobId,
    /// The input.
    pub input: Value,
    /// The hash of the input's bytes.
    pub input_hash: InputHash,
    /// The hash of the input that the run was submitted with before. Never changes within the incarnation that the
    /// record names.
    pub stored_input_hash: Option<InputHash>,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// When the first step may start, if not at once.
    pub run_at: Option<Timestamp>,
}

/// The SHA-256 of an input. "Same input" means the input's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputHash(pub [u8; 32]);

/// One delivery of a doorbell, while it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The incarnation that the doorbell names.
    pub incarnation: Incarnation,
    /// The step that the attempt executes.
    pub step: u32,
    /// The doorbell.
    pub job: JobId,
    /// How often the doorbell has been delivered, this time included.
    pub deliveries: u32,
}

/// See [`Event::Claimed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The incarnation that the doorbell names. A doorbell proves nothing: it is compared with the record.
    pub incarnation: Incarnation,
    /// The doorbell.
    pub job: JobId,
    /// How often the doorbell has been delivered, this time included.
    pub deliveries: u32,
    /// The attempts that a step of the run may use, at least 1. Never changes within an incarnation.
    pub max_attempts: u32,
    /// The time. Only moves on, so a due step stays due.
    pub now: Timestamp,
    /// The job to enqueue, should this delivery be early. Reserved by the queue.
    pub next_job: JobId,
}

/// See [`Event::TurnCame`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnCame {
    /// The delivery that waited.
    pub attempt: Attempt,
    /// The time. Only moves on.
    pub now: Timestamp,
}

/// See [`Event::StepReturned`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReturned {
    /// The attempt that returned.
    pub attempt: Attempt,
    /// What the runner answered.
    pub outcome: Outcome,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job to enqueue, should the next step need one. Reserved by the queue.
    pub next_job: JobId,
    /// Whether an immediate next step may go on in the same delivery. Stale costs a queue round trip, nothing more.
    pub inline: bool,
}

/// A runner's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Another step follows.
    Continue {
        /// What it is called with.
        payload: Value,
        /// When it may start.
        when: When,
    },
    /// The run succeeded.
    Succeed {
        /// Its result.
        result: Value,
    },
    /// The run failed.
    Fail {
        /// Why, already cut to its limit.
        reason: String,
    },
    /// The run gave up.
    Cancel {
        /// Why, already cut to its limit.
        reason: String,
    },
}

impl Outcome {
    /// The value that it brings along.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Continue { payload: value, .. } | Self::Succeed { result: value } => Some(value),
            Self::Fail { .. } | Self::Cancel { .. } => None,
        }
    }
}

/// When the next step may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// At once.
    Now,
    /// At this time, or at once if it has come.
    At(Timestamp),
    /// When a signal comes on one of these keys, or at this time without one. Never without one if there is no time.
    OnSignal {
        /// The keys, each once and in the order in which buffered signals are looked for.
        keys: Vec<WaitKey>,
        /// When the wait ends without a signal.
        until: Option<Timestamp>,
    },
}

/// A key that is to be waited for, and what its slot holds. The expectation on the slot guards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitKey {
    /// The key.
    pub key: CorrelationKey,
    /// What its slot holds.
    pub state: KeyState,
}

/// What the slot of a key holds for a run that begins to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Nothing.
    Free,
    /// Another run waits.
    Taken,
    /// This signal, the oldest of those that are buffered.
    Buffered(Signal),
}

/// See [`Event::Signalled`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signalled {
    /// The signal.
    pub signal: Signal,
    /// The incarnation that the slot names.
    pub incarnation: Incarnation,
    /// The step that the slot names.
    pub step: u32,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job to enqueue. Reserved by the queue.
    pub next_job: JobId,
}

/// See [`Event::CancelRequested`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequested {
    /// Why, already cut to its limit.
    pub reason: Option<String>,
    /// Whether somebody may hold the run's doorbell. A delivery that begins after this was looked up finds its commit
    /// refused, and nothing of it counts.
    pub in_hand: bool,
    /// The time. Only moves on.
    pub now: Timestamp,
}

/// See [`Event::CancelGraceOver`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelGraceOver {
    /// The attempt whose runner goes on.
    pub attempt: Attempt,
    /// The time. Only moves on.
    pub now: Timestamp,
}

/// See [`Event::HandedBack`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedBack {
    /// The attempt that was broken off. It is not counted.
    pub attempt: Attempt,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job of the next attempt. Reserved by the queue.
    pub next_job: JobId,
}

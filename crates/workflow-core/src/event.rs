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
    /// Somebody asked that no step of the run start.
    PauseRequested(PauseRequested),
    /// Somebody asked that a paused run go on.
    Resumed(Resumed),
    /// Somebody asked that a run that has ended go on.
    RedriveRequested(RedriveRequested),
    /// The run's doorbell was looked for and is not there.
    DoorbellMissed(DoorbellMissed),
}

impl Event {
    /// When it happened.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Submitted(event) => event.now,
            Self::Claimed(event) => event.now,
            Self::TurnCame(event) => event.now,
            Self::StepReturned(event) => event.now,
            Self::StepFailed(event) => event.now,
            Self::HandedBack(event) => event.now,
            Self::Signalled(event) => event.now,
            Self::CancelRequested(event) => event.now,
            Self::CancelGraceOver(event) => event.now,
            Self::PauseRequested(event) => event.now,
            Self::Resumed(event) => event.now,
            Self::RedriveRequested(event) => event.now,
            Self::DoorbellMissed(event) => event.now,
        }
    }
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
    /// The job that takes the place of this one, should the delivery be early, held back or put back. Reserved by the
    /// queue.
    pub next_job: JobId,
    /// The attempt whose outcome was written down before its commit, where that is done. Its row is written by the
    /// attempt alone.
    pub recorded: Option<Attempt>,
    /// Whether an operator put the job back after it was dead. Stays so until it is dead again.
    pub requeued: bool,
}

/// See [`Event::TurnCame`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnCame {
    /// The delivery that waited.
    pub attempt: Attempt,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The step's job, should the run be paused. Reserved by the queue.
    pub next_job: JobId,
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

/// See [`Event::PauseRequested`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseRequested {
    /// The time. Only moves on.
    pub now: Timestamp,
}

/// See [`Event::Resumed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Whether the job that the record names is there, waiting or in somebody's hands. It goes only after a commit that
    /// names another.
    pub has_doorbell: bool,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job to enqueue, should there be none. Reserved by the queue.
    pub next_job: JobId,
}

/// See [`Event::RedriveRequested`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveRequested {
    /// The step to go on from, as it was written down; the one that ended the run if none.
    pub from: Option<RecordedStep>,
    /// What the step is to be called with, instead of what it was called with before.
    pub payload: Option<Value>,
    /// What the slots hold of the keys that the run waited for when it was cancelled, in its order. Only the step that
    /// ended the run, asked for by its number or not, waits for them again.
    pub keys: Vec<WaitKey>,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job to enqueue. Reserved by the queue.
    pub next_job: JobId,
}

/// A step that is over, with what it was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// The step. A later one than the one that ended the run is left over from before a redrive.
    pub step: u32,
    /// What it was called with.
    pub payload: Value,
    /// The signal that ended the wait before it.
    pub signal: Option<Signal>,
}

/// See [`Event::DoorbellMissed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorbellMissed {
    /// The job that is not there. A job goes only after a commit that names another.
    pub job: JobId,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job to enqueue in its place. Reserved by the queue.
    pub next_job: JobId,
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

//! Everything that can happen to a run, each event with every fact its decision needs.
//!
//! A fact can be out of date by the time its transition commits. The expectation that the commit names on the run
//! record guards everything read from the record; a fact with another guard says so.

use crate::{AttemptFailed, Incarnation, JobId, Timestamp, Value};

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
    /// The attempts that a step of the run may use. Never changes within an incarnation.
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
        /// When it may start, if not at once.
        due: Option<Timestamp>,
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

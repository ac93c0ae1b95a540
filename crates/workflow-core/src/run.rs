//! What is known of one run.

use crate::{Attempts, CorrelationKey, Incarnation, JobId, Signal, Timestamp, Value};

/// One run, as its record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// Never submitted.
    Absent,
    /// Submitted and not ended.
    Active(ActiveRun),
    /// Ended, for good.
    Ended(EndedRun),
}

/// A run that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRun {
    /// One more in every commit that writes the record, so that no two commits write equal bytes.
    pub revision: u64,
    /// Which submission of the id this is.
    pub incarnation: Incarnation,
    /// How often the run was brought back after an end.
    pub redrive: u32,
    /// Since when the run is in its [state](Run::state).
    pub since: Timestamp,
    /// The step in hand or due next, from 0.
    pub step: u32,
    /// The queue job whose deliveries execute the step. Every other job of the run is stale. While there is no
    /// [doorbell](Self::needs_doorbell) it may name a job that was never queued.
    pub job: JobId,
    /// What the step waits for.
    pub phase: Phase,
    /// What the step is called with.
    pub payload: Value,
    /// The signal that ended the wait before the step. Every attempt of the step sees the same.
    pub signal: Option<Signal>,
    /// The attempts of the step so far.
    pub attempts: Attempts,
    /// Somebody asked for the end of the run while a step of it was in hand: nothing starts any more.
    pub cancel: Option<CancelRequest>,
    /// Nothing starts until somebody resumes the run. Signals and the ends of waits are taken in meanwhile.
    pub paused: bool,
}

impl ActiveRun {
    /// Whether a doorbell of the step has to be under way. A wait without an end has none, for nothing but a signal
    /// ends it; neither has a paused run, but for the one that ends its wait, or the run if somebody asked for that.
    pub fn needs_doorbell(&self) -> bool {
        match self.phase {
            Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => !self.paused || self.cancel.is_some(),
            Phase::Waiting { until, .. } => until.is_some(),
        }
    }
}

/// The wish that a run end. The first one stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// Why, already cut to its limit.
    pub reason: Option<String>,
}

/// What the step in hand waits for. Times are persisted; a delivery before them is early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// For a worker.
    Ready,
    /// For the end of the pause after a failed attempt.
    BackingOff {
        /// Not before this.
        until: Timestamp,
    },
    /// For the time that the submission or the previous step asked for.
    Delayed {
        /// Not before this.
        until: Timestamp,
    },
    /// For a signal on one of these keys. The slot of each names the run.
    Waiting {
        /// The keys, each once.
        keys: Vec<CorrelationKey>,
        /// When the wait ends without a signal; never if there is no such time, and then no doorbell is under way.
        until: Option<Timestamp>,
    },
}

impl Phase {
    /// The time at which the step's doorbell rings, if it does not at once; see
    /// [`needs_doorbell`](ActiveRun::needs_doorbell).
    pub fn due(&self) -> Option<Timestamp> {
        match *self {
            Self::Ready => None,
            Self::BackingOff { until } | Self::Delayed { until } => Some(until),
            Self::Waiting { until, .. } => until,
        }
    }

    /// Whether the time at which the step may start has come. A wait keeps it from starting before it is resolved.
    pub fn is_due(&self, now: Timestamp) -> bool {
        match *self {
            Self::Ready => true,
            Self::BackingOff { until } | Self::Delayed { until } => until <= now,
            Self::Waiting { .. } => false,
        }
    }
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    /// Goes on from the active run's.
    pub revision: u64,
    /// Which submission of the id this was.
    pub incarnation: Incarnation,
    /// How it ended.
    pub status: Status,
    /// The result of a run that succeeded.
    pub result: Option<Value>,
    /// Why it failed or was cancelled.
    pub error: Option<String>,
    /// The step that ended it.
    pub final_step: u32,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The job whose delivery ended it.
    pub final_job: JobId,
    /// Whether that job belongs in the dead letters.
    pub dead_letter: bool,
    /// How often the run was brought back before this end.
    pub redrive: u32,
    /// What a redrive goes on from. A run that succeeded has none.
    pub remains: Option<Remains>,
}

/// The step that ended its run, as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// What the step is called with.
    pub payload: Value,
    /// The signal that ended the wait before it.
    pub signal: Option<Signal>,
    /// What the step waited for when the run was cancelled.
    pub phase: Phase,
}

/// What a run does, in a few words: runs are listed by it. Steps that follow one another do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunState {
    /// A step executes, or is due now or later.
    Active,
    /// It waits for a signal.
    Waiting,
    /// It was paused, whatever it did before.
    Paused,
    /// It has ended.
    Ended(Status),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// With a result.
    Succeeded,
    /// With an error.
    Failed,
    /// Given up on purpose.
    Cancelled,
}

impl Run {
    /// The run of an id that nobody submitted.
    pub fn absent() -> Self {
        Self::Absent
    }

    /// The record's revision, 0 for a run without a record.
    pub fn revision(&self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Active(run) => run.revision,
            Self::Ended(run) => run.revision,
        }
    }

    /// What the run does, and since when. Nothing for a run that is absent.
    pub fn state(&self) -> Option<(RunState, Timestamp)> {
        match self {
            Self::Absent => None,
            Self::Active(run) if run.paused => Some((RunState::Paused, run.since)),
            Self::Active(run) if matches!(run.phase, Phase::Waiting { .. }) => Some((RunState::Waiting, run.since)),
            Self::Active(run) => Some((RunState::Active, run.since)),
            Self::Ended(run) => Some((RunState::Ended(run.status), run.ended_at)),
        }
    }

    /// The submission that the record is of.
    pub fn incarnation(&self) -> Option<Incarnation> {
        match self {
            Self::Absent => None,
            Self::Active(run) => Some(run.incarnation),
            Self::Ended(run) => Some(run.incarnation),
        }
    }
}

//! What a decision says: a value, carried out by others.

use crate::{CorrelationKey, JobId, Run, Timestamp, Value};

/// A decision, complete: it commits as one transaction or leaves no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The run once the transition has committed. Equal to the run it was decided on when nothing is to be written.
    pub next: Run,
    /// What becomes of the delivery at hand, after the commit.
    pub action: Action,
    /// What commits together with `next`.
    pub effects: Vec<Effect>,
    /// Why.
    pub reason: Reason,
}

/// What becomes of the delivery at hand, once the transition is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Call the runner.
    Execute {
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Apply the outcome that an earlier attempt of the step has written down, as if the runner had answered it in this
    /// delivery. That attempt is not fenced: when the commit is refused, the delivery has to be decided on again from
    /// its claim, for the run may have gone on under the same doorbell.
    Replay,
    /// Keep the delivery and wait for the turn of this suspect.
    Park,
    /// Call the runner for the next step, in the same delivery.
    Advance,
    /// The delivery is done with.
    Ack,
    /// The delivery's job goes to the dead letters.
    DeadLetter,
    /// The delivery means nothing any more: it is done with, and nothing was written.
    Discard,
    /// There is no delivery.
    None,
}

/// A change that commits together with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write down what the run was submitted with, and the submitter's KV writes.
    RecordSubmission,
    /// Ring the run's next doorbell.
    EnqueueStep {
        /// The job.
        job: JobId,
        /// When, if not at once.
        due: Option<Timestamp>,
    },
    /// Apply what the step staged.
    ApplyStaged,
    /// Write down how the step in hand ended.
    RecordStep,
    /// Tell the terminal hook of the end, if it observes it.
    NotifyEnd,
    /// Enter the next run as the waiter of these keys.
    RegisterWaiter {
        /// The keys, each of which was free.
        keys: Vec<CorrelationKey>,
    },
    /// Free these keys: nobody waits for them any more.
    FreeWaiter {
        /// The keys of the wait that is over.
        keys: Vec<CorrelationKey>,
    },
    /// Take the oldest buffered signal of this key away.
    TakeSignal {
        /// The key.
        key: CorrelationKey,
    },
    /// This job, which is not due yet or dead, rings for nobody any more: remove it once the commit is durable. One that
    /// stays is stale when it rings.
    DropDoorbell(JobId),
    /// Nothing names this value any more: delete its object once the commit is durable.
    ReleaseValue(Value),
}

/// Why a transition of a run or notification was decided, for logs, tests and the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A new run.
    Submitted,
    /// The same submission again.
    Duplicate,
    /// The id is taken by a run with another input.
    InputMismatch,
    /// A doorbell or attempt of a run that is not there.
    NoRun,
    /// A doorbell that is not the run's current one.
    StaleDoorbell,
    /// An attempt that a later delivery or another step has overtaken.
    LateAttempt,
    /// A doorbell or attempt of a step that has not begun: it waits for a signal.
    NotBegun,
    /// The doorbell rang before its time.
    RangEarly,
    /// The step may start.
    Started,
    /// Deliveries were lost; this one is counted and may start.
    StartedAfterLoss,
    /// Deliveries were lost too often: the step waits for its turn among the suspects.
    Suspected,
    /// Every attempt was lost with its delivery.
    AttemptsLost,
    /// The next step follows in the same delivery.
    Advanced,
    /// The next step follows through the queue.
    Continued,
    /// The next step follows later.
    Delayed,
    /// The step number cannot rise further.
    StepLimit,
    /// The run succeeded.
    Succeeded,
    /// The runner failed the run.
    Failed,
    /// The runner cancelled the run.
    Cancelled,
    /// The attempt failed and another follows.
    Retrying,
    /// The last attempt failed.
    AttemptsExhausted,
    /// The attempt failed for good.
    FailedPermanently,
    /// The runtime shuts down; the attempt is not counted.
    HandedBack,
    /// The next step waits for a signal.
    Waiting,
    /// The wait was over before it began: a signal was buffered.
    ConsumedBuffered,
    /// The wait had no time to last.
    WaitedNoTime,
    /// Another run waits for one of the keys.
    KeyTaken,
    /// A signal ended the wait.
    Signalled,
    /// The wait ended without a signal, and the step may start.
    TimedOut,
    /// The slot names a run that does not wait for the signal.
    NobodyWaits,
    /// A step is in hand: it is asked to stop, and the run ends with it.
    CancelRequested,
    /// That has been asked before.
    CancelPending,
    /// The run ended because somebody asked for it.
    CancelledOnRequest,
    /// Nobody asked for the end of the run.
    NotCancelled,
    /// The run has ended.
    AlreadyEnded,
    /// The run or notification ended with this doorbell, as a dead letter; only its settlement was lost.
    EndedAsDeadLetter,
    /// A doorbell or call of a notification that is not there.
    NothingOwed,
    /// The hook succeeded.
    HookReturned,
    /// The notification has had its last call.
    AlreadyDead,
    /// An operator put the dead job of the run or notification back.
    PutBack,
    /// No step starts any more until the run is resumed.
    Paused,
    /// That has been asked before.
    AlreadyPaused,
    /// The run is paused: its step waits.
    HeldBack,
    /// The paused run goes on.
    Resumed,
    /// The run is not paused.
    NotPaused,
    /// The run that had ended goes on.
    Redriven,
    /// The run goes on, so there is no end to bring it back from.
    NotEnded,
    /// There is nothing to go on from: the run succeeded, or it had not come to the step.
    NothingToRedrive,
    /// The doorbell was missing and rings again.
    RungAgain,
    /// The doorbell that was missed is not the run's.
    NotMissed,
    /// The step's outcome had been written down.
    Replayed,
}

impl Reason {
    /// The reason as a constant name for logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Duplicate => "duplicate",
            Self::InputMismatch => "input_mismatch",
            Self::NoRun => "no_run",
            Self::StaleDoorbell => "stale_doorbell",
            Self::LateAttempt => "late_attempt",
            Self::NotBegun => "not_begun",
            Self::RangEarly => "rang_early",
            Self::Started => "started",
            Self::StartedAfterLoss => "started_after_loss",
            Self::Suspected => "suspected",
            Self::AttemptsLost => "attempts_lost",
            Self::Advanced => "advanced",
            Self::Continued => "continued",
            Self::Delayed => "delayed",
            Self::StepLimit => "step_limit",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Retrying => "retrying",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::FailedPermanently => "failed_permanently",
            Self::HandedBack => "handed_back",
            Self::Waiting => "waiting",
            Self::ConsumedBuffered => "consumed_buffered",
            Self::WaitedNoTime => "waited_no_time",
            Self::KeyTaken => "key_taken",
            Self::Signalled => "signalled",
            Self::TimedOut => "timed_out",
            Self::NobodyWaits => "nobody_waits",
            Self::CancelRequested => "cancel_requested",
            Self::CancelPending => "cancel_pending",
            Self::CancelledOnRequest => "cancelled_on_request",
            Self::NotCancelled => "not_cancelled",
            Self::AlreadyEnded => "already_ended",
            Self::EndedAsDeadLetter => "ended_as_dead_letter",
            Self::NothingOwed => "nothing_owed",
            Self::HookReturned => "hook_returned",
            Self::AlreadyDead => "already_dead",
            Self::PutBack => "put_back",
            Self::Paused => "paused",
            Self::AlreadyPaused => "already_paused",
            Self::HeldBack => "held_back",
            Self::Resumed => "resumed",
            Self::NotPaused => "not_paused",
            Self::Redriven => "redriven",
            Self::NotEnded => "not_ended",
            Self::NothingToRedrive => "nothing_to_redrive",
            Self::RungAgain => "rung_again",
            Self::NotMissed => "not_missed",
            Self::Replayed => "replayed",
        }
    }
}

impl Transition {
    /// Nothing is written; the delivery, if any, is treated as `action` says.
    pub(crate) fn keep(run: &Run, action: Action, reason: Reason) -> Self {
        Self { next: run.clone(), action, effects: Vec::new(), reason }
    }
}

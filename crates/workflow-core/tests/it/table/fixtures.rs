//! One run per phase of the table, and the facts of it that events are made from.

use workflow_core::{
    ActiveRun, Attempt, Attempts, CancelRequest, CorrelationKey, EndedRun, Incarnation, InputHash, JobId, Phase,
    Remains, Run, Signal, SignalId, Status, Timestamp, Value,
};

/// The present of every row.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(100_000);
/// A time that has passed.
pub(crate) const PAST: Timestamp = Timestamp::from_millis(95_000);
/// A time to come.
pub(crate) const FUTURE: Timestamp = Timestamp::from_millis(110_000);
/// The attempts that a step may use.
pub(crate) const MAX_ATTEMPTS: u32 = 5;
/// What the run was submitted with.
pub(crate) const INPUT_HASH: InputHash = InputHash([1; 32]);
/// The step in hand.
pub(crate) const STEP: u32 = 3;
/// How often the run was brought back.
const REDRIVE: u32 = 1;

/// The columns' "phase": a phase, and where it matters whether its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Absent,
    Ready,
    BackingOffEarly,
    BackingOffDue,
    DelayedEarly,
    DelayedDue,
    Parked,
    Signalled,
    WaitingEarly,
    WaitingDue,
    WaitingWithoutEnd,
    ToBeCancelled,
    PausedReady,
    PausedBackingOff,
    PausedDelayed,
    PausedParked,
    PausedSignalled,
    PausedWaitingEarly,
    PausedWaitingDue,
    PausedWaitingWithoutEnd,
    PausedToBeCancelled,
    Succeeded,
    Failed,
    DeadLetter,
    CancelledWaiting,
    CancelledDelayed,
}

impl Stage {
    pub(crate) const ALL: [Self; 26] = [
        Self::Absent,
        Self::Ready,
        Self::BackingOffEarly,
        Self::BackingOffDue,
        Self::DelayedEarly,
        Self::DelayedDue,
        Self::Parked,
        Self::Signalled,
        Self::WaitingEarly,
        Self::WaitingDue,
        Self::WaitingWithoutEnd,
        Self::ToBeCancelled,
        Self::PausedReady,
        Self::PausedBackingOff,
        Self::PausedDelayed,
        Self::PausedParked,
        Self::PausedSignalled,
        Self::PausedWaitingEarly,
        Self::PausedWaitingDue,
        Self::PausedWaitingWithoutEnd,
        Self::PausedToBeCancelled,
        Self::Succeeded,
        Self::Failed,
        Self::DeadLetter,
        Self::CancelledWaiting,
        Self::CancelledDelayed,
    ];

    /// The phases of a step that may start, at once or later.
    pub(crate) const STARTABLE: &[Self] = &[
        Self::Ready,
        Self::BackingOffEarly,
        Self::BackingOffDue,
        Self::DelayedEarly,
        Self::DelayedDue,
        Self::Parked,
        Self::Signalled,
    ];

    /// Those of a step that might if its run were not paused.
    pub(crate) const PAUSED_STARTABLE: &[Self] =
        &[Self::PausedReady, Self::PausedBackingOff, Self::PausedDelayed, Self::PausedParked, Self::PausedSignalled];

    /// The phases of a step that waits for a signal.
    pub(crate) const WAITING: &[Self] = &[Self::WaitingEarly, Self::WaitingDue, Self::WaitingWithoutEnd];

    /// Those of one whose run is paused.
    pub(crate) const PAUSED_WAITING: &[Self] =
        &[Self::PausedWaitingEarly, Self::PausedWaitingDue, Self::PausedWaitingWithoutEnd];

    /// The phases of a run that is paused.
    pub(crate) const PAUSED: &[Self] = &[
        Self::PausedReady,
        Self::PausedBackingOff,
        Self::PausedDelayed,
        Self::PausedParked,
        Self::PausedSignalled,
        Self::PausedWaitingEarly,
        Self::PausedWaitingDue,
        Self::PausedWaitingWithoutEnd,
        Self::PausedToBeCancelled,
    ];

    /// The phases of a run that goes on, paused or not.
    pub(crate) const ACTIVE: &[Self] = &[
        Self::Ready,
        Self::BackingOffEarly,
        Self::BackingOffDue,
        Self::DelayedEarly,
        Self::DelayedDue,
        Self::Parked,
        Self::Signalled,
        Self::WaitingEarly,
        Self::WaitingDue,
        Self::WaitingWithoutEnd,
        Self::ToBeCancelled,
        Self::PausedReady,
        Self::PausedBackingOff,
        Self::PausedDelayed,
        Self::PausedParked,
        Self::PausedSignalled,
        Self::PausedWaitingEarly,
        Self::PausedWaitingDue,
        Self::PausedWaitingWithoutEnd,
        Self::PausedToBeCancelled,
    ];

    /// The ends of a run.
    pub(crate) const ENDED: &[Self] =
        &[Self::Succeeded, Self::Failed, Self::DeadLetter, Self::CancelledWaiting, Self::CancelledDelayed];

    /// The ends of a run that was cancelled.
    pub(crate) const CANCELLED: &[Self] = &[Self::CancelledWaiting, Self::CancelledDelayed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Ready => "ready",
            Self::BackingOffEarly => "backing off, early",
            Self::BackingOffDue => "backing off, due",
            Self::DelayedEarly => "delayed, early",
            Self::DelayedDue => "delayed, due",
            Self::Parked => "parked",
            Self::Signalled => "signalled",
            Self::WaitingEarly => "waiting, early",
            Self::WaitingDue => "waiting, due",
            Self::WaitingWithoutEnd => "waiting without end",
            Self::ToBeCancelled => "to be cancelled",
            Self::PausedReady => "paused, ready",
            Self::PausedBackingOff => "paused, backing off",
            Self::PausedDelayed => "paused, delayed",
            Self::PausedParked => "paused, parked",
            Self::PausedSignalled => "paused, signalled",
            Self::PausedWaitingEarly => "paused, waiting, early",
            Self::PausedWaitingDue => "paused, waiting, due",
            Self::PausedWaitingWithoutEnd => "paused, waiting without end",
            Self::PausedToBeCancelled => "paused, to be cancelled",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::DeadLetter => "dead letter",
            Self::CancelledWaiting => "cancelled waiting",
            Self::CancelledDelayed => "cancelled delayed",
        }
    }

    pub(crate) fn run(self) -> Run {
        let fresh = Attempts::default();
        let lost_and_failed = Attempts { used: 2, lost: 1, ..fresh };
        let suspect = Attempts { used: 2, base: 2, lost: 2, parked: true };
        let waits = |until| Phase::Waiting { keys: vec![key("a"), key("b")], until };
        let signalled = ActiveRun { signal: Some(signal("a", "signal")), ..active(Phase::Ready, fresh) };
        let request = CancelRequest { reason: Some("first".to_owned()) };
        let run = match self {
            Self::Absent => return Run::absent(),
            Self::Ready | Self::PausedReady => active(Phase::Ready, fresh),
            Self::BackingOffEarly | Self::PausedBackingOff => {
                active(Phase::BackingOff { until: FUTURE }, lost_and_failed)
            }
            Self::BackingOffDue => active(Phase::BackingOff { until: PAST }, lost_and_failed),
            Self::DelayedEarly | Self::PausedDelayed => active(Phase::Delayed { until: FUTURE }, fresh),
            Self::DelayedDue => active(Phase::Delayed { until: PAST }, fresh),
            Self::Parked | Self::PausedParked => active(Phase::Ready, suspect),
            Self::Signalled | Self::PausedSignalled => signalled,
            Self::WaitingEarly | Self::PausedWaitingEarly => active(waits(Some(FUTURE)), fresh),
            Self::WaitingDue | Self::PausedWaitingDue => active(waits(Some(PAST)), fresh),
            Self::WaitingWithoutEnd | Self::PausedWaitingWithoutEnd => active(waits(None), fresh),
            Self::ToBeCancelled | Self::PausedToBeCancelled => ActiveRun { cancel: Some(request), ..signalled },
            Self::Succeeded => return ended(Status::Succeeded, None),
            Self::Failed => return ended(Status::Failed, Some(Phase::Ready)),
            Self::DeadLetter => return dead_letter(),
            Self::CancelledWaiting => return ended(Status::Cancelled, Some(waits(Some(FUTURE)))),
            Self::CancelledDelayed => return ended(Status::Cancelled, Some(Phase::Delayed { until: FUTURE })),
        };
        Run::Active(ActiveRun { paused: Self::PAUSED.contains(&self), ..run })
    }
}

pub(crate) fn key(key: &str) -> CorrelationKey {
    CorrelationKey::parse(key).expect("a short text is a key")
}

pub(crate) fn signal(on: &str, payload: &'static str) -> Signal {
    Signal { id: SignalId::new(1), key: key(on), payload: Value::from(payload) }
}

fn active(phase: Phase, attempts: Attempts) -> ActiveRun {
    ActiveRun {
        revision: 9,
        incarnation: Incarnation::new(7),
        redrive: REDRIVE,
        since: PAST,
        step: STEP,
        job: JobId::from("current"),
        phase,
        payload: Value::from("payload"),
        signal: None,
        attempts,
        cancel: None,
        paused: false,
    }
}

/// A run that is over, with what remains of a step in this phase. One that waits has no signal yet.
fn ended(status: Status, phase: Option<Phase>) -> Run {
    let remains = |phase| {
        let signal = (phase == Phase::Ready).then(|| signal("a", "signal"));
        Remains { payload: Value::from("payload"), signal, phase }
    };
    let succeeded = status == Status::Succeeded;
    Run::Ended(EndedRun {
        revision: 9,
        incarnation: Incarnation::new(7),
        status,
        result: succeeded.then(|| Value::from("result")),
        error: (!succeeded).then(|| "no".to_owned()),
        final_step: STEP,
        ended_at: PAST,
        final_job: JobId::from("current"),
        dead_letter: false,
        redrive: REDRIVE,
        remains: phase.map(remains),
    })
}

fn dead_letter() -> Run {
    let Run::Ended(failed) = ended(Status::Failed, Some(Phase::Ready)) else { unreachable!("an end") };
    Run::Ended(EndedRun { dead_letter: true, ..failed })
}

/// What a delivery that is current would say of the run.
pub(crate) struct Facts {
    pub(crate) incarnation: Incarnation,
    pub(crate) step: u32,
    pub(crate) job: JobId,
    pub(crate) attempts: Attempts,
}

impl Facts {
    pub(crate) fn of(run: &Run) -> Self {
        let (step, attempts) = match run {
            Run::Absent => (0, Attempts::default()),
            Run::Active(run) => (run.step, run.attempts),
            Run::Ended(run) => (run.final_step, Attempts::default()),
        };
        Self { incarnation: Incarnation::new(7), step, job: JobId::from("current"), attempts }
    }

    /// The number of the delivery that no other has overtaken and before which none was lost.
    pub(crate) fn delivery(&self) -> u32 {
        self.attempts.base + 1
    }

    /// The number of the attempt that this delivery makes.
    pub(crate) fn attempt_number(&self) -> u32 {
        self.attempts.number(self.delivery())
    }

    pub(crate) fn attempt(&self) -> Attempt {
        Attempt { incarnation: self.incarnation, step: self.step, job: self.job.clone(), deliveries: self.delivery() }
    }
}

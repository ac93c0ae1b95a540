//! One run per phase of the table, and the facts of it that events are made from.

use workflow_core::{
    ActiveRun, Attempt, Attempts, CancelRequest, CorrelationKey, EndedRun, Incarnation, InputHash, JobId, Phase, Run,
    Signal, SignalId, Status, Timestamp, Value,
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
    EndedNormally,
    EndedAsDeadLetter,
}

impl Stage {
    pub(crate) const ALL: [Self; 14] = [
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
        Self::EndedNormally,
        Self::EndedAsDeadLetter,
    ];

    /// The phases of a step that waits for a signal.
    pub(crate) const WAITING: &[Self] = &[Self::WaitingEarly, Self::WaitingDue, Self::WaitingWithoutEnd];

    /// The phases of a run that goes on.
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
    ];

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
            Self::EndedNormally => "ended",
            Self::EndedAsDeadLetter => "ended as dead letter",
        }
    }

    pub(crate) fn run(self) -> Run {
        let fresh = Attempts::default();
        let lost_and_failed = Attempts { used: 2, lost: 1, ..fresh };
        let suspect = Attempts { used: 2, base: 2, lost: 2, parked: true };
        let waiting = |until| active(Phase::Waiting { keys: vec![key("a"), key("b")], until }, fresh);
        let signalled = ActiveRun { signal: Some(signal("a", "signal")), ..active(Phase::Ready, fresh) };
        let request = CancelRequest { reason: Some("first".to_owned()) };
        let run = match self {
            Self::Absent => return Run::absent(),
            Self::Ready => active(Phase::Ready, fresh),
            Self::BackingOffEarly => active(Phase::BackingOff { until: FUTURE }, lost_and_failed),
            Self::BackingOffDue => active(Phase::BackingOff { until: PAST }, lost_and_failed),
            Self::DelayedEarly => active(Phase::Delayed { until: FUTURE }, fresh),
            Self::DelayedDue => active(Phase::Delayed { until: PAST }, fresh),
            Self::Parked => active(Phase::Ready, suspect),
            Self::Signalled => signalled,
            Self::WaitingEarly => waiting(Some(FUTURE)),
            Self::WaitingDue => waiting(Some(PAST)),
            Self::WaitingWithoutEnd => waiting(None),
            Self::ToBeCancelled => ActiveRun { cancel: Some(request), ..signalled },
            Self::EndedNormally => return ended(Status::Succeeded),
            Self::EndedAsDeadLetter => return ended(Status::Failed),
        };
        Run::Active(run)
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
        step: STEP,
        job: JobId::from("current"),
        phase,
        payload: Value::from("payload"),
        signal: None,
        attempts,
        cancel: None,
    }
}

fn ended(status: Status) -> Run {
    let failed = status == Status::Failed;
    Run::Ended(EndedRun {
        revision: 9,
        incarnation: Incarnation::new(7),
        status,
        result: (!failed).then(|| Value::from("result")),
        error: failed.then(|| "no".to_owned()),
        final_step: STEP,
        ended_at: PAST,
        final_job: JobId::from("current"),
        dead_letter: failed,
    })
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

//! One run per phase of the table, and the facts of it that events are made from.

use workflow_core::{
    ActiveRun, Attempt, Attempts, CancelRequest, CorrelationKey, EndedRun, Incarnation, InputHash, JobId, Phase,
    PhaseKind as Stage, Remains, Run, Signal, SignalId, Status, Timestamp, Value,
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

/// A run in this phase.
pub(crate) fn run_in(stage: Stage) -> Run {
    let fresh = Attempts::default();
    let lost_and_failed = Attempts { used: 2, lost: 1, ..fresh };
    let suspect = Attempts { used: 2, base: 2, lost: 2, parked: true };
    let waits = |until| Phase::Waiting { keys: vec![key("a"), key("b")], until };
    let signalled = ActiveRun { signal: Some(signal("a", "signal")), ..active(Phase::Ready, fresh) };
    let request = CancelRequest { reason: Some("first".to_owned()) };
    let run = match stage {
        Stage::Absent => return Run::absent(),
        Stage::Ready | Stage::PausedReady => active(Phase::Ready, fresh),
        Stage::BackingOffEarly | Stage::PausedBackingOff => {
            active(Phase::BackingOff { until: FUTURE }, lost_and_failed)
        }
        Stage::BackingOffDue => active(Phase::BackingOff { until: PAST }, lost_and_failed),
        Stage::DelayedEarly | Stage::PausedDelayed => active(Phase::Delayed { until: FUTURE }, fresh),
        Stage::DelayedDue => active(Phase::Delayed { until: PAST }, fresh),
        Stage::Parked | Stage::PausedParked => active(Phase::Ready, suspect),
        Stage::Signalled | Stage::PausedSignalled => signalled,
        Stage::WaitingEarly | Stage::PausedWaitingEarly => active(waits(Some(FUTURE)), fresh),
        Stage::WaitingDue | Stage::PausedWaitingDue => active(waits(Some(PAST)), fresh),
        Stage::WaitingWithoutEnd | Stage::PausedWaitingWithoutEnd => active(waits(None), fresh),
        Stage::ToBeCancelled | Stage::PausedToBeCancelled => ActiveRun { cancel: Some(request), ..signalled },
        Stage::Succeeded => return ended(Status::Succeeded, None),
        Stage::Failed => return ended(Status::Failed, Some(Phase::Ready)),
        Stage::DeadLetter => return dead_letter(),
        Stage::CancelledReady => return ended(Status::Cancelled, Some(Phase::Ready)),
        Stage::CancelledWaiting => return ended(Status::Cancelled, Some(waits(Some(FUTURE)))),
        Stage::CancelledDelayed => return ended(Status::Cancelled, Some(Phase::Delayed { until: FUTURE })),
    };
    Run::Active(ActiveRun { paused: Stage::PAUSED.contains(&stage), ..run })
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

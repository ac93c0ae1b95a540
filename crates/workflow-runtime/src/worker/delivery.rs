//! One delivery of a run's doorbell, from the claim to the settlement: gather, decide, lower, commit, apply.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tracing::{debug, error, info, warn};
use workflow_core::{
    Action, Attempt, Claimed, Event, HandedBack, Reason, Run, RunId, Timestamp, Transition, TurnCame, decide,
};
use workflow_effects::{BellTarget, CommitError, NotificationRow, Read, Spec, StagedEffects};

use super::Stop;
use super::backoff::Backoff;
use super::fetch::{Rung, bury, settle};
use super::patience::{Abandoned, patiently, wait_out};
use super::slots::{Slot, Turn, suspects_turn};
use crate::engine::{Engine, Gathered};
use crate::lease::LeaseGuard;
use crate::lower::{Lowering, lower, released};
use crate::port::{ClaimedJob, Settlement};
use crate::{RunOutcome, StepRunner, TerminalHook};

/// While others wait for a slot, a run keeps its own for this long at most.
const INLINE_TIME: Duration = Duration::from_secs(1);

/// A commit that did not happen.
pub(super) enum NotCommitted {
    /// It never can.
    Refused(workflow_effects::Error),
    /// The delivery is over.
    Abandoned(Abandoned),
}

impl From<Abandoned> for NotCommitted {
    fn from(abandoned: Abandoned) -> Self {
        Self::Abandoned(abandoned)
    }
}

/// What commits along with a transition.
#[derive(Clone, Default)]
pub(super) struct Attached {
    /// What the step staged.
    pub(super) staged: StagedEffects,
    /// The bytes of the result, should the run succeed.
    pub(super) result: Option<Vec<u8>>,
}

/// A delivery in hand.
pub(super) struct Delivery<R, H> {
    pub(super) engine: Arc<Engine<R, H>>,
    pub(super) stop: Stop,
    pub(super) job: ClaimedJob,
    pub(super) run_id: RunId,
    pub(super) incarnation: workflow_core::Incarnation,
    pub(super) lease: LeaseGuard,
    /// What the run was submitted with.
    pub(super) spec: Spec,
    /// The run as of the last read or commit.
    pub(super) gathered: Gathered,
    inline: InlineBudget,
    /// Held while a suspect's step executes.
    turn: Option<Turn>,
}

/// How long a run has kept a slot that others may wait for.
struct InlineBudget {
    steps: u32,
    since: Timestamp,
}

/// Delivers one doorbell.
pub(super) async fn deliver<R, H>(engine: Arc<Engine<R, H>>, stop: Stop, rung: Rung, mut slot: Slot)
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let Rung { job, doorbell } = rung;
    if doorbell.queue_name != engine.settings.queue_name || doorbell.target != BellTarget::Step {
        error!(job_id = %job.job, run_id = %doorbell.run_id, "job of another queue");
        return bury(&engine, job, "a doorbell of another queue").await;
    }
    let (run_id, claim, job_id) = (doorbell.run_id.clone(), job.claim.clone(), job.job.clone());
    let lease = engine.leases.hold(job.claim.clone(), job.job.clone(), job.lost.clone());
    let ended = match open(&engine, &stop, &run_id, doorbell.incarnation, &lease).await {
        Ok(Some((gathered, spec))) => {
            let inline = InlineBudget { steps: 0, since: engine.clock.now() };
            let incarnation = doorbell.incarnation;
            let delivery = Delivery {
                engine: engine.clone(),
                stop,
                job,
                run_id: run_id.clone(),
                incarnation,
                lease,
                spec,
                gathered,
                inline,
                turn: None,
            };
            delivery.run(&mut slot).await
        }
        Ok(None) => Ok(Settlement::Ack(claim.clone())),
        Err(abandoned) => Err(abandoned),
    };
    slot.release();
    match ended {
        Ok(settlement) => settle(&engine, settlement).await,
        Err(Abandoned::Corrupt(cause)) => {
            error!(run_id = %run_id, job_id = %job_id, error = &cause as &dyn std::error::Error, "corrupt run");
            settle(&engine, Settlement::Dead(claim, format!("run `{run_id}` is corrupt: {cause}"))).await;
        }
        Err(abandoned) => debug!(run_id = %run_id, job_id = %job_id, ?abandoned, "delivery abandoned"),
    }
}

/// Reads the run that a doorbell names; nothing when it is a run without a trace.
async fn open<R, H>(
    engine: &Engine<R, H>,
    stop: &Stop,
    run_id: &RunId,
    incarnation: workflow_core::Incarnation,
    lease: &LeaseGuard,
) -> Result<Option<(Gathered, Spec)>, Abandoned> {
    let gathered = patiently(engine, stop, lease, || engine.gather(run_id, Read::Durable)).await?;
    let spec = patiently(engine, stop, lease, || engine.spec(run_id, incarnation)).await?;
    match spec {
        Some(spec) => Ok(Some((gathered, spec))),
        None if gathered.run.incarnation() == Some(incarnation) => Err(Abandoned::Corrupt(
            workflow_effects::Error::Corrupt {
                what: format!("run `{run_id}`"),
                detail: "its specification is missing".to_owned(),
            }
            .into(),
        )),
        None => Ok(None),
    }
}

impl<R, H> Delivery<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Drives the run as far as this delivery carries it, and says how the delivery is settled.
    async fn run(mut self, slot: &mut Slot) -> Result<Settlement, Abandoned> {
        let claimed = Event::Claimed(Claimed {
            incarnation: self.incarnation,
            job: self.job.job.clone(),
            deliveries: self.job.deliveries,
            max_attempts: self.spec.max_attempts,
            now: self.engine.clock.now(),
            next_job: self.engine.next_job(),
        });
        let mut transition = self.commit_own(claimed).await?;
        loop {
            let number = match transition.action {
                Action::Execute { attempt } => attempt,
                Action::Advance => {
                    self.turn = None;
                    1
                }
                Action::Park => {
                    transition = self.wait_for_turn(slot).await?;
                    continue;
                }
                Action::Discard if transition.reason == Reason::LateAttempt => return Err(Abandoned::Overtaken),
                Action::Ack | Action::Discard | Action::None => return Ok(Settlement::Ack(self.job.claim.clone())),
                Action::DeadLetter => return Ok(Settlement::Dead(self.job.claim.clone(), self.cause_of_death())),
            };
            transition = self.execute(number, slot).await?;
        }
    }

    /// Waits among the suspects, without a slot, until the step may start or the loop shuts down.
    async fn wait_for_turn(&mut self, slot: &mut Slot) -> Result<Transition, Abandoned> {
        self.turn = suspects_turn(&self.stop, &self.lease, slot).await?;
        if self.turn.is_none() {
            return self.hand_back().await;
        }
        let event = Event::TurnCame(TurnCame { attempt: self.attempt() });
        self.commit_own(event).await
    }

    /// Gives the delivery back, its attempt uncounted.
    pub(super) async fn hand_back(&mut self) -> Result<Transition, Abandoned> {
        let event = Event::HandedBack(HandedBack {
            attempt: self.attempt(),
            now: self.engine.clock.now(),
            next_job: self.engine.next_job(),
        });
        self.commit_own(event).await
    }

    /// The attempt that this delivery makes of the step in hand.
    pub(super) fn attempt(&self) -> Attempt {
        let step = match &self.gathered.run {
            Run::Active(run) => run.step,
            Run::Absent | Run::Ended(_) => 0,
        };
        let (job, deliveries) = (self.job.job.clone(), self.job.deliveries);
        Attempt { incarnation: self.incarnation, step, job, deliveries }
    }

    /// Whether an immediate next step may follow in this delivery: always while a slot is free or nobody waits for
    /// one, otherwise for a while.
    pub(super) fn may_inline(&mut self, slot: &Slot) -> bool {
        let limit = self.engine.settings.inline_steps;
        if limit == 0 || self.stop.draining.is_cancelled() {
            return false;
        }
        let now = self.engine.clock.now();
        let within = self.inline.steps < limit && now.since(self.inline.since) < INLINE_TIME;
        if !slot.others_free() && within {
            self.inline.steps += 1;
            return true;
        }
        let contended = !slot.others_free()
            && self.engine.queues.in_order().iter().any(|queue| self.engine.port.may_have_ready_job(queue));
        self.inline = InlineBudget { steps: 0, since: now };
        !contended
    }

    /// Decides and commits an event whose commit holds nothing of the user's, so that it cannot be refused for good.
    pub(super) async fn commit_own(&mut self, event: Event) -> Result<Transition, Abandoned> {
        self.commit(event, &Attached::default()).await.map_err(|not_committed| match not_committed {
            NotCommitted::Refused(error) => Abandoned::Corrupt(error.into()),
            NotCommitted::Abandoned(abandoned) => abandoned,
        })
    }

    /// Decides `event` on the run and commits the transition; decides again whenever the record has changed.
    pub(super) async fn commit(&mut self, event: Event, attached: &Attached) -> Result<Transition, NotCommitted> {
        let mut backoff = Backoff::default();
        loop {
            let transition = decide(&self.gathered.run, event.clone());
            if transition.next.revision() == self.gathered.run.revision() {
                self.log(&transition);
                return Ok(transition);
            }
            let commit = self.lower(&transition, attached);
            let record = commit.puts.first().map(|(_, record)| record.clone());
            match self.engine.committer.commit(commit).await {
                Ok(()) => return Ok(self.committed(transition, record)),
                Err(CommitError::Conflict) => {}
                Err(CommitError::Invalid(error)) => return Err(NotCommitted::Refused(error)),
                Err(CommitError::Failed(error)) if error.is_closed() => return Err(Abandoned::Closed.into()),
                Err(CommitError::Failed(error)) => {
                    warn!(run_id = %self.run_id, error = &error as &dyn std::error::Error, "commit failed");
                    wait_out(&self.engine, &self.stop, &self.lease, &mut backoff).await?;
                }
            }
            let (engine, run_id) = (&self.engine, &self.run_id);
            self.gathered = patiently(engine, &self.stop, &self.lease, || engine.gather(run_id, Read::Durable)).await?;
            if self.gathered.record == record {
                return Ok(self.committed(transition, record));
            }
        }
    }

    /// The transition is durable: the run is what it says.
    fn committed(&mut self, transition: Transition, record: Option<Bytes>) -> Transition {
        self.gathered = Gathered { run: transition.next.clone(), record };
        self.apply(&transition);
        transition
    }

    fn lower(&self, transition: &Transition, attached: &Attached) -> workflow_effects::Commit {
        let engine = &self.engine;
        let lowering = Lowering {
            keys: &engine.keys,
            queue_name: &engine.settings.queue_name,
            queues: &engine.queues,
            open: engine.port.open_number(),
            run_id: &self.run_id,
            record: self.gathered.record.as_ref(),
            spec: &self.spec,
            staged: &attached.staged,
            notification: self.notification(transition, attached),
        };
        lower(&lowering, transition)
    }

    /// The notification of an end that the hook observes.
    fn notification(&self, transition: &Transition, attached: &Attached) -> Option<NotificationRow> {
        let Run::Ended(ended) = &transition.next else { return None };
        let outcome = RunOutcome {
            run_id: self.run_id.to_string(),
            status: ended.status.into(),
            result: ended.result.as_ref().and(attached.result.clone()),
            error: ended.error.clone(),
            headers: self.spec.headers.clone().into_iter().collect(),
            final_step: ended.final_step,
        };
        self.engine.observes(&outcome).then(|| NotificationRow {
            state: workflow_core::Notification::new(self.engine.next_job()),
            status: ended.status,
            error: ended.error.clone(),
            final_step: ended.final_step,
        })
    }

    /// In-process consequences of a durable transition.
    fn apply(&self, transition: &Transition) {
        self.log(transition);
        for value in released(transition) {
            let (objects, value) = (self.engine.objects.clone(), value.clone());
            tokio::spawn(async move { objects.discard(&value).await });
        }
    }

    fn log(&self, transition: &Transition) {
        let attempt = self.attempt();
        debug!(
            run_id = %self.run_id,
            step = attempt.step,
            job_id = %attempt.job,
            deliveries = attempt.deliveries,
            action = ?transition.action,
            reason = transition.reason.as_str(),
            "transition"
        );
        if let (Run::Ended(ended), true) = (&transition.next, transition.reason != Reason::AlreadyEnded) {
            info!(run_id = %self.run_id, status = ?ended.status, step = ended.final_step, "run ended");
        }
    }

    fn cause_of_death(&self) -> String {
        match &self.gathered.run {
            Run::Ended(ended) => ended.error.clone().unwrap_or_default(),
            Run::Absent | Run::Active(_) => String::new(),
        }
    }
}

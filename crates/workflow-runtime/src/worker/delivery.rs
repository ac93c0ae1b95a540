//! One delivery of a run's doorbell, from the claim to the settlement: gather, lower, commit, apply.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tracing::{debug, error, info};
use workflow_core::{
    Action, Attempt, Claimed, Event, HandedBack, Reason, Run, StepReturned, Timestamp, Transition, TurnCame, Value,
};
use workflow_effects::{BellTarget, Commit, Read, Spec, StagedEffects};

use super::Stop;
use super::backoff::Backoff;
use super::fetch::{Rung, bury};
use super::hand::{Abandoned, Hand, HandedIn, finish};
use super::pipeline::{Guards, Pipeline, Returned, Undone};
use super::replay::Recorded;
use super::slots::Slot;
use crate::engine::Engine;
use crate::lower::{Attempted, Lowering, lower, released};
use crate::port::Settlement;
use crate::reads::Gathered;
use crate::signals::{GatheredSlots, tell};
use crate::{CommitMode, StepRunner, TerminalHook};

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

impl From<Undone> for NotCommitted {
    fn from(undone: Undone) -> Self {
        Self::Abandoned(undone.into())
    }
}

/// What commits along with a transition.
#[derive(Clone, Default)]
pub(super) struct Attached {
    /// What the step staged.
    pub(super) staged: StagedEffects,
    /// The bytes of the result, should the run succeed.
    pub(super) result: Option<Bytes>,
    /// Whether the outcome may be written down: another delivery may apply it then, too.
    pub(super) written_down: bool,
}

/// A doorbell in hand.
pub(super) struct Delivery<R, H> {
    pub(super) hand: Hand<R, H>,
    /// What the run was submitted with.
    pub(super) spec: Spec,
    /// The run as of the last read or commit.
    pub(super) gathered: Gathered,
    /// The slots that the present event is about.
    slots: GatheredSlots,
    inline: InlineBudget,
    /// When the attempt in hand started.
    pub(super) started_at: Option<Timestamp>,
    /// The delivery whose outcome is replayed.
    pub(super) replayed: Option<u32>,
    /// Where the commits of steps go that need not be durable before the next step starts. The first commit of a
    /// delivery that follows a lost one, or comes after an undone flight, goes the strict way: so every delivery gets
    /// at least one step further, and a step whose commit fails fails alone.
    pub(super) pipeline: Option<Pipeline>,
    /// Whether a commit of the present event may have been applied without an answer: what it names has to stay.
    pub(super) in_doubt: bool,
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
    let doorbell = &rung.doorbell;
    if doorbell.queue_name != engine.settings.queue_name || doorbell.target != BellTarget::Step {
        error!(job_id = %rung.job.job, run_id = %doorbell.run_id, "job of another queue");
        return bury(&engine, rung.job, "a doorbell of another queue").await;
    }
    let _held = engine.in_hand.enter(&doorbell.run_id, doorbell.incarnation);
    let hand = Hand::new(engine.clone(), stop, rung);
    let (run_id, claim) = (hand.run_id.clone(), hand.job.claim.clone());
    let ended = match Delivery::open(hand).await {
        Ok(Some(delivery)) => delivery.run(&mut slot).await,
        Ok(None) => Ok(Settlement::Ack(claim.clone())),
        Err(abandoned) => Err(abandoned),
    };
    finish(&engine, &run_id, claim, ended, slot).await;
}

impl<R, H> Delivery<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Reads the run that a doorbell names; nothing when another submission, or none, is there.
    async fn open(hand: Hand<R, H>) -> Result<Option<Self>, Abandoned> {
        let (engine, run_id, incarnation) = (&hand.engine, &hand.run_id, hand.incarnation);
        let gathered = hand.patiently(|| engine.reads.gather(run_id, Read::Durable)).await?;
        if gathered.run.incarnation() != Some(incarnation) {
            debug!(%run_id, "doorbell of another submission");
            return Ok(None);
        }
        let Some(spec) = hand.patiently(|| engine.reads.spec(run_id, incarnation)).await? else {
            debug!(%run_id, "doorbell of a run that was removed");
            return Ok(None);
        };
        let inline = InlineBudget { steps: 0, since: engine.clock.now() };
        let slots = GatheredSlots::new();
        let pipeline = (hand.job.deliveries == 1).then(|| new_pipeline(&hand)).flatten();
        let (started_at, replayed, in_doubt) = (None, None, false);
        Ok(Some(Self { hand, spec, gathered, slots, inline, started_at, replayed, pipeline, in_doubt }))
    }

    /// Reads the run again.
    pub(super) async fn gather(&self) -> Result<Gathered, Abandoned> {
        let (engine, run_id) = (&self.hand.engine, &self.hand.run_id);
        self.hand.patiently(|| engine.reads.gather(run_id, Read::Durable)).await
    }

    /// Drives the run as far as this delivery carries it, and says how the delivery is settled.
    async fn run(mut self, slot: &mut Slot) -> Result<Settlement, Abandoned> {
        let mut recorded = self.recorded().await?;
        let mut begun = self.claimed(recorded.as_ref()).await?;
        loop {
            match self.drive(begun, recorded.take(), slot).await {
                Err(Abandoned::Undone) => begun = self.go_back().await?,
                ended => return ended,
            }
        }
    }

    /// Begins with what is recorded of the run.
    async fn claimed(&mut self, recorded: Option<&Recorded>) -> Result<Transition, Abandoned> {
        let claimed = Event::Claimed(Claimed {
            incarnation: self.hand.incarnation,
            job: self.hand.job.job.clone(),
            deliveries: self.hand.job.deliveries,
            max_attempts: self.spec.max_attempts,
            now: self.hand.engine.clock.now(),
            next_job: self.hand.engine.next_job(),
            recorded: recorded.map(|recorded| recorded.attempt.clone()),
            requeued: self.is_requeued().await?,
        });
        self.commit_own(claimed).await
    }

    /// Steps are undone that were executed before their predecessors had landed. The outcome of the first of them is
    /// decided on again; without one the delivery begins anew.
    async fn go_back(&mut self) -> Result<Transition, Abandoned> {
        debug!(run_id = %self.hand.run_id, "the steps in flight are undone");
        let refused = self.pipeline.take().and_then(|pipeline| pipeline.refused());
        self.gathered = self.gather().await?;
        let is_next = |returned: &Returned| match &self.gathered.run {
            Run::Active(run) => run.step == returned.step && run.job == self.hand.job.job,
            Run::Absent | Run::Ended(_) => false,
        };
        match refused.filter(is_next) {
            Some(Returned { outcome, staged, now, inline, started_at, .. }) => {
                self.started_at = started_at;
                self.apply(outcome, Attached { staged, ..Attached::default() }, now, inline).await
            }
            None => self.claimed(None).await,
        }
    }

    /// Does what `transition` says, and whatever follows from that in this delivery.
    async fn drive(
        &mut self,
        mut transition: Transition,
        mut recorded: Option<Recorded>,
        slot: &mut Slot,
    ) -> Result<Settlement, Abandoned> {
        loop {
            let claim = &self.hand.job.claim;
            transition = match transition.action {
                Action::Execute { .. } | Action::Advance if self.hand.is_draining() => self.hand_back().await?,
                Action::Execute { attempt } => self.execute(attempt, slot).await?,
                Action::Replay => self.replay(recorded.take(), slot).await?,
                Action::Advance => {
                    self.hand.turn = None;
                    self.execute(1, slot).await?
                }
                Action::Park => self.wait_for_turn(slot).await?,
                Action::Discard if matches!(transition.reason, Reason::LateAttempt | Reason::NotCancelled) => {
                    return Err(Abandoned::Overtaken);
                }
                Action::Ack | Action::Discard | Action::None => return Ok(Settlement::Ack(claim.clone())),
                Action::DeadLetter => return Ok(Settlement::Dead(claim.clone(), self.cause_of_death())),
            };
        }
    }

    /// Whether an operator put the job back with which the run ended. Nobody asks the queue unless it may be so.
    async fn is_requeued(&self) -> Result<bool, Abandoned> {
        let job = &self.hand.job.job;
        match &self.gathered.run {
            Run::Ended(ended) if ended.dead_letter && ended.final_job == *job => {
                self.hand.patiently(|| async { Ok(self.hand.engine.port.is_requeued(job).await?) }).await
            }
            Run::Absent | Run::Active(_) | Run::Ended(_) => Ok(false),
        }
    }

    /// Waits among the suspects until the step may start, or gives it back.
    async fn wait_for_turn(&mut self, slot: &mut Slot) -> Result<Transition, Abandoned> {
        if !self.hand.wait_for_turn(slot).await {
            return self.hand_back().await;
        }
        let event = TurnCame {
            attempt: self.attempt(),
            now: self.hand.engine.clock.now(),
            next_job: self.hand.engine.next_job(),
        };
        self.commit_own(Event::TurnCame(event)).await
    }

    /// Gives the delivery back, its attempt uncounted.
    pub(super) async fn hand_back(&mut self) -> Result<Transition, Abandoned> {
        let event = Event::HandedBack(HandedBack {
            attempt: self.attempt(),
            now: self.hand.engine.clock.now(),
            next_job: self.hand.engine.next_job(),
        });
        self.commit_own(event).await
    }

    /// The attempt that this delivery makes of the step in hand.
    pub(super) fn attempt(&self) -> Attempt {
        let step = match &self.gathered.run {
            Run::Active(run) => run.step,
            Run::Absent | Run::Ended(_) => 0,
        };
        self.hand.attempt(step)
    }

    /// Whether an immediate next step may follow in this delivery: always while a slot is free or nobody waits for
    /// one, otherwise for a while.
    pub(super) fn may_inline(&mut self, slot: &Slot) -> bool {
        let limit = self.hand.engine.settings.inline_steps;
        if limit == 0 || self.hand.is_draining() {
            return false;
        }
        let now = self.hand.engine.clock.now();
        let within = self.inline.steps < limit && now.since(self.inline.since) < INLINE_TIME;
        if !slot.others_free() && within {
            self.inline.steps += 1;
            return true;
        }
        let contended = !slot.others_free()
            && self.hand.engine.queues.in_order().iter().any(|queue| self.hand.engine.port.may_have_ready_job(queue));
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
    pub(super) async fn commit(&mut self, mut event: Event, attached: &Attached) -> Result<Transition, NotCommitted> {
        let engine = self.hand.engine.clone();
        let mut backoff = Backoff::default();
        let mut turn = None;
        self.in_doubt = false;
        loop {
            self.slots = self.gather_slots(&mut event).await?;
            let transition = engine.decider.decide(&self.gathered.run, event.clone());
            self.log(&transition);
            if transition.next.revision() == self.gathered.run.revision() {
                return Ok(transition);
            }
            let retold = self.retold(&transition).await?;
            let commit = self.lower(&transition, attached);
            let record = commit.puts.first().map(|(_, record)| record.clone());
            if let (Some(pipeline), Event::StepReturned(event), true) =
                (&self.pipeline, &event, may_fly(&transition, &retold))
            {
                pipeline.take_in(commit, || self.returned(event, attached)).await?;
                self.gathered = Gathered { run: transition.next.clone(), record };
                return Ok(transition);
            }
            self.land().await?;
            match self.hand.hand_in(commit, &mut backoff).await? {
                HandedIn::Applied => return Ok(self.committed(transition, record, retold)),
                HandedIn::Refused(error) => return Err(NotCommitted::Refused(error)),
                HandedIn::Again => {}
                HandedIn::InDoubt => self.in_doubt = true,
            }
            if turn.is_none() {
                turn = Some(engine.turns.take(engine.reads.keys.run(&self.hand.run_id)).await);
            }
            let gathered = self.gather().await?;
            if gathered.record == record {
                return Ok(self.committed(transition, record, retold));
            }
            self.gathered = gathered;
        }
    }

    /// The transition is durable: the run is what it says, and what it has let go is deleted.
    fn committed(&mut self, transition: Transition, record: Option<Bytes>, retold: Vec<Value>) -> Transition {
        if let Run::Ended(ended) = &transition.next {
            info!(run_id = %self.hand.run_id, status = ?ended.status, step = ended.final_step, "run ended");
        }
        self.hand.engine.clean_up(&self.hand.run_id, &self.gathered.run, &transition, retold);
        if transition.action == Action::Advance && self.pipeline.is_none() {
            self.pipeline = new_pipeline(&self.hand);
        }
        self.gathered = Gathered { run: transition.next.clone(), record };
        transition
    }

    /// What `event` tells of the step in hand.
    fn returned(&self, event: &StepReturned, attached: &Attached) -> Returned {
        let StepReturned { attempt, outcome, now, inline, .. } = event;
        let (staged, started_at) = (attached.staged.clone(), self.started_at);
        Returned { step: attempt.step, outcome: outcome.clone(), staged, now: *now, inline: *inline, started_at }
    }

    /// Waits until every step so far is durable.
    pub(super) async fn land(&self) -> Result<(), Undone> {
        match &self.pipeline {
            Some(pipeline) => pipeline.landed().await,
            None => Ok(()),
        }
    }

    /// Reads the slots that a decision on `event` is about, and tells it what they hold.
    async fn gather_slots(&self, event: &mut Event) -> Result<GatheredSlots, Abandoned> {
        let (reads, run_id, run) = (&self.hand.engine.reads, &self.hand.run_id, &self.gathered.run);
        let asked = &*event;
        let slots = self.hand.patiently(|| reads.slots(run_id, run, asked)).await?;
        tell(run, event, &slots);
        Ok(slots)
    }

    /// The objects that the history names no more once `transition` is durable.
    async fn retold(&self, transition: &Transition) -> Result<Vec<Value>, Abandoned> {
        let (reads, run_id, run) = (&self.hand.engine.reads, &self.hand.run_id, &self.gathered.run);
        self.hand.patiently(|| reads.retold(run_id, run, transition)).await
    }

    fn lower(&self, transition: &Transition, attached: &Attached) -> Commit {
        let Hand { engine, run_id, .. } = &self.hand;
        let lowering = Lowering {
            notification: engine.notification(run_id, &self.spec, transition, attached.result.as_ref()),
            attempted: self.attempted(),
            ..engine.lowering(run_id, &self.gathered, &self.spec, &attached.staged, &self.slots)
        };
        lower(&lowering, transition)
    }

    /// The attempt that the present event ends.
    fn attempted(&self) -> Option<Attempted> {
        let Run::Active(run) = &self.gathered.run else { return None };
        let ended_at = self.hand.engine.clock.now();
        let deliveries = self.replayed.unwrap_or(self.hand.job.deliveries);
        let attempt = run.attempts.number(deliveries).min(self.spec.max_attempts);
        Some(Attempted::of(run, attempt, self.started_at.unwrap_or(ended_at), ended_at))
    }

    fn log(&self, transition: &Transition) {
        let attempt = self.attempt();
        debug!(
            run_id = %self.hand.run_id,
            step = attempt.step,
            job_id = %attempt.job,
            deliveries = attempt.deliveries,
            action = ?transition.action,
            reason = transition.reason.as_str(),
            "transition"
        );
    }

    fn cause_of_death(&self) -> String {
        match &self.gathered.run {
            Run::Ended(ended) => ended.error.clone().unwrap_or_default(),
            Run::Absent | Run::Active(_) => String::new(),
        }
    }
}

/// A pipeline for the steps of a delivery, where the runtime pipelines.
fn new_pipeline<R, H>(hand: &Hand<R, H>) -> Option<Pipeline> {
    let engine = &hand.engine;
    (engine.settings.commit_mode == CommitMode::Pipelined).then(|| {
        let (lease_lost, aborting) = (hand.lease.lost().clone(), hand.stop.aborting.clone());
        Pipeline::new(engine.committer.clone(), Guards { clock: engine.clock.clone(), lease_lost, aborting })
    })
}

/// Whether the next step may start before `transition` is durable: one that goes on at once, and neither names nor lets
/// go an object.
fn may_fly(transition: &Transition, retold: &[Value]) -> bool {
    let names_no_object = match &transition.next {
        Run::Active(run) => run.payload.object().is_none() && run.signal.is_none(),
        Run::Absent | Run::Ended(_) => false,
    };
    transition.action == Action::Advance
        && names_no_object
        && retold.is_empty()
        && released(transition).next().is_none()
}

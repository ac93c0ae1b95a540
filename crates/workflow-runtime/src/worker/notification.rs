//! One delivery of a terminal notification: calls the hook until its effects are committed.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use tracing::{Instrument, debug, error, warn};
use workflow_core::{
    Attempt, NotificationAction, NotificationClaimed, NotificationEvent, NotificationTransition, Run,
    decide_notification,
};
use workflow_effects::{
    BellTarget, Commit, Doorbell, Enqueue, NotificationRow, Read, StagedEffects, decode_notification, encode_doorbell,
    encode_notification,
};

use super::Stop;
use super::attempt::{CallFailed, Called, call};
use super::backoff::Backoff;
use super::fetch::{Rung, bury};
use super::hand::{Abandoned, Hand, HandedIn, finish};
use super::slots::Slot;
use crate::engine::Engine;
use crate::hook::TerminalEffects;
use crate::lower::apply_staged;
use crate::port::Settlement;
use crate::reads::corrupt;
use crate::{RunOutcome, TerminalHook};

/// A notification in hand.
struct Call<R, H> {
    hand: Hand<R, H>,
    doorbell: Doorbell,
    /// The end that it tells of: how often the run had been brought back before.
    redrive: u32,
    /// The key of the row.
    key: Bytes,
    /// The row as of the last read or commit, and its bytes.
    row: Option<NotificationRow>,
    bytes: Option<Bytes>,
}

/// Delivers one notification.
pub(super) async fn deliver<R, H>(engine: Arc<Engine<R, H>>, stop: Stop, rung: Rung, mut slot: Slot)
where
    R: Send + Sync + 'static,
    H: TerminalHook + 'static,
{
    let doorbell = rung.doorbell.clone();
    let BellTarget::Notification { redrive } = doorbell.target else {
        error!(job_id = %rung.job.job, run_id = %doorbell.run_id, "job of another queue");
        return bury(&engine, rung.job, "not a notification").await;
    };
    if doorbell.queue_name != engine.settings.queue_name {
        error!(job_id = %rung.job.job, run_id = %doorbell.run_id, "job of another queue");
        return bury(&engine, rung.job, "a notification of another queue").await;
    }
    let _held = engine.in_hand.enter(&doorbell.run_id, doorbell.incarnation);
    let hand = Hand::new(engine.clone(), stop, rung);
    let (run_id, claim) = (hand.run_id.clone(), hand.job.claim.clone());
    let key = engine.reads.keys.notification(&run_id, doorbell.incarnation, redrive);
    let call = Call { hand, doorbell, redrive, key, row: None, bytes: None };
    let ended = call.run(&mut slot).await;
    finish(&engine, &run_id, claim, ended, slot).await;
}

impl<R, H> Call<R, H>
where
    R: Send + Sync + 'static,
    H: TerminalHook + 'static,
{
    async fn run(mut self, slot: &mut Slot) -> Result<Settlement, Abandoned> {
        self.gather().await?;
        let claimed = NotificationEvent::Claimed(NotificationClaimed {
            job: self.hand.job.job.clone(),
            deliveries: self.hand.job.deliveries,
            max_attempts: self.hand.engine.settings.hook_attempts,
            now: self.hand.engine.clock.now(),
            next_job: self.hand.engine.next_job(),
        });
        let mut action = self.commit_own(claimed).await?;
        loop {
            let claim = &self.hand.job.claim;
            action = match action {
                NotificationAction::Execute if self.hand.is_draining() => self.hand_back().await?,
                NotificationAction::Execute => self.execute().await?,
                NotificationAction::Park => self.wait_for_turn(slot).await?,
                NotificationAction::DeadLetter => {
                    return Ok(Settlement::Dead(claim.clone(), "the terminal hook failed".to_owned()));
                }
                NotificationAction::Discard if self.row_is_ours() => return Err(Abandoned::Overtaken),
                NotificationAction::Requeue(_) | NotificationAction::Apply | NotificationAction::Discard => {
                    return Ok(Settlement::Ack(claim.clone()));
                }
            };
        }
    }

    /// Whether the row still waits for this very job, so that ending the job would lose the call.
    fn row_is_ours(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.state.job == self.hand.job.job)
    }

    async fn wait_for_turn(&mut self, slot: &mut Slot) -> Result<NotificationAction, Abandoned> {
        if !self.hand.wait_for_turn(slot).await {
            return self.hand_back().await;
        }
        self.commit_own(NotificationEvent::TurnCame(self.attempt())).await
    }

    /// Calls the hook with the committed end of the run.
    async fn execute(&mut self) -> Result<NotificationAction, Abandoned> {
        let Some(outcome) = self.outcome().await? else {
            // The run is removed once another delivery has told of its end.
            self.gather().await?;
            return match self.row {
                None => Ok(NotificationAction::Discard),
                Some(_) => {
                    Err(Abandoned::Corrupt(corrupt(&self.hand.run_id, "its hook is owed, and it has not ended")))
                }
            };
        };
        let (effects, staging) = TerminalEffects::sealable();
        let hook = self.hand.engine.hook.clone();
        let span = tracing::info_span!("workflow.hook", run_id = %self.hand.run_id, job_id = %self.hand.job.job);
        let call = call(async move { hook.on_termination(&outcome, &effects).await }, self.hand.limits(), pending());
        let called = call.instrument(span).await;
        let staged = staging.take();
        match called {
            Called::Returned(()) => self.commit(NotificationEvent::HookReturned(self.attempt()), &staged).await,
            Called::Failed(failed) => self.fail(failed).await,
            Called::HandedBack | Called::GraceOver => self.hand_back().await,
            Called::LeaseLost => self.fail(CallFailed::lease_lost()).await,
        }
    }

    /// The end that the row tells of, which may have been followed by a redrive; `None` when there is no such run.
    async fn outcome(&self) -> Result<Option<RunOutcome>, Abandoned> {
        let (engine, run_id, incarnation) = (&self.hand.engine, &self.hand.run_id, self.hand.incarnation);
        let gathered = self.hand.patiently(|| engine.reads.gather(run_id, Read::Durable)).await?;
        match (gathered.run, &self.row) {
            (Run::Ended(ended), _) if ended.incarnation == incarnation && ended.redrive == self.redrive => {
                self.hand.patiently(|| engine.reads.outcome(run_id, &ended)).await
            }
            (run, Some(row)) if run.incarnation() == Some(incarnation) => {
                let spec = self.hand.patiently(|| engine.reads.spec(run_id, incarnation)).await?;
                Ok(spec.map(|spec| RunOutcome::told(run_id, row, &spec)))
            }
            (Run::Absent | Run::Active(_) | Run::Ended(_), _) => Ok(None),
        }
    }

    async fn fail(&mut self, failed: CallFailed) -> Result<NotificationAction, Abandoned> {
        warn!(run_id = %self.hand.run_id, error = failed.failure.message, "terminal hook failed");
        let max_attempts = self.hand.engine.settings.hook_attempts;
        let event = self.hand.attempt_failed(self.attempt(), failed, max_attempts);
        self.commit_own(NotificationEvent::HookFailed(event)).await
    }

    async fn hand_back(&mut self) -> Result<NotificationAction, Abandoned> {
        let (attempt, next_job) = (self.attempt(), self.hand.engine.next_job());
        self.commit_own(NotificationEvent::HandedBack { attempt, next_job }).await
    }

    fn attempt(&self) -> Attempt {
        self.hand.attempt(0)
    }

    async fn gather(&mut self) -> Result<(), Abandoned> {
        let Hand { engine, run_id, .. } = &self.hand;
        let key = &self.key;
        (self.row, self.bytes) = self
            .hand
            .patiently(|| async {
                let bytes = engine.port.get(key, Read::Durable).await?;
                let row = bytes.as_deref().map(|bytes| decode_notification(run_id, bytes)).transpose()?;
                Ok((row, bytes))
            })
            .await?;
        Ok(())
    }

    /// Decides and commits an event that the hook staged nothing for.
    async fn commit_own(&mut self, event: NotificationEvent) -> Result<NotificationAction, Abandoned> {
        self.commit(event, &StagedEffects::default()).await
    }

    /// Decides `event` on the row and commits; decides again whenever the row has changed.
    async fn commit(
        &mut self,
        event: NotificationEvent,
        staged: &StagedEffects,
    ) -> Result<NotificationAction, Abandoned> {
        let mut backoff = Backoff::default();
        loop {
            let transition = decide_notification(self.row.as_ref().map(|row| &row.state), event.clone());
            self.log(&transition);
            if transition.next.as_ref() == self.row.as_ref().map(|row| &row.state) {
                return Ok(transition.action);
            }
            match self.hand.hand_in(self.lower(&transition, staged), &mut backoff).await? {
                HandedIn::Applied => return Ok(self.committed(transition)),
                HandedIn::Refused(error) => return Err(Abandoned::Corrupt(error.into())),
                HandedIn::Again | HandedIn::InDoubt => {}
            }
            self.gather().await?;
            if self.row.as_ref().map(|row| &row.state) == transition.next.as_ref() {
                return Ok(self.committed(transition));
            }
        }
    }

    /// The transition is durable: the row is what it says.
    fn committed(&mut self, transition: NotificationTransition) -> NotificationAction {
        self.row = transition.next.and_then(|state| self.row.take().map(|row| NotificationRow { state, ..row }));
        self.bytes = self.row.as_ref().map(encode_notification);
        transition.action
    }

    fn lower(&self, transition: &NotificationTransition, staged: &StagedEffects) -> Commit {
        let mut commit = Commit { expect: vec![(self.key.clone(), self.bytes.clone())], ..Commit::default() };
        match (&transition.next, &self.row) {
            (Some(state), Some(row)) => {
                let row = NotificationRow { state: state.clone(), ..row.clone() };
                commit.puts.push((self.key.clone(), encode_notification(&row)));
            }
            _ => commit.deletes.push(self.key.clone()),
        }
        match (&transition.action, &transition.next) {
            (NotificationAction::Requeue(due), Some(state)) => commit.enqueues.push(Enqueue {
                queue: self.hand.engine.queues.notifications(),
                job: state.job.clone(),
                payload: self.doorbell_again(),
                due: *due,
            }),
            (NotificationAction::Apply, _) => apply_staged(&mut commit, staged),
            (NotificationAction::Requeue(_), None)
            | (
                NotificationAction::Execute
                | NotificationAction::Park
                | NotificationAction::DeadLetter
                | NotificationAction::Discard,
                _,
            ) => {}
        }
        commit
    }

    fn log(&self, transition: &NotificationTransition) {
        debug!(
            run_id = %self.hand.run_id,
            job_id = %self.hand.job.job,
            deliveries = self.hand.job.deliveries,
            action = ?transition.action,
            reason = transition.reason.as_str(),
            "notification transition"
        );
    }

    /// The same doorbell, rung by this opening of the queue.
    fn doorbell_again(&self) -> Bytes {
        encode_doorbell(&Doorbell { open: self.hand.engine.port.open_number(), ..self.doorbell.clone() })
    }
}

//! One delivery of a terminal notification: calls the hook until its effects are committed.

use std::sync::Arc;

use bytes::Bytes;
use tracing::{Instrument, debug, error, warn};
use workflow_core::{
    Attempt, HookFailed, NotificationAction, NotificationClaimed, NotificationEvent, NotificationTransition, Run,
    decide_notification,
};
use workflow_effects::{
    BellTarget, Commit, CommitError, Doorbell, Enqueue, NotificationRow, Read, StagedEffects, decode_notification,
    encode_doorbell, encode_notification,
};

use super::Stop;
use super::attempt::{CallFailed, Called, Limits, call};
use super::backoff::Backoff;
use super::fetch::{Rung, bury, settle};
use super::patience::{Abandoned, patiently, wait_out};
use super::slots::{Slot, Turn, suspects_turn};
use crate::engine::Engine;
use crate::hook::TerminalEffects;
use crate::lease::LeaseGuard;
use crate::lower::apply_staged;
use crate::port::{ClaimedJob, Settlement};
use crate::{RunOutcome, TerminalHook};

/// A notification in hand.
struct Call<R, H> {
    engine: Arc<Engine<R, H>>,
    stop: Stop,
    job: ClaimedJob,
    doorbell: Doorbell,
    /// The key of the row.
    key: Bytes,
    lease: LeaseGuard,
    /// The row as of the last read or commit, and its bytes.
    row: Option<NotificationRow>,
    bytes: Option<Bytes>,
    /// Held while a suspect's hook is called.
    turn: Option<Turn>,
}

/// Delivers one notification.
pub(super) async fn deliver<R, H>(engine: Arc<Engine<R, H>>, stop: Stop, rung: Rung, mut slot: Slot)
where
    R: Send + Sync + 'static,
    H: TerminalHook + 'static,
{
    let Rung { job, doorbell } = rung;
    let BellTarget::Notification { redrive } = doorbell.target else {
        error!(job_id = %job.job, run_id = %doorbell.run_id, "job of another queue");
        return bury(&engine, job, "not a notification").await;
    };
    if doorbell.queue_name != engine.settings.queue_name {
        error!(job_id = %job.job, run_id = %doorbell.run_id, "job of another queue");
        return bury(&engine, job, "a notification of another queue").await;
    }
    let (run_id, claim) = (doorbell.run_id.clone(), job.claim.clone());
    let key = engine.keys.notification(&run_id, doorbell.incarnation, redrive);
    let lease = engine.leases.hold(claim.clone(), job.job.clone(), job.lost.clone());
    let call = Call { engine: engine.clone(), stop, job, doorbell, key, lease, row: None, bytes: None, turn: None };
    let ended = call.run(&mut slot).await;
    slot.release();
    match ended {
        Ok(settlement) => settle(&engine, settlement).await,
        Err(Abandoned::Corrupt(cause)) => {
            error!(run_id = %run_id, error = &cause as &dyn std::error::Error, "corrupt notification");
            settle(&engine, Settlement::Dead(claim, format!("notification of `{run_id}` is corrupt: {cause}"))).await;
        }
        Err(abandoned) => debug!(run_id = %run_id, ?abandoned, "notification abandoned"),
    }
}

impl<R, H> Call<R, H>
where
    R: Send + Sync + 'static,
    H: TerminalHook + 'static,
{
    async fn run(mut self, slot: &mut Slot) -> Result<Settlement, Abandoned> {
        self.gather().await?;
        let claimed = NotificationEvent::Claimed(NotificationClaimed {
            job: self.job.job.clone(),
            deliveries: self.job.deliveries,
            max_attempts: self.engine.settings.hook_attempts,
            now: self.engine.clock.now(),
            next_job: self.engine.next_job(),
        });
        let mut action = self.commit(claimed, &StagedEffects::default()).await?;
        loop {
            action = match action {
                NotificationAction::Execute => self.execute().await?,
                NotificationAction::Park => self.wait_for_turn(slot).await?,
                NotificationAction::DeadLetter => {
                    return Ok(Settlement::Dead(self.job.claim.clone(), "the terminal hook failed".to_owned()));
                }
                NotificationAction::Discard if self.row_is_ours() => return Err(Abandoned::Overtaken),
                NotificationAction::Requeue(_) | NotificationAction::Apply | NotificationAction::Discard => {
                    return Ok(Settlement::Ack(self.job.claim.clone()));
                }
            };
        }
    }

    /// Whether the row still waits for this very job, so that ending the job would lose the call.
    fn row_is_ours(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.state.job == self.job.job)
    }

    async fn wait_for_turn(&mut self, slot: &mut Slot) -> Result<NotificationAction, Abandoned> {
        self.turn = suspects_turn(&self.stop, &self.lease, slot).await?;
        if self.turn.is_none() {
            return self.hand_back().await;
        }
        self.commit(NotificationEvent::TurnCame(self.attempt()), &StagedEffects::default()).await
    }

    /// Calls the hook with the committed end of the run.
    async fn execute(&mut self) -> Result<NotificationAction, Abandoned> {
        let outcome = self.outcome().await?;
        let effects = TerminalEffects::new();
        let (hook, handle) = (self.engine.hook.clone(), effects.clone());
        let limits = Limits {
            timeout: self.engine.settings.step_timeout,
            lost: self.lease.lost(),
            stop: &self.stop,
            clock: &*self.engine.clock,
        };
        let span = tracing::info_span!("workflow.hook", run_id = %self.doorbell.run_id);
        let called = call(async move { hook.on_termination(&outcome, &handle).await }, limits).instrument(span).await;
        let staged = effects.seal();
        match called {
            Called::Returned(()) => self.commit(NotificationEvent::HookReturned(self.attempt()), &staged).await,
            Called::Failed(failed) => self.fail(failed).await,
            Called::HandedBack => self.hand_back().await,
            Called::LeaseLost => Err(Abandoned::LeaseLost),
        }
    }

    /// The end that the row tells of.
    async fn outcome(&self) -> Result<RunOutcome, Abandoned> {
        let (engine, run_id) = (&self.engine, &self.doorbell.run_id);
        let gathered = patiently(engine, &self.stop, &self.lease, || engine.gather(run_id, Read::Durable)).await?;
        match gathered.run {
            Run::Ended(ended) if ended.incarnation == self.doorbell.incarnation => {
                patiently(engine, &self.stop, &self.lease, || engine.outcome(run_id, &ended)).await
            }
            Run::Absent | Run::Active(_) | Run::Ended(_) => Err(Abandoned::Corrupt(
                workflow_effects::Error::Corrupt {
                    what: format!("the notification of run `{run_id}`"),
                    detail: "the run has not ended".to_owned(),
                }
                .into(),
            )),
        }
    }

    async fn fail(&mut self, failed: CallFailed) -> Result<NotificationAction, Abandoned> {
        warn!(run_id = %self.doorbell.run_id, error = failed.failure.message, "terminal hook failed");
        let event = NotificationEvent::HookFailed(HookFailed {
            attempt: self.attempt(),
            kind: failed.failure.kind,
            retry_after: failed.retry_after,
            max_attempts: self.engine.settings.hook_attempts,
            retry: self.engine.settings.retry_policy.clone(),
            entropy: self.engine.entropy(),
            now: self.engine.clock.now(),
            next_job: self.engine.next_job(),
        });
        self.commit(event, &StagedEffects::default()).await
    }

    async fn hand_back(&mut self) -> Result<NotificationAction, Abandoned> {
        let event = NotificationEvent::HandedBack { attempt: self.attempt(), next_job: self.engine.next_job() };
        self.commit(event, &StagedEffects::default()).await
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            incarnation: self.doorbell.incarnation,
            step: 0,
            job: self.job.job.clone(),
            deliveries: self.job.deliveries,
        }
    }

    async fn gather(&mut self) -> Result<(), Abandoned> {
        let (engine, key, run_id) = (&self.engine, &self.key, &self.doorbell.run_id);
        let (row, bytes) = patiently(engine, &self.stop, &self.lease, || async {
            let bytes = engine.port.get(key, Read::Durable).await?;
            let row = bytes.as_deref().map(|bytes| decode_notification(run_id, bytes)).transpose()?;
            Ok((row, bytes))
        })
        .await?;
        (self.row, self.bytes) = (row, bytes);
        Ok(())
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
            debug!(run_id = %self.doorbell.run_id, action = ?transition.action, "notification transition");
            if transition.next.as_ref() == self.row.as_ref().map(|row| &row.state) {
                return Ok(transition.action);
            }
            match self.engine.committer.commit(self.lower(&transition, staged)).await {
                Ok(()) => return Ok(self.committed(transition)),
                Err(CommitError::Conflict) => {}
                Err(CommitError::Invalid(error)) => return Err(Abandoned::Corrupt(error.into())),
                Err(CommitError::Failed(error)) if error.is_closed() => return Err(Abandoned::Closed),
                Err(CommitError::Failed(error)) => {
                    warn!(error = &error as &dyn std::error::Error, "commit failed");
                    wait_out(&self.engine, &self.stop, &self.lease, &mut backoff).await?;
                }
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
                queue: self.engine.queues.notifications(),
                job: state.job.clone(),
                payload: self.doorbell_again(),
                due: *due,
            }),
            (NotificationAction::Apply, _) => apply_staged(&mut commit, staged),
            _ => {}
        }
        commit
    }

    /// The same doorbell, rung by this opening of the queue.
    fn doorbell_again(&self) -> Bytes {
        encode_doorbell(&Doorbell { open: self.engine.port.open_number(), ..self.doorbell.clone() })
    }
}

//! A delivery in hand: what doorbells and notifications share, from the lease to the settlement.

use std::future::Future;
use std::sync::Arc;

use tracing::{debug, error, warn};
use workflow_core::{Attempt, AttemptFailed, Incarnation, RunId};
use workflow_effects::{Commit, CommitError};

use super::Stop;
use super::attempt::{CallFailed, Limits};
use super::backoff::Backoff;
use super::fetch::{Rung, settle};
use super::pipeline::Undone;
use super::slots::{Slot, Turn, next_turn};
use crate::engine::Engine;
use crate::lease::LeaseGuard;
use crate::port::{Claim, ClaimedJob, Settlement};
use crate::{Error, Result};

/// A delivery in hand.
pub(super) struct Hand<R, H> {
    pub(super) engine: Arc<Engine<R, H>>,
    pub(super) stop: Stop,
    pub(super) job: ClaimedJob,
    pub(super) lease: LeaseGuard,
    /// The run and the submission of it that the doorbell names.
    pub(super) run_id: RunId,
    pub(super) incarnation: Incarnation,
    /// Held while a suspect executes.
    pub(super) turn: Option<Turn>,
}

/// Why a delivery is dropped without a settlement: another delivery, or the next process, goes on from the record.
#[derive(Debug)]
pub(super) enum Abandoned {
    /// The lease is lost.
    LeaseLost,
    /// Another delivery or another step has taken the run over, or will: this one must not end the doorbell.
    Overtaken,
    /// The store is closed.
    Closed,
    /// The loop stops and the store does not answer.
    Stopping,
    /// Steps whose commits were in flight are undone: the delivery goes on from what is durable.
    Undone,
    /// The run's rows do not read: its job is a dead letter.
    Corrupt(Error),
}

impl From<Undone> for Abandoned {
    fn from(_: Undone) -> Self {
        Self::Undone
    }
}

/// What became of a commit that was handed in.
pub(super) enum HandedIn {
    /// It is durable.
    Applied,
    /// Read again and decide again: it was not applied.
    Again,
    /// Read again and decide again: it may have been applied, and what it names has to stay.
    InDoubt,
    /// It never can be applied.
    Refused(workflow_effects::Error),
}

impl<R, H> Hand<R, H> {
    /// Takes charge of a delivery.
    pub(super) fn new(engine: Arc<Engine<R, H>>, stop: Stop, rung: Rung) -> Self {
        let Rung { job, doorbell, lease } = rung;
        Self { engine, stop, job, lease, run_id: doorbell.run_id, incarnation: doorbell.incarnation, turn: None }
    }

    /// The attempt that this delivery makes of `step`.
    pub(super) fn attempt(&self, step: u32) -> Attempt {
        let (job, deliveries) = (self.job.job.clone(), self.job.deliveries);
        Attempt { incarnation: self.incarnation, step, job, deliveries }
    }

    /// The failure of `attempt`, of a step or hook that may use `max_attempts`.
    pub(super) fn attempt_failed(&self, attempt: Attempt, failed: CallFailed, max_attempts: u32) -> AttemptFailed {
        AttemptFailed {
            attempt,
            failure: failed.failure,
            retry_after: failed.retry_after,
            max_attempts,
            retry: self.engine.settings.retry_policy.clone(),
            entropy: self.engine.entropy(),
            now: self.engine.clock.now(),
            next_job: self.engine.next_job(),
        }
    }

    /// What may break off a call of the user's code.
    pub(super) fn limits(&self) -> Limits<'_> {
        Limits {
            timeout: self.engine.settings.step_timeout,
            lost: self.lease.lost(),
            stop: &self.stop,
            clock: &*self.engine.clock,
        }
    }

    /// Whether the loop shuts down, so that nothing starts any more.
    pub(super) fn is_draining(&self) -> bool {
        self.stop.draining.is_cancelled()
    }

    /// Waits among the suspects, without a slot, until this one may start; `false` when the loop shuts down or the
    /// lease is lost first.
    pub(super) async fn wait_for_turn(&mut self, slot: &mut Slot) -> bool {
        self.turn = tokio::select! {
            biased;
            () = self.stop.draining.cancelled() => None,
            () = self.lease.lost().cancelled() => None,
            turn = next_turn(slot, self.engine.clock.clone()) => Some(turn),
        };
        self.turn.is_some()
    }

    /// Repeats `operation` while the store cannot answer, for as long as the delivery lasts.
    pub(super) async fn patiently<T, F>(&self, operation: impl Fn() -> F) -> Result<T, Abandoned>
    where
        F: Future<Output = Result<T>>,
    {
        let mut backoff = Backoff::default();
        loop {
            let error = match operation().await {
                Ok(value) => return Ok(value),
                Err(error) if error.is_closed() => return Err(Abandoned::Closed),
                Err(error) if error.is_permanent() => return Err(Abandoned::Corrupt(error)),
                Err(error) => error,
            };
            warn!(run_id = %self.run_id, error = &error as &dyn std::error::Error, "the store does not answer");
            self.wait_out(&mut backoff).await?;
        }
    }

    /// Hands a commit in, and waits a little when the store cannot answer.
    pub(super) async fn hand_in(&self, commit: Commit, backoff: &mut Backoff) -> Result<HandedIn, Abandoned> {
        match self.engine.committer.commit(commit).await {
            Ok(()) => Ok(HandedIn::Applied),
            Err(CommitError::Conflict) => Ok(HandedIn::Again),
            Err(CommitError::Overtaken) => Ok(HandedIn::InDoubt),
            Err(CommitError::Invalid(error)) => Ok(HandedIn::Refused(error)),
            Err(CommitError::Failed(error)) if error.is_closed() => Err(Abandoned::Closed),
            Err(CommitError::Failed(error)) => {
                warn!(run_id = %self.run_id, error = &error as &dyn std::error::Error, "commit failed");
                self.wait_out(backoff).await?;
                Ok(HandedIn::InDoubt)
            }
        }
    }

    async fn wait_out(&self, backoff: &mut Backoff) -> Result<(), Abandoned> {
        if self.lease.lost().is_cancelled() {
            return Err(Abandoned::LeaseLost);
        }
        if self.stop.aborting.is_cancelled() {
            return Err(Abandoned::Stopping);
        }
        backoff.pause(&*self.engine.clock, &self.stop.aborting).await;
        Ok(())
    }
}

/// Gives the slot back and settles a delivery as its end says, or leaves it to its lease. The slot waits for those that
/// are not settled yet, if they are too many.
pub(super) async fn finish<R, H>(
    engine: &Engine<R, H>,
    run_id: &RunId,
    claim: Claim,
    ended: Result<Settlement, Abandoned>,
    mut slot: Slot,
) {
    let _unsettled = engine.unsettled.acquire().await;
    slot.release();
    match ended {
        Ok(settlement) => settle(engine, settlement).await,
        Err(Abandoned::Corrupt(cause)) => {
            error!(%run_id, error = &cause as &dyn std::error::Error, "corrupt run");
            settle(engine, Settlement::Dead(claim, format!("run `{run_id}` is corrupt: {cause}"))).await;
        }
        Err(abandoned) => debug!(%run_id, ?abandoned, "delivery abandoned"),
    }
}

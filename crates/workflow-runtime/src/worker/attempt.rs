//! One attempt of a step: calls the user's runner, guards it, and turns its answer into an event.

use std::any::Any;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use workflow_core::{
    Action, ActiveRun, CancelGraceOver, Event, Failure, FailureKind, Outcome, Run, StepReturned, Timestamp, Transition,
    Value, cut_text,
};
use workflow_effects::{Committer, EffectsHandle, KvReadHandle, KvStore, MemoScope, ObjectOwner, Seal, decode_run};
use workflow_memo::{Memo, MemoContext};

use super::Stop;
use super::backoff::Backoff;
use super::delivery::{Attached, Delivery, NotCommitted};
use super::hand::{Abandoned, Hand};
use super::pipeline::Pipeline;
use super::slots::Slot;
use super::trigger::start_of_next;
use crate::port::Clock;
use crate::{Barrier, Step, StepError, StepErrorKind, StepOutcome, StepRunner, TerminalHook};

/// How a call of the user's code ended.
pub(super) enum Called<T> {
    /// With an answer.
    Returned(T),
    /// With an error, a panic, or not in time.
    Failed(CallFailed),
    /// Broken off because the loop stops.
    HandedBack,
    /// Broken off because the lease is lost.
    LeaseLost,
    /// Broken off because it went on for too long after it was asked to stop.
    GraceOver,
}

/// A call that ended without an answer.
pub(super) struct CallFailed {
    pub(super) failure: Failure,
    pub(super) retry_after: Option<Duration>,
}

impl From<StepError> for CallFailed {
    fn from(error: StepError) -> Self {
        let kind = match error.kind {
            StepErrorKind::Transient => FailureKind::Transient,
            StepErrorKind::Permanent => FailureKind::Permanent,
        };
        let retry_after = error.asked_delay();
        Self { failure: Failure { kind, message: cut_text(error.message) }, retry_after }
    }
}

impl CallFailed {
    /// The record decides whether the attempt still counts. If so, a new doorbell replaces the one that was lost.
    pub(super) fn lease_lost() -> Self {
        Self::new(FailureKind::Transient, "the lease was lost".to_owned())
    }

    fn new(kind: FailureKind, message: String) -> Self {
        Self { failure: Failure { kind, message: cut_text(message) }, retry_after: None }
    }
}

/// What may break off a call of the user's code.
pub(super) struct Limits<'a> {
    pub(super) timeout: Option<Duration>,
    pub(super) lost: &'a CancellationToken,
    pub(super) stop: &'a Stop,
    pub(super) clock: &'a dyn Clock,
}

/// Calls the user's code in a task of its own, so that a panic or a call that never yields stays with itself. It is
/// broken off when `grace_over` resolves.
pub(super) async fn call<T: Send + 'static>(
    user: impl Future<Output = Result<T, StepError>> + Send + 'static,
    limits: Limits<'_>,
    grace_over: impl Future<Output = ()> + Send,
) -> Called<T> {
    let mut task = AbortOnDropHandle::new(tokio::spawn(user.in_current_span()));
    let timeout = async {
        match limits.timeout {
            Some(timeout) => limits.clock.sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        joined = &mut task => match joined {
            Ok(Ok(answer)) => Called::Returned(answer),
            Ok(Err(error)) => Called::Failed(error.into()),
            Err(error) if error.is_panic() => {
                let message = format!("panicked: {}", panic_message(&*error.into_panic()));
                Called::Failed(CallFailed::new(FailureKind::Panicked, message))
            }
            Err(_) => Called::HandedBack,
        },
        () = limits.lost.cancelled() => Called::LeaseLost,
        () = limits.stop.aborting.cancelled() => Called::HandedBack,
        () = grace_over => Called::GraceOver,
        () = timeout => {
            let message = format!("timed out after {:?}", limits.timeout.unwrap_or_default());
            Called::Failed(CallFailed::new(FailureKind::TimedOut, message))
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is not text")
}

/// Seals the handles of an attempt and fires its token, however it ends.
struct AttemptGuard {
    seal: Seal,
    token: CancellationToken,
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        self.seal.seal();
        self.token.cancel();
    }
}

impl<R, H> Delivery<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Executes the step in hand and commits what came of it.
    pub(super) async fn execute(&mut self, number: u32, slot: &Slot) -> Result<Transition, Abandoned> {
        let (payload, signal) = match self.values().await {
            Ok(values) => values,
            Err(Abandoned::Corrupt(error)) => {
                return self.fail(CallFailed::new(FailureKind::Permanent, format!("payload lost: {error}"))).await;
            }
            Err(abandoned) => return Err(abandoned),
        };
        self.started_at = Some(self.hand.engine.clock.now());
        let guard = AttemptGuard { seal: Seal::new(), token: CancellationToken::new() };
        let (effects, staging) = EffectsHandle::sealable();
        let step = self.step(number, payload, signal, effects, &guard);
        let runner = self.hand.engine.runner.clone();
        let span = tracing::info_span!(
            "workflow.step",
            run_id = step.run_id,
            step = step.step_number,
            attempt = number,
            job_id = step.job_id
        );
        let called = {
            let mut grace_over = pin!(self.broken_off(guard.token.clone()));
            // A cancel that came before the call fires the token before the call.
            match grace_over.as_mut().now_or_never() {
                Some(()) => Called::GraceOver,
                None => {
                    let user = async move { runner.run_step(&step).await };
                    call(user, self.hand.limits(), grace_over).instrument(span).await
                }
            }
        };
        drop(guard);
        let staged = staging.take();
        match called {
            Called::Returned(outcome) => self.conclude(outcome, staged, slot).await,
            Called::Failed(failed) => self.fail(failed).await,
            Called::HandedBack => self.hand_back().await,
            Called::LeaseLost => self.fail(CallFailed::lease_lost()).await,
            Called::GraceOver => {
                self.land().await?;
                let (attempt, now) = (self.attempt(), self.hand.engine.clock.now());
                self.gathered = self.gather().await?;
                self.commit_own(Event::CancelGraceOver(CancelGraceOver { attempt, now })).await
            }
        }
    }

    /// Returns when the step in hand is to be broken off: the steps before it are undone, or a cancel's grace is over.
    async fn broken_off(&self, token: CancellationToken) {
        let undone = async {
            match &self.pipeline {
                Some(pipeline) => pipeline.undone().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = undone => {}
            () = self.cancel_grace_over(token) => {}
        }
    }

    /// Watches the record for as long as the step is in hand. Once somebody has asked for the end of the run, or taken
    /// it over, fires `token` and returns after the grace.
    async fn cancel_grace_over(&self, token: CancellationToken) {
        let Hand { engine, run_id, .. } = &self.hand;
        let key = engine.reads.keys.run(run_id);
        let mut backoff = Backoff::default();
        let mut seen = self.gathered.record.clone();
        while self.goes_on(seen.as_ref()) {
            match engine.port.wait_for_change(&key, seen.as_ref()).await {
                Ok(record) => seen = record,
                // Whoever holds the delivery learns it from the next call.
                Err(error) if error.is_closed() => std::future::pending().await,
                Err(_) => backoff.pause(&*engine.clock, &self.hand.stop.aborting).await,
            }
        }
        token.cancel();
        engine.clock.sleep(engine.settings.cancel_grace).await;
    }

    /// Whether `record` says that the step in hand may go on.
    fn goes_on(&self, record: Option<&Bytes>) -> bool {
        if record == self.gathered.record.as_ref() {
            return matches!(&self.gathered.run, Run::Active(run) if run.cancel.is_none());
        }
        match decode_run(&self.hand.run_id, record.map(AsRef::as_ref)) {
            Ok(Run::Active(run)) => {
                let ours = self.active();
                // With pipelined commits, steps land that were executed before the one in hand.
                let is_ours = run.step == ours.step || run.revision < ours.revision;
                run.cancel.is_none() && run.job == self.hand.job.job && is_ours
            }
            Ok(Run::Absent | Run::Ended(_)) | Err(_) => false,
        }
    }

    /// The run whose step is executed.
    fn active(&self) -> &ActiveRun {
        match &self.gathered.run {
            Run::Active(run) => run,
            Run::Absent | Run::Ended(_) => unreachable!("only a step of an active run is executed"),
        }
    }

    /// The payload of the step, and the signal that it was called with.
    async fn values(&self) -> Result<(Bytes, Option<Bytes>), Abandoned> {
        let run = self.active();
        let payload = self.value(&run.payload).await?;
        let signal = match &run.signal {
            Some(signal) => Some(self.value(&signal.payload).await?),
            None => None,
        };
        Ok((payload, signal))
    }

    pub(super) async fn value(&self, value: &Value) -> Result<Bytes, Abandoned> {
        let objects = &self.hand.engine.reads.objects;
        self.hand.patiently(|| async { Ok(objects.get(value).await?) }).await
    }

    /// What the runner is called with.
    fn step(
        &self,
        number: u32,
        payload: Bytes,
        signal: Option<Bytes>,
        effects: EffectsHandle,
        guard: &AttemptGuard,
    ) -> Step {
        let run = self.active();
        let timeout = self.hand.engine.settings.step_timeout;
        let deadline = timeout.map(|timeout| self.hand.engine.clock.now().after(timeout));
        let branch = self.branch();
        let committer = Committer::new(branch.clone());
        Step {
            run_id: self.hand.run_id.to_string(),
            step_number: run.step,
            payload: payload.into(),
            headers: self.spec.headers.clone().into_iter().collect(),
            job_id: self.hand.job.job.to_string(),
            attempts: number,
            max_attempts: self.spec.max_attempts,
            cancel_token: guard.token.child_token(),
            lease: self.hand.lease.handle(deadline),
            memo: self.memo(committer.clone(), MemoScope::Step(run.step), run.revision, &guard.seal),
            run_memo: self.memo(committer, MemoScope::Run, run.revision, &guard.seal),
            effects,
            barrier: self.pipeline.as_ref().map_or_else(Barrier::detached, Pipeline::barrier),
            kv: KvReadHandle::new(branch),
            signal: signal.map(Into::into),
            signal_key: run.signal.as_ref().map(|signal| signal.key.to_string()),
        }
    }

    /// The store as the step in hand sees it.
    fn branch(&self) -> Arc<dyn KvStore> {
        match &self.pipeline {
            Some(pipeline) => pipeline.branch(),
            None => self.hand.engine.committer.kv().clone(),
        }
    }

    fn memo(&self, committer: Committer, scope: MemoScope, revision: u64, seal: &Seal) -> Memo {
        Memo::new(MemoContext {
            committer,
            objects: self.hand.engine.reads.objects.clone(),
            keys: self.hand.engine.reads.keys.clone(),
            run_id: self.hand.run_id.clone(),
            incarnation: self.hand.incarnation,
            scope,
            revision,
            seal: seal.clone(),
            spawn: self.hand.engine.in_hand.spawn(&self.hand.run_id, self.hand.incarnation),
        })
    }

    /// Commits a runner's answer.
    async fn conclude(
        &mut self,
        outcome: StepOutcome,
        staged: workflow_effects::StagedEffects,
        slot: &Slot,
    ) -> Result<Transition, Abandoned> {
        let now = self.hand.engine.clock.now();
        let inline = self.may_inline(slot);
        let mut attached = Attached { written_down: self.is_written_down(&staged), staged, result: None };
        let stored = match outcome {
            StepOutcome::Continue { payload, when } => match start_of_next(&when, now) {
                Ok(when) => {
                    let stored = self.store(payload.into()).await;
                    stored.map(|stored| stored.map(|payload| Outcome::Continue { payload, when }))
                }
                Err(problem) => Ok(Err(CallFailed::new(FailureKind::Permanent, problem))),
            },
            StepOutcome::Succeed { result } => {
                let bytes = Bytes::from(result);
                attached.result = Some(bytes.clone());
                self.store(bytes).await.map(|stored| stored.map(|result| Outcome::Succeed { result }))
            }
            StepOutcome::Fail { reason } => Ok(Ok(Outcome::Fail { reason: cut_text(reason) })),
            StepOutcome::Cancel { reason } => Ok(Ok(Outcome::Cancel { reason: cut_text(reason) })),
        };
        let outcome = match stored? {
            Ok(outcome) => outcome,
            Err(failed) => return self.fail(failed).await,
        };
        let content = self.write_down(&outcome, &attached.staged).await?;
        let transition = self.apply(outcome, attached, now, inline).await?;
        if let Some(content) = content {
            self.hand.engine.reads.objects.discard(&content).await;
        }
        Ok(transition)
    }

    /// Commits an outcome whose value is stored.
    pub(super) async fn apply(
        &mut self,
        outcome: Outcome,
        attached: Attached,
        now: Timestamp,
        inline: bool,
    ) -> Result<Transition, Abandoned> {
        // Whoever applies an outcome that is written down has the run name its value, whatever becomes of this commit.
        let is_own = |value: &&Value| value.object().is_some() && !attached.written_down;
        let fresh = outcome.value().filter(is_own).cloned();
        let event =
            StepReturned { attempt: self.attempt(), outcome, now, next_job: self.hand.engine.next_job(), inline };
        let committed = self.commit(Event::StepReturned(event), &attached).await;
        let refused = match &committed {
            // An end that somebody asked for lets the value go itself.
            Ok(transition) => transition.action == Action::Discard && !self.in_doubt,
            Err(NotCommitted::Refused(_)) => !self.in_doubt,
            // Nothing was handed in.
            Err(NotCommitted::Abandoned(Abandoned::Undone)) => !self.in_doubt,
            // Whether the commit was applied may be unknown: the object stays.
            Err(NotCommitted::Abandoned(_)) => false,
        };
        if let (true, Some(value)) = (refused, &fresh) {
            self.hand.engine.reads.objects.discard(value).await;
        }
        match committed {
            Ok(transition) => Ok(transition),
            Err(NotCommitted::Abandoned(abandoned)) => Err(abandoned),
            Err(NotCommitted::Refused(error)) => {
                let message = format!("the step's commit can never succeed: {error}");
                self.fail(CallFailed::new(FailureKind::Permanent, message)).await
            }
        }
    }

    /// Commits a failed attempt.
    async fn fail(&mut self, failed: CallFailed) -> Result<Transition, Abandoned> {
        let event = self.hand.attempt_failed(self.attempt(), failed, self.spec.max_attempts);
        self.commit_own(Event::StepFailed(event)).await
    }

    /// Stores a payload or result: inline, or as an object of the run's. One that is too large fails the step.
    async fn store(&self, bytes: Bytes) -> Result<Result<Value, CallFailed>, Abandoned> {
        let owner = ObjectOwner::Run { run_id: self.hand.run_id.clone(), incarnation: self.hand.incarnation };
        let objects = &self.hand.engine.reads.objects;
        let put = self.hand.patiently(|| {
            let put = objects.put(&owner, bytes.clone());
            async { Ok(put.await?) }
        });
        match put.await {
            Ok(value) => Ok(Ok(value)),
            Err(Abandoned::Corrupt(error)) => Ok(Err(CallFailed::new(FailureKind::Permanent, error.to_string()))),
            Err(abandoned) => Err(abandoned),
        }
    }
}

//! One attempt of a step: calls the user's runner, guards it, and turns its answer into an event.

use std::any::Any;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use workflow_core::{
    Action, ActiveRun, Event, Failure, FailureKind, Outcome, Run, StepReturned, Timestamp, Transition, Value, cut_text,
};
use workflow_effects::{EffectsHandle, KvReadHandle, MemoScope, ObjectOwner, Seal};
use workflow_memo::{Memo, MemoContext};

use super::Stop;
use super::delivery::{Attached, Delivery, NotCommitted};
use super::hand::Abandoned;
use super::slots::Slot;
use crate::port::Clock;
use crate::{Step, StepError, StepErrorKind, StepOutcome, StepRunner, TerminalHook, Trigger};

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

/// Calls the user's code in a task of its own, so that a panic or a call that never yields stays with itself.
pub(super) async fn call<T: Send + 'static>(
    user: impl Future<Output = Result<T, StepError>> + Send + 'static,
    limits: Limits<'_>,
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
        let payload = match self.payload().await {
            Ok(payload) => payload,
            Err(Abandoned::Corrupt(error)) => {
                return self.fail(CallFailed::new(FailureKind::Permanent, format!("payload lost: {error}"))).await;
            }
            Err(abandoned) => return Err(abandoned),
        };
        self.started_at = Some(self.hand.engine.clock.now());
        let guard = AttemptGuard { seal: Seal::new(), token: CancellationToken::new() };
        let (effects, staging) = EffectsHandle::sealable();
        let step = self.step(number, payload, effects, &guard);
        let runner = self.hand.engine.runner.clone();
        let span = tracing::info_span!(
            "workflow.step",
            run_id = step.run_id,
            step = step.step_number,
            attempt = number,
            job_id = step.job_id
        );
        let called = call(async move { runner.run_step(&step).await }, self.hand.limits()).instrument(span).await;
        drop(guard);
        let staged = staging.take();
        match called {
            Called::Returned(outcome) => self.conclude(outcome, staged, slot).await,
            Called::Failed(failed) => self.fail(failed).await,
            Called::HandedBack => self.hand_back().await,
            Called::LeaseLost => self.fail(CallFailed::lease_lost()).await,
        }
    }

    /// The run whose step is executed.
    fn active(&self) -> &ActiveRun {
        match &self.gathered.run {
            Run::Active(run) => run,
            Run::Absent | Run::Ended(_) => unreachable!("only a step of an active run is executed"),
        }
    }

    async fn payload(&self) -> Result<Bytes, Abandoned> {
        let (objects, value) = (&self.hand.engine.reads.objects, &self.active().payload);
        self.hand.patiently(|| async { Ok(objects.get(value).await?) }).await
    }

    /// What the runner is called with.
    fn step(&self, number: u32, payload: Bytes, effects: EffectsHandle, guard: &AttemptGuard) -> Step {
        let run = self.active();
        let timeout = self.hand.engine.settings.step_timeout;
        let deadline = timeout.map(|timeout| self.hand.engine.clock.now().after(timeout));
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
            memo: self.memo(MemoScope::Step(run.step), run.revision, &guard.seal),
            run_memo: self.memo(MemoScope::Run, run.revision, &guard.seal),
            effects,
            kv: KvReadHandle::new(self.hand.engine.committer.kv().clone()),
        }
    }

    fn memo(&self, scope: MemoScope, revision: u64, seal: &Seal) -> Memo {
        Memo::new(MemoContext {
            committer: self.hand.engine.committer.clone(),
            objects: self.hand.engine.reads.objects.clone(),
            keys: self.hand.engine.reads.keys.clone(),
            run_id: self.hand.run_id.clone(),
            incarnation: self.hand.incarnation,
            scope,
            revision,
            seal: seal.clone(),
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
        let mut attached = Attached { staged, result: None };
        let stored = match outcome {
            StepOutcome::Continue { payload, when } => {
                let due = due_time(&when, now);
                self.store(payload.into()).await.map(|stored| stored.map(|payload| Outcome::Continue { payload, due }))
            }
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
        let fresh = fresh_value(&outcome);
        let event =
            StepReturned { attempt: self.attempt(), outcome, now, next_job: self.hand.engine.next_job(), inline };
        let committed = self.commit(Event::StepReturned(event), &attached).await;
        let refused = match &committed {
            Ok(transition) => transition.action == Action::Discard && !self.in_doubt,
            Err(NotCommitted::Refused(_)) => !self.in_doubt,
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
        let owner = ObjectOwner { run_id: self.hand.run_id.clone(), incarnation: self.hand.incarnation };
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

/// When the next step is due, if not at once.
fn due_time(when: &Trigger, now: Timestamp) -> Option<Timestamp> {
    match when {
        Trigger::Immediate => None,
        Trigger::After(delay) => Some(now.after(*delay)),
    }
}

/// The object that an outcome brings along.
fn fresh_value(outcome: &Outcome) -> Option<Value> {
    match outcome {
        Outcome::Continue { payload: value, .. } | Outcome::Succeed { result: value } => {
            value.object().map(|_| value.clone())
        }
        Outcome::Fail { .. } | Outcome::Cancel { .. } => None,
    }
}

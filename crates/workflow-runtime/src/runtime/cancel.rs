//! Cancelling a run from outside, in whatever phase it is.

use tracing::{debug, info};
use workflow_core::{CancelRequested, Event, Phase, Reason, Run, RunId, Transition, cut_text, decide};
use workflow_effects::{CommitError, Read, Spec, StagedEffects};

use super::WorkflowRuntime;
use crate::engine::Engine;
use crate::lower::{Attempted, Lowering, lower};
use crate::port::JobState;
use crate::reads::{Gathered, parse_run_id};
use crate::{Error, Result, RunOutcome, StepRunner, TerminalHook};

/// What came of a call of [`cancel`](WorkflowRuntime::cancel).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CancelOutcome {
    /// The run was idle. It has ended.
    Ended,
    /// A step is in hand. Its token fires, what it returns is discarded, and the run ends with it, or without it once
    /// [`cancel_grace`](crate::Settings::cancel_grace) is over.
    Requested,
    /// The run had ended before, like this.
    AlreadyEnded(RunOutcome),
    /// There is no run of this id.
    NotFound,
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Ends a run as cancelled, for `reason`, which is cut to 8 KiB and becomes the error of its outcome. What was
    /// committed stays; the hook is told. In force, whatever happens, when this returns: no step starts any more.
    ///
    /// The first reason stays. It needs no running loop.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRunId`]; a permanent error when the run's record does not decode; a transient one when the
    /// store cannot answer: asking again tells.
    pub async fn cancel(&self, run_id: &str, reason: Option<String>) -> Result<CancelOutcome> {
        let cancel = Cancel { run_id: parse_run_id(run_id)?, reason: reason.map(cut_text) };
        let engine = self.engine.clone();
        tokio::spawn(async move { cancel.carry_out(&engine).await }).await.unwrap_or(Err(Error::Interrupted))
    }
}

/// A cancellation that passed every check.
struct Cancel {
    run_id: RunId,
    reason: Option<String>,
}

impl Cancel {
    /// Gathers, decides and commits, again for as long as others get in between.
    async fn carry_out<R, H: TerminalHook>(&self, engine: &Engine<R, H>) -> Result<CancelOutcome> {
        let mut turn = None;
        loop {
            let gathered = engine.reads.gather(&self.run_id, Read::Durable).await?;
            let event = Event::CancelRequested(CancelRequested {
                reason: self.reason.clone(),
                in_hand: is_in_hand(engine, &gathered.run).await?,
                now: engine.clock.now(),
            });
            let slots = engine.reads.slots(&self.run_id, &gathered.run, &event).await?;
            let transition = decide(&gathered.run, event);
            debug!(run_id = %self.run_id, reason = transition.reason.as_str(), "transition");
            if transition.next.revision() == gathered.run.revision() {
                return self.answer(engine, &transition).await;
            }
            let spec = self.spec(engine, &gathered.run).await?;
            let staged = StagedEffects::default();
            let lowering = Lowering {
                notification: engine.notification(&self.run_id, &spec, &transition, None),
                attempted: not_attempted(engine, &gathered),
                ..engine.lowering(&self.run_id, gathered.record.as_ref(), &spec, &staged, &slots)
            };
            match engine.committer.commit(lower(&lowering, &transition)).await {
                Ok(()) => {
                    engine.clean_up(&transition, engine.kept(&gathered.run).as_ref());
                    return self.answer(engine, &transition).await;
                }
                Err(CommitError::Conflict | CommitError::Overtaken) => {}
                Err(CommitError::Invalid(error) | CommitError::Failed(error)) => return Err(error.into()),
            }
            if turn.is_none() {
                turn = Some(engine.turns.take(engine.reads.keys.run(&self.run_id)).await);
            }
        }
    }

    async fn spec<R, H>(&self, engine: &Engine<R, H>, run: &Run) -> Result<Spec> {
        let incarnation = run.incarnation().expect("only a run that is there is written");
        engine.reads.spec(&self.run_id, incarnation).await
    }

    async fn answer<R, H>(&self, engine: &Engine<R, H>, transition: &Transition) -> Result<CancelOutcome> {
        match (&transition.next, transition.reason) {
            (Run::Absent, _) => Ok(CancelOutcome::NotFound),
            (Run::Active(_), _) => Ok(CancelOutcome::Requested),
            (Run::Ended(ended), Reason::AlreadyEnded) => {
                Ok(CancelOutcome::AlreadyEnded(engine.reads.outcome(&self.run_id, ended).await?))
            }
            (Run::Ended(ended), _) => {
                info!(run_id = %self.run_id, status = ?ended.status, step = ended.final_step, "run ended");
                Ok(CancelOutcome::Ended)
            }
        }
    }
}

/// Whether a delivery of the run's doorbell may be executing a step. Where none can, nobody asks the queue.
async fn is_in_hand<R, H>(engine: &Engine<R, H>, run: &Run) -> Result<bool> {
    match run {
        Run::Active(active) if active.phase.is_due(engine.clock.now()) => {
            Ok(engine.port.job_state(&active.job).await? == Some(JobState::Claimed))
        }
        Run::Absent | Run::Active(_) | Run::Ended(_) => Ok(false),
    }
}

/// What the history says of a step that ended without an attempt of its own.
fn not_attempted<R, H>(engine: &Engine<R, H>, gathered: &Gathered) -> Option<Attempted> {
    let Run::Active(run) = &gathered.run else { return None };
    let now = engine.clock.now();
    let attempt = match run.phase {
        Phase::Ready | Phase::BackingOff { .. } => run.attempts.used,
        Phase::Delayed { .. } | Phase::Waiting { .. } => 0,
    };
    Some(Attempted::of(run, attempt, now, now))
}

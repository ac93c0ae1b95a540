//! Changes of a run that somebody asks for from outside: gather, commit, again for as long as others get in
//! between.

use tracing::{debug, info};
use workflow_core::{
    CancelRequested, DoorbellMissed, Event, Incarnation, JobId, PauseRequested, Phase, RecordedStep, RedriveRequested,
    Resumed, Run, RunId, Transition, Value,
};
use workflow_effects::{CommitError, Read, StagedEffects};

use crate::engine::Engine;
use crate::lower::{Attempted, Lowering, lower};
use crate::port::JobState;
use crate::reads::Gathered;
use crate::signals::tell;
use crate::{Error, Result, TerminalHook};

/// What somebody wants of a run.
pub(crate) enum Wish {
    /// That it end.
    Cancel {
        /// Why, already cut to its limit.
        reason: Option<String>,
    },
    /// That no step of it start.
    Pause,
    /// That it go on after a pause.
    Resume,
    /// That it go on after its end.
    Redrive(Redrive),
    /// That this doorbell, which is not there, ring again.
    RingAgain(JobId),
}

/// A redrive that passed every check.
pub(crate) struct Redrive {
    /// The submission that it is of.
    pub(crate) incarnation: Incarnation,
    /// The earlier step to go on from.
    pub(crate) from: Option<RecordedStep>,
    /// The payload that takes the place of the recorded one.
    pub(crate) payload: Option<Value>,
}

/// A wish that passed every check.
pub(crate) struct Change {
    pub(crate) run_id: RunId,
    pub(crate) wish: Wish,
}

impl Change {
    /// Carries the wish out as far as the run's state allows. What the transition says is durable.
    pub(crate) async fn carry_out<R, H: TerminalHook>(&self, engine: &Engine<R, H>) -> Result<Transition> {
        self.carry_out_or_doubt(engine, &mut false).await
    }

    /// As [`carry_out`](Self::carry_out). Sets `in_doubt` when a commit may have been applied before what is told: what
    /// it names has to stay.
    pub(crate) async fn carry_out_or_doubt<R, H: TerminalHook>(
        &self,
        engine: &Engine<R, H>,
        in_doubt: &mut bool,
    ) -> Result<Transition> {
        let mut turn = None;
        loop {
            let gathered = engine.reads.gather(&self.run_id, Read::Durable).await?;
            let mut event = self.event(engine, &gathered.run).await?;
            let slots = engine.reads.slots(&self.run_id, &gathered.run, &event).await?;
            tell(&gathered.run, &mut event, &slots);
            let transition = engine.decider.decide(&gathered.run, event);
            debug!(run_id = %self.run_id, reason = transition.reason.as_str(), "transition");
            let Some(incarnation) = transition.next.incarnation() else { return Ok(transition) };
            if transition.next.revision() == gathered.run.revision() {
                return Ok(transition);
            }
            let Some(spec) = engine.reads.spec(&self.run_id, incarnation).await? else { continue };
            let retold = engine.reads.retold(&self.run_id, &gathered.run, &transition).await?;
            let staged = StagedEffects::default();
            let lowering = Lowering {
                notification: engine.notification(&self.run_id, &spec, &transition, None),
                attempted: not_attempted(engine, &gathered),
                ..engine.lowering(&self.run_id, &gathered, &spec, &staged, &slots)
            };
            match engine.committer.commit(lower(&lowering, &transition)).await {
                Ok(()) => {
                    engine.clean_up(&self.run_id, &gathered.run, &transition, retold);
                    info!(run_id = %self.run_id, reason = transition.reason.as_str(), "run changed from outside");
                    return Ok(transition);
                }
                Err(CommitError::Conflict) => {}
                Err(CommitError::Overtaken) => *in_doubt = true,
                Err(CommitError::Invalid(error) | CommitError::Failed(error)) => return Err(error.into()),
            }
            if turn.is_none() {
                turn = Some(engine.turns.take(engine.reads.keys.run(&self.run_id)).await);
            }
        }
    }

    /// The wish as an event, with the facts that its decision needs.
    async fn event<R, H>(&self, engine: &Engine<R, H>, run: &Run) -> Result<Event> {
        let now = engine.clock.now();
        Ok(match &self.wish {
            Wish::Cancel { reason } => {
                let in_hand = match run {
                    // Where no step can be in hand, nobody asks the queue.
                    Run::Active(run) if run.phase.is_due(now) => is_in_hand(engine, &run.job).await?,
                    Run::Absent | Run::Active(_) | Run::Ended(_) => false,
                };
                Event::CancelRequested(CancelRequested { reason: reason.clone(), in_hand, now })
            }
            Wish::Pause => Event::PauseRequested(PauseRequested { now }),
            Wish::Resume => {
                let has_doorbell = match run {
                    Run::Active(run) => has_doorbell(engine, &run.job).await?,
                    Run::Absent | Run::Ended(_) => false,
                };
                Event::Resumed(Resumed { has_doorbell, now, next_job: engine.next_job() })
            }
            Wish::Redrive(redrive) if run.incarnation() == Some(redrive.incarnation) => {
                Event::RedriveRequested(RedriveRequested {
                    from: redrive.from.clone(),
                    payload: redrive.payload.clone(),
                    keys: Vec::new(),
                    now,
                    next_job: engine.next_job(),
                })
            }
            Wish::Redrive(_) => return Err(Error::NotFound(self.run_id.to_string())),
            Wish::RingAgain(job) => {
                Event::DoorbellMissed(DoorbellMissed { job: job.clone(), now, next_job: engine.next_job() })
            }
        })
    }
}

/// Whether somebody may hold the run's doorbell.
pub(super) async fn is_in_hand<R, H>(engine: &Engine<R, H>, job: &JobId) -> Result<bool> {
    Ok(engine.port.job_state(job).await? == Some(JobState::Claimed))
}

/// Whether the run's doorbell is there. A dead one rings for nobody.
pub(crate) async fn has_doorbell<R, H>(engine: &Engine<R, H>, job: &JobId) -> Result<bool> {
    Ok(matches!(engine.port.job_state(job).await?, Some(JobState::Waiting | JobState::Claimed)))
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

//! Bringing a run back that failed or was cancelled.

use bytes::Bytes;
use workflow_core::{EndedRun, Incarnation, Reason, RecordedStep, Run, RunId, Transition, Value};
use workflow_effects::{ObjectOwner, Read, StepRow};

use super::WorkflowRuntime;
use super::change::{Change, Redrive, Wish};
use crate::engine::Engine;
use crate::lower::named_values;
use crate::reads::parse_run_id;
use crate::{Error, Result, RunOutcome, StepRunner, TerminalHook};

/// How a run is brought back; write `..RedriveOptions::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedriveOptions {
    /// The step to go on from: the one that ended the run, which is the default, or an earlier one whose payload is
    /// recorded, see [`HistoryLevel::Full`](crate::HistoryLevel::Full).
    pub step: Option<u32>,
    /// What the step is to be called with, instead of what it was called with before.
    pub payload: Option<Vec<u8>>,
}

/// What came of a call of [`redrive`](WorkflowRuntime::redrive).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedriveOutcome {
    /// The run goes on.
    Redriven,
    /// The run goes on already: it has not ended, or somebody else has brought it back.
    Active,
    /// The run succeeded, like this: there is nothing to go on from.
    Succeeded(RunOutcome),
    /// There is no run of this id.
    NotFound,
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Brings a run back that failed or was cancelled: the step that ended it starts again, with all its attempts. What
    /// was committed and what was memoized stays. A step that the run waited for when it was cancelled is waited for
    /// again. In force, whatever happens, when this returns; of rivals one brings the run back.
    ///
    /// Putting the run's job back from the dead letters, with the queue's own means, does the same. The hook is told of
    /// every end of a run, of this one too if it has not been yet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRunId`]; [`Error::InvalidOption`] when the step is not recorded; [`Error::KeyTaken`] when another
    /// run waits by now for what this one waited for; a permanent error when the payload is too large or something
    /// stored does not decode; a transient one when the store cannot answer: asking again tells.
    pub async fn redrive(&self, run_id: &str, options: RedriveOptions) -> Result<RedriveOutcome> {
        let (engine, run_id) = (self.engine.clone(), parse_run_id(run_id)?);
        let max = engine.settings.max_value_size;
        if let Some(len) = options.payload.as_ref().map(|payload| payload.len() as u64).filter(|len| *len > max) {
            let what = format!("the payload of run `{run_id}`");
            return Err(Error::Effects(workflow_effects::Error::ValueTooLarge { what, len, max }));
        }
        tokio::spawn(async move { redrive(&engine, run_id, options).await }).await.unwrap_or(Err(Error::Interrupted))
    }
}

async fn redrive<R, H: TerminalHook>(
    engine: &Engine<R, H>,
    run_id: RunId,
    options: RedriveOptions,
) -> Result<RedriveOutcome> {
    let ended = match engine.reads.gather(&run_id, Read::Durable).await?.run {
        Run::Absent => return Ok(RedriveOutcome::NotFound),
        Run::Active(_) => return Ok(RedriveOutcome::Active),
        Run::Ended(ended) => ended,
    };
    let incarnation = ended.incarnation;
    let from = recorded_step(engine, &run_id, &ended, options.step).await;
    let Some(from) = engine.reads.unless_removed(&run_id, incarnation, from).await? else {
        return Ok(RedriveOutcome::NotFound);
    };
    // Whoever removes the run leaves its objects alone for as long as it is in hand, unless the removal began before.
    let _held = engine.in_hand.enter(&run_id, incarnation);
    let payload = match options.payload {
        Some(_) if engine.reads.gather(&run_id, Read::Durable).await?.run.incarnation() != Some(incarnation) => {
            return Ok(RedriveOutcome::NotFound);
        }
        Some(payload) => Some(put(engine, &run_id, incarnation, payload.into()).await?),
        None => None,
    };
    let change = Change { run_id, wish: Wish::Redrive(Redrive { incarnation, from, payload: payload.clone() }) };
    let mut in_doubt = false;
    let carried_out = change.carry_out_or_doubt(engine, &mut in_doubt).await;
    if let Some(payload) = payload.filter(|payload| !in_doubt && !may_name(&carried_out, payload)) {
        engine.reads.objects.discard(&payload).await;
    }
    let transition = match carried_out {
        Err(Error::NotFound(_)) => return Ok(RedriveOutcome::NotFound),
        carried_out => carried_out?,
    };
    match (transition.reason, transition.next) {
        (Reason::Redriven, _) => Ok(RedriveOutcome::Redriven),
        (Reason::KeyTaken, _) => Err(Error::KeyTaken(change.run_id.to_string())),
        (_, Run::Absent) => Ok(RedriveOutcome::NotFound),
        (_, Run::Active(_)) => Ok(RedriveOutcome::Active),
        (_, Run::Ended(ended)) => {
            let end = engine.reads.outcome(&change.run_id, &ended).await?;
            Ok(end.map_or(RedriveOutcome::NotFound, RedriveOutcome::Succeeded))
        }
    }
}

/// Whether the run may name `payload` by now. A transient error may hide a commit that was applied.
fn may_name(carried_out: &Result<Transition>, payload: &Value) -> bool {
    match carried_out {
        Ok(transition) => named_values(&transition.next).contains(&payload),
        Err(error) => !error.is_permanent(),
    }
}

/// The earlier step that is asked for, as the history has it; nothing for the step that ended the run.
async fn recorded_step<R, H>(
    engine: &Engine<R, H>,
    run_id: &RunId,
    ended: &EndedRun,
    step: Option<u32>,
) -> Result<Option<RecordedStep>> {
    let Some(step) = step.filter(|step| *step != ended.final_step) else { return Ok(None) };
    let row = match step < ended.final_step {
        true => engine.reads.step_row(run_id, ended.incarnation, step).await?,
        false => None,
    };
    match row {
        Some(StepRow { payload: Some(payload), signal, .. }) => Ok(Some(RecordedStep { step, payload, signal })),
        Some(_) | None => {
            let problem = format!("the payload of step {step} of run `{run_id}` is not recorded");
            Err(Error::InvalidOption { option: "step", problem })
        }
    }
}

async fn put<R, H>(engine: &Engine<R, H>, run_id: &RunId, incarnation: Incarnation, payload: Bytes) -> Result<Value> {
    let owner = ObjectOwner::Run { run_id: run_id.clone(), incarnation };
    Ok(engine.reads.objects.put(&owner, payload).await?)
}

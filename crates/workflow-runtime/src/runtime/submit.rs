//! Submission: one run per id, durable before the answer.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tracing::info;
use workflow_core::{Event, Incarnation, InputHash, Reason, Run, RunId, Submitted, Transition, Value, decide};
use workflow_effects::{CommitError, ObjectOwner, Read, Spec, StagedEffects};

use super::WorkflowRuntime;
use crate::engine::{Engine, Gathered};
use crate::ids::new_run_id;
use crate::lower::{Lowering, lower};
use crate::spec::{checked_headers, checked_kv_writes};
use crate::{Error, Result, RunSpec, StepRunner, SubmitOutcome, TerminalHook};

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Makes a run, durable when this returns; or finds the run that this id and input already made.
    ///
    /// Of concurrent submissions of one id, one makes the run and the others are answered as duplicates or refused.
    /// "Same input" means the input's bytes: headers, options and KV writes of a duplicate are ignored.
    ///
    /// # Errors
    ///
    /// [`Error::InputMismatch`] when the id is taken by a run with another input; a permanent error, with nothing
    /// written, for every part of the submission beyond its limit; a transient one when the store cannot answer: the
    /// run may exist then, and submitting it again tells.
    pub async fn submit(&self, spec: RunSpec) -> Result<SubmitOutcome> {
        let submission = Submission::parse(&self.engine, spec)?;
        let engine = self.engine.clone();
        tokio::spawn(async move { submission.submit(&engine).await }).await.unwrap_or(Err(Error::Interrupted))
    }
}

/// A submission that passed every check.
struct Submission {
    run_id: RunId,
    incarnation: Incarnation,
    input: Bytes,
    run_at: Option<workflow_core::Timestamp>,
    spec: Spec,
    staged: StagedEffects,
}

impl Submission {
    fn parse<R, H>(engine: &Arc<Engine<R, H>>, spec: RunSpec) -> Result<Self> {
        let now = engine.clock.now();
        let run_id = match spec.run_id {
            Some(id) => parse_run_id(&id)?,
            None => parse_run_id(&new_run_id(now, engine.ids.random()))?,
        };
        let max_attempts = spec.max_attempts_per_step.unwrap_or(engine.settings.max_attempts_per_step);
        if max_attempts == 0 {
            let problem = "a step needs at least one attempt".to_owned();
            return Err(Error::InvalidOption { option: "max_attempts_per_step", problem });
        }
        if spec.input.len() as u64 > engine.settings.max_value_size {
            return Err(Error::Effects(workflow_effects::Error::ValueTooLarge {
                what: format!("the input of run `{run_id}`"),
                len: spec.input.len() as u64,
                max: engine.settings.max_value_size,
            }));
        }
        let input_hash = InputHash(Sha256::digest(&spec.input).into());
        let headers = checked_headers(spec.headers)?;
        Ok(Self {
            run_id,
            incarnation: Incarnation::new(engine.ids.random()),
            input: spec.input.into(),
            run_at: spec.run_at.map(Into::into),
            spec: Spec {
                headers,
                max_attempts,
                priority: spec.priority,
                input_hash,
                submitted_at: now,
                object_prefix: engine.settings.prefix.clone(),
            },
            staged: checked_kv_writes(spec.kv_writes)?,
        })
    }

    /// Gathers, decides and commits, again for as long as others get in between.
    async fn submit<R, H: TerminalHook>(&self, engine: &Engine<R, H>) -> Result<SubmitOutcome> {
        let mut input = None;
        let answer = loop {
            let gathered = engine.gather(&self.run_id, Read::Durable).await?;
            let stored = match gathered.run.incarnation() {
                Some(incarnation) => engine.spec(&self.run_id, incarnation).await?,
                None => None,
            };
            if input.is_none() {
                input = Some(self.store_input(engine, &gathered.run).await?);
            }
            let transition = decide(&gathered.run, self.event(engine, input.clone().unwrap_or_default(), stored));
            if transition.reason != Reason::Submitted {
                break Ok(transition);
            }
            match self.commit(engine, &gathered, &transition).await {
                Ok(()) => break Ok(transition),
                Err(CommitError::Conflict) => {}
                Err(CommitError::Invalid(error)) => break Err(error),
                // Whether the commit was applied may be unknown: the input's object stays.
                Err(CommitError::Failed(error)) => return Err(error.into()),
            }
        };
        if let (Some(value), false) = (&input, matches!(&answer, Ok(made) if made.reason == Reason::Submitted)) {
            engine.objects.discard(value).await;
        }
        self.answer(engine, answer?).await
    }

    /// The input as the record will hold it. Only a run that is not there yet needs its object.
    async fn store_input<R, H>(&self, engine: &Engine<R, H>, run: &Run) -> Result<Value> {
        match run {
            Run::Absent => {
                let owner = ObjectOwner { run_id: self.run_id.clone(), incarnation: self.incarnation };
                Ok(engine.objects.put(&owner, self.input.clone()).await?)
            }
            Run::Active(_) | Run::Ended(_) => Ok(Value::default()),
        }
    }

    fn event<R, H>(&self, engine: &Engine<R, H>, input: Value, stored: Option<Spec>) -> Event {
        Event::Submitted(Submitted {
            incarnation: self.incarnation,
            job: engine.next_job(),
            input,
            input_hash: self.spec.input_hash,
            stored_input_hash: stored.map(|spec| spec.input_hash),
            now: engine.clock.now(),
            run_at: self.run_at,
        })
    }

    async fn commit<R, H>(
        &self,
        engine: &Engine<R, H>,
        gathered: &Gathered,
        transition: &Transition,
    ) -> Result<(), CommitError> {
        let lowering = Lowering {
            keys: &engine.keys,
            queue_name: &engine.settings.queue_name,
            queues: &engine.queues,
            open: engine.port.open_number(),
            run_id: &self.run_id,
            record: gathered.record.as_ref(),
            spec: &self.spec,
            staged: &self.staged,
            notification: None,
        };
        engine.committer.commit(lower(&lowering, transition)).await
    }

    async fn answer<R, H>(&self, engine: &Engine<R, H>, transition: Transition) -> Result<SubmitOutcome> {
        let run_id = self.run_id.to_string();
        if transition.reason == Reason::InputMismatch {
            return Err(Error::InputMismatch(run_id));
        }
        let newly_submitted = transition.reason == Reason::Submitted;
        if newly_submitted {
            info!(run_id, input_len = self.input.len(), "run submitted");
        }
        let (job_id, end) = match &transition.next {
            Run::Active(run) => (run.job.to_string(), None),
            Run::Ended(ended) => (ended.final_job.to_string(), Some(engine.outcome(&self.run_id, ended).await?)),
            Run::Absent => unreachable!("a submission leaves a run"),
        };
        Ok(SubmitOutcome { run_id, newly_submitted, job_id, end })
    }
}

/// Parses a user's run id; the error shows its beginning.
pub(super) fn parse_run_id(id: &str) -> Result<RunId> {
    RunId::parse(id).map_err(|source| Error::InvalidRunId {
        run_id: id.chars().take(64).collect::<String>().escape_debug().to_string(),
        source,
    })
}

//! Submission: one run per id, durable before the answer.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tracing::info;
use workflow_core::{Event, Incarnation, InputHash, Reason, Run, RunId, Submitted, Timestamp, Value};
use workflow_effects::{CommitError, Naming, ObjectOwner, Read, Spec, StagedEffects};

use super::WorkflowRuntime;
use crate::engine::{DEFAULT_PRIORITY, Engine, MAX_PRIORITIES};
use crate::ids::new_run_id;
use crate::lower::lower;
use crate::reads::parse_run_id;
use crate::signals::GatheredSlots;
use crate::spec::{checked_headers, checked_kv_writes};
use crate::{Error, Result, RunOutcome, RunSpec, StepRunner, SubmitOutcome, TerminalHook};

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
        tokio::spawn(Box::pin(async move { submission.submit(&engine).await })).await.unwrap_or(Err(Error::Interrupted))
    }
}

/// A submission that passed every check.
struct Submission {
    run_id: RunId,
    incarnation: Incarnation,
    input: Bytes,
    run_at: Option<Timestamp>,
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
        if spec.priority.is_some_and(|priority| !engine.queues.admits(priority)) {
            let problem = format!("{MAX_PRIORITIES} priorities are in use already");
            return Err(Error::InvalidOption { option: "priority", problem });
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

    /// Gathers, decides and commits, again for as long as others get in between. One that took so long that its input
    /// was given up meanwhile answers a transient error: the next try is a submission of its own. So does one whose
    /// commit may have been applied where no run is found: the run may have come and gone.
    async fn submit<R, H>(&self, engine: &Engine<R, H>) -> Result<SubmitOutcome> {
        let _held = engine.in_hand.enter(&self.run_id, self.incarnation);
        let (mut input, mut in_doubt, slots) = (None, false, GatheredSlots::new());
        loop {
            let gathered = engine.reads.gather(&self.run_id, Read::Durable).await?;
            let stored = match gathered.run.incarnation() {
                // Our own commit, whose answer was lost.
                Some(incarnation) if incarnation == self.incarnation => {
                    let end = self.end_of(engine, &gathered.run).await?;
                    return self.answer(engine, &gathered.run, Reason::Submitted, end);
                }
                Some(incarnation) => match engine.reads.spec(&self.run_id, incarnation).await? {
                    Some(spec) => Some(spec.input_hash),
                    // Removed meanwhile.
                    None => continue,
                },
                None if in_doubt => return Err(Error::Queue("the outcome of a submission's commit is unknown".into())),
                None => None,
            };
            if stored.is_none() && input.is_none() {
                let owner = ObjectOwner::Run { run_id: self.run_id.clone(), incarnation: self.incarnation };
                input = Some(engine.reads.objects.put(&owner, self.input.clone()).await?);
            }
            let event = self.event(engine, input.clone().unwrap_or_default(), stored);
            let transition = engine.decider.decide(&gathered.run, event);
            if transition.reason != Reason::Submitted {
                let end = self.end_of(engine, &transition.next).await?;
                if end.is_none() && matches!(transition.next, Run::Ended(_)) {
                    continue;
                }
                discard(engine, input).await;
                return self.answer(engine, &transition.next, transition.reason, end);
            }
            let naming = self.naming(engine, input.as_ref()).await?;
            let lowering = engine.lowering(&self.run_id, &gathered, &self.spec, &self.staged, &slots);
            let mut commit = lower(&lowering, &transition);
            naming.add_to(&mut commit);
            match engine.committer.commit_once(commit).await {
                Ok(()) => return self.answer(engine, &transition.next, transition.reason, None),
                Err(CommitError::Conflict) => {}
                Err(CommitError::Overtaken) => in_doubt = true,
                Err(CommitError::Invalid(error)) => {
                    discard(engine, input).await;
                    return Err(error.into());
                }
                // The commit may have been applied: the input's object stays.
                Err(CommitError::Failed(error)) => return Err(error.into()),
            }
        }
    }

    /// What the commit that names `input` changes besides.
    async fn naming<R, H>(&self, engine: &Engine<R, H>, input: Option<&Value>) -> Result<Naming> {
        let Some(input) = input else { return Ok(Naming::default()) };
        Ok(engine.reads.objects.name_input(&self.run_id, self.incarnation, input).await?)
    }

    fn event<R, H>(&self, engine: &Engine<R, H>, input: Value, stored_input_hash: Option<InputHash>) -> Event {
        Event::Submitted(Submitted {
            incarnation: self.incarnation,
            job: engine.next_job(),
            input,
            input_hash: self.spec.input_hash,
            stored_input_hash,
            now: engine.clock.now(),
            run_at: self.run_at,
        })
    }

    /// How the run ended, if it has, and if it was not removed meanwhile.
    async fn end_of<R, H>(&self, engine: &Engine<R, H>, run: &Run) -> Result<Option<RunOutcome>> {
        match run {
            Run::Ended(ended) => engine.reads.outcome(&self.run_id, ended).await,
            Run::Absent | Run::Active(_) => Ok(None),
        }
    }

    fn answer<R, H>(
        &self,
        engine: &Engine<R, H>,
        run: &Run,
        reason: Reason,
        end: Option<RunOutcome>,
    ) -> Result<SubmitOutcome> {
        let run_id = self.run_id.to_string();
        let newly_submitted = reason == Reason::Submitted;
        if reason == Reason::InputMismatch {
            return Err(Error::InputMismatch(run_id));
        }
        if newly_submitted {
            engine.queues.remember(self.spec.priority.unwrap_or(DEFAULT_PRIORITY));
            info!(run_id, input_len = self.input.len(), "run submitted");
        }
        let job_id = match run {
            Run::Active(run) => run.job.to_string(),
            Run::Ended(ended) => ended.final_job.to_string(),
            Run::Absent => unreachable!("a submission leaves a run"),
        };
        Ok(SubmitOutcome { run_id, newly_submitted, job_id, end })
    }
}

/// Deletes the object of an input that no record names.
async fn discard<R, H>(engine: &Engine<R, H>, input: Option<Value>) {
    if let Some(input) = input {
        engine.reads.objects.discard(&input).await;
    }
}

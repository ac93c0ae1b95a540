//! Step-output replay: an outcome is written down before its commit, and applied by a later delivery that finds it.

use bytes::Bytes;
use tracing::{info, warn};
use workflow_core::{Attempt, Outcome, Timestamp, Transition, Value};
use workflow_effects::{
    Commit, ObjectOwner, OutcomeRow, Read, RecordedOutcome, StagedEffects, decode_outcome, decode_outcome_row,
    encode_outcome, encode_outcome_row,
};

use super::delivery::{Attached, Delivery};
use super::hand::Abandoned;
use super::slots::Slot;
use crate::{Result, StepRunner, TerminalHook};

/// An outcome with more bytes of staged effects is not written down.
const MAX_STAGED: usize = 512 * 1024;

/// An outcome that an attempt has written down.
pub(super) struct Recorded {
    pub(super) attempt: Attempt,
    started_at: Timestamp,
    /// Where the rest is kept.
    content: Value,
    outcome: Outcome,
    staged: StagedEffects,
}

impl<R, H> Delivery<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Reads the outcome that is written down, if any is and the runtime replays. One that does not read counts for
    /// nothing: the step is executed.
    pub(super) async fn recorded(&self) -> Result<Option<Recorded>, Abandoned> {
        if !self.hand.engine.settings.replay {
            return Ok(None);
        }
        match self.hand.patiently(|| self.find_recorded()).await {
            Ok(recorded) => Ok(recorded),
            Err(Abandoned::Corrupt(error)) => {
                let error = &error as &dyn std::error::Error;
                warn!(run_id = %self.hand.run_id, error, "a recorded outcome does not read");
                Ok(None)
            }
            Err(abandoned) => Err(abandoned),
        }
    }

    async fn find_recorded(&self) -> Result<Option<Recorded>> {
        let (reads, run_id) = (&self.hand.engine.reads, &self.hand.run_id);
        let key = reads.keys.outcome(run_id, self.hand.incarnation);
        let Some(row) = reads.kv.get(&key, Read::Durable).await? else { return Ok(None) };
        let OutcomeRow { attempt, started_at, content } = decode_outcome_row(run_id, &row)?;
        if attempt.job != self.hand.job.job {
            return Ok(None);
        }
        let RecordedOutcome { outcome, staged } = decode_outcome(run_id, &reads.objects.get(&content).await?)?;
        Ok(Some(Recorded { attempt, started_at, content, outcome, staged }))
    }

    /// Applies the outcome that an earlier attempt has written down.
    pub(super) async fn replay(&mut self, recorded: Option<Recorded>, slot: &Slot) -> Result<Transition, Abandoned> {
        let Some(Recorded { attempt, started_at, content, outcome, staged }) = recorded else {
            unreachable!("only an outcome that was found is replayed")
        };
        info!(run_id = %self.hand.run_id, step = attempt.step, "an outcome is replayed");
        let result = match &outcome {
            Outcome::Succeed { result } => Some(self.value(result).await?),
            Outcome::Continue { .. } | Outcome::Fail { .. } | Outcome::Cancel { .. } => None,
        };
        self.started_at = Some(started_at);
        self.replayed = Some(attempt.deliveries);
        let inline = self.may_inline(slot);
        let attached = Attached { staged, result, written_down: true };
        let transition = self.apply(outcome, attached, self.hand.engine.clock.now(), inline).await?;
        self.replayed = None;
        self.hand.engine.reads.objects.discard(&content).await;
        Ok(transition)
    }

    /// Whether an outcome with these effects is written down.
    pub(super) fn is_written_down(&self, staged: &StagedEffects) -> bool {
        self.hand.engine.settings.replay && staged.bytes() <= MAX_STAGED
    }

    /// Writes an outcome down, if the runtime replays, and says where. A store that cannot take it now is no reason to
    /// wait: the commit of the outcome will.
    pub(super) async fn write_down(
        &self,
        outcome: &Outcome,
        staged: &StagedEffects,
    ) -> Result<Option<Value>, Abandoned> {
        if !self.is_written_down(staged) {
            return Ok(None);
        }
        let recorded = RecordedOutcome { outcome: outcome.clone(), staged: staged.clone() };
        match self.put_outcome(encode_outcome(&recorded)).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_closed() => Err(Abandoned::Closed),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(run_id = %self.hand.run_id, error, "an outcome is not written down");
                Ok(None)
            }
        }
    }

    async fn put_outcome(&self, content: Bytes) -> Result<Value> {
        let (engine, run_id, incarnation) = (&self.hand.engine, &self.hand.run_id, self.hand.incarnation);
        let owner = ObjectOwner::Run { run_id: run_id.clone(), incarnation };
        let content = engine.reads.objects.put(&owner, content).await?;
        let started_at = self.started_at.unwrap_or_else(|| engine.clock.now());
        let row = OutcomeRow { attempt: self.attempt(), started_at, content: content.clone() };
        let key = engine.reads.keys.outcome(run_id, incarnation);
        // Nobody compares this row: one that a late attempt has overwritten counts for nothing.
        let commit = Commit { puts: vec![(key, encode_outcome_row(&row))], ..Commit::default() };
        engine.apply(commit).await?;
        Ok(content)
    }
}

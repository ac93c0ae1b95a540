//! What the record of a run needs: what the run was submitted with, a doorbell or the slots of its keys, its places in
//! the indexes, and the objects that it names.

use bytes::Bytes;
use workflow_core::{ActiveRun, Incarnation, JobId, Phase, Run, RunId, RunState, Waiter};
use workflow_effects::{Index, IndexEntry, Spec, decode_run, decode_slot, decode_spec};

use super::ViolationKind;
use super::found::Found;
use super::reading::Store;
use crate::Result;
use crate::lower::{left_job, named_values, submission_places};
use crate::port::JobState;

impl Store {
    pub(super) async fn look_into_record(&self, run_id: &RunId, key: &Bytes, row: &Bytes) -> Result<Found> {
        let mut found = Found::of(run_id);
        let Some(run) = found.decoded(key, decode_run(run_id, Some(row))) else { return Ok(found) };
        let Some(of) = run.incarnation() else { return Ok(found) };
        let spec = self.spec(&mut found, run_id, of).await?;
        if let Run::Active(active) = &run {
            self.doorbell(&mut found, key, active, spec.as_ref()).await?;
            self.slots(&mut found, run_id, active).await?;
        }
        self.place(&mut found, run_id, &run).await?;
        self.objects(&mut found, (run_id, of), key, named_values(&run)).await?;
        Ok(found)
    }

    /// What the run was submitted with, and its places by that. A row that does not read is reported of the row.
    async fn spec(&self, found: &mut Found, run_id: &RunId, of: Incarnation) -> Result<Option<Spec>> {
        let keys = &self.reads.keys;
        let key = keys.spec(run_id, of);
        let Some(row) = self.get(&key).await? else {
            found.report(ViolationKind::Lost, &key, "what it was submitted with is gone");
            return Ok(None);
        };
        let Ok(spec) = decode_spec(run_id, &row) else { return Ok(None) };
        for place in submission_places(keys, run_id, of, &spec) {
            if self.get(&place).await?.is_none() {
                found.report(ViolationKind::Lost, &place, "it is not listed by its submission");
            }
        }
        Ok(Some(spec))
    }

    /// A run that goes on by a doorbell has one, in a queue that is claimed.
    async fn doorbell(&self, found: &mut Found, key: &Bytes, active: &ActiveRun, spec: Option<&Spec>) -> Result<()> {
        if !active.needs_doorbell() {
            return Ok(());
        }
        if !self.rings(&active.job).await? {
            found.report(ViolationKind::Stuck, key, format!("its doorbell, job {}, does not ring", active.job));
        }
        if let Some(priority) = spec.and_then(|spec| spec.priority) {
            let mark = self.reads.keys.priority(priority);
            if self.get(&mark).await?.is_none() {
                found.report(ViolationKind::Stuck, &mark, "nothing says that the queue of its priority is in use");
            }
        }
        Ok(())
    }

    /// Whether `job` will be delivered. A dead one is delivered only if somebody puts it back.
    pub(super) async fn rings(&self, job: &JobId) -> Result<bool> {
        Ok(matches!(self.port.job_state(job).await?, Some(JobState::Waiting | JobState::Claimed)))
    }

    /// The slots of all keys that a run waits for name it. One that does not read is reported of the slot.
    async fn slots(&self, found: &mut Found, run_id: &RunId, active: &ActiveRun) -> Result<()> {
        let Phase::Waiting { keys, .. } = &active.phase else { return Ok(()) };
        let waiter = Waiter { run_id: run_id.clone(), incarnation: active.incarnation, step: active.step };
        for key in keys {
            let row = self.reads.keys.slot(key);
            let slot = decode_slot(key, self.get(&row).await?.as_deref());
            if slot.is_ok_and(|slot| slot.waiter.as_ref() != Some(&waiter)) {
                let detail = format!("step {} waits for a key whose slot does not say so", active.step);
                found.report(ViolationKind::Stuck, &row, detail);
            }
        }
        Ok(())
    }

    /// The run has its place among those in its state. Without it a run that goes on is missed by whoever lists runs or
    /// looks for missing doorbells, and one that has ended by whoever removes it.
    async fn place(&self, found: &mut Found, run_id: &RunId, run: &Run) -> Result<()> {
        let (Some(incarnation), Some((state, at))) = (run.incarnation(), run.state()) else { return Ok(()) };
        let entry = IndexEntry { at, run_id: run_id.clone(), incarnation };
        let key = self.reads.keys.indexed(Index::State(state), &entry);
        match self.get(&key).await? {
            None => {
                let kind = match state {
                    RunState::Active | RunState::Waiting | RunState::Paused => ViolationKind::Stuck,
                    RunState::Ended(_) => ViolationKind::Orphan,
                };
                found.report(kind, &key, "it is not listed by its state");
            }
            Some(left) if left != left_job(run) => {
                found.report(
                    ViolationKind::Orphan,
                    &key,
                    "its place does not name the job that it left among the dead",
                );
            }
            Some(_) => {}
        }
        Ok(())
    }
}

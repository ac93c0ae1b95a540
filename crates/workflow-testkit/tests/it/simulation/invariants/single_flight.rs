//! O5: of the attempts of a step one commits, and what comes late changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use workflow_core::{Incarnation, Run, RunId};
use workflow_effects::{OwnedRow, StoredKey, decode_memo_entry};

use super::{Broken, Invariant, Now, Promises};
use crate::simulation::committed::{Change, Landed, Row, RunChange};
use crate::simulation::event::Event;

const NAME: &str = "O5 single flight";

/// Remembers what has committed.
pub(super) struct SingleFlight {
    promises: Promises,
    /// Each step, by how often its run had been brought back.
    steps: BTreeSet<(Incarnation, u32, u32)>,
    /// What each attempt was called.
    attempts: BTreeMap<u64, u32>,
}

impl SingleFlight {
    pub(super) fn new(promises: Promises) -> Self {
        let (steps, attempts) = Default::default();
        Self { promises, steps, attempts }
    }
}

impl Invariant for SingleFlight {
    fn landed(&mut self, landed: &Landed, now: &Now<'_>) -> Result<(), Broken> {
        for run in &landed.runs {
            self.check_revision(run).map_err(|what| Broken::new(NAME, Some(&run.run_id), what))?;
        }
        for change in &landed.changes {
            match &change.row {
                Row::Log { call, step, attempt } => self.check_log(*call, *step, *attempt, landed, now)?,
                Row::Stored(StoredKey::Owned(run_id, _, OwnedRow::Memo(_, key))) => check_memo(run_id, key, change)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn told(&mut self, event: &Event, _: &Now<'_>) -> Result<(), Broken> {
        if let Event::Started(attempt) = event {
            self.attempts.insert(attempt.number, attempt.attempts);
        }
        Ok(())
    }
}

impl SingleFlight {
    /// Each commit that writes a record goes on from the record before, for each of its steps.
    fn check_revision(&self, run: &RunChange) -> Result<(), String> {
        let (before, after) = (&run.before, &run.after);
        let transitions = if self.promises.pipelined { u64::from(steps_of(run).max(1)) } else { 1 };
        match (before.incarnation(), after.incarnation()) {
            (Some(of), Some(to)) if of != to => Err("one submission takes the place of another".to_owned()),
            (Some(_), Some(_)) if after.revision() != before.revision() + transitions => {
                let (before, after) = (before.revision(), after.revision());
                Err(format!("a commit that knew another record: revision {after} follows revision {before}"))
            }
            _ => Ok(()),
        }
    }

    /// What an attempt staged is applied by the commit that moves its run on, once.
    fn check_log(&mut self, call: u64, step: u32, attempt: u64, landed: &Landed, now: &Now<'_>) -> Result<(), Broken> {
        let of_call = |run: &&RunChange| run.before.incarnation().and_then(|of| now.store.call(of)) == Some(call);
        let Some(run) = landed.runs.iter().find(of_call) else {
            let what = format!("what attempt a{attempt} of step {step} of call {call} stages is applied by itself");
            return Err(Broken::new(NAME, None, what));
        };
        let broken = |what: String| Err(Broken::new(NAME, Some(&run.run_id), what));
        let Run::Active(before) = &run.before else {
            return broken(format!("a{attempt} of step {step} commits and the run was not active"));
        };
        if !(before.step..before.step + steps_of(run).max(1)).contains(&step) {
            return broken(format!("a{attempt} of step {step} commits when the run is at step {}", before.step));
        }
        // Of an outcome that was written down, another attempt applies the effects.
        let is_first = step == before.step;
        let is_over = is_first && self.attempts.get(&attempt).is_some_and(|number| *number <= before.attempts.used);
        if is_over && !self.promises.replay {
            return broken(format!("a{attempt} of step {step} commits after it was counted as lost"));
        }
        match self.steps.insert((before.incarnation, before.redrive, step)) {
            true => Ok(()),
            false => broken(format!("a{attempt} of step {step} commits, and another attempt has")),
        }
    }
}

/// How many steps the commit has moved an active run on by.
fn steps_of(run: &RunChange) -> u32 {
    match (&run.before, &run.after) {
        (Run::Active(before), Run::Active(after)) => after.step.saturating_sub(before.step),
        _ => 0,
    }
}

fn check_memo(run_id: &RunId, key: &str, change: &Change) -> Result<(), Broken> {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
    let revision = |bytes| decode_memo_entry(run_id, key, bytes).map_or(0, |entry| entry.revision);
    match (revision(before), revision(after)) {
        (before, after) if after < before => {
            let what = format!("a memo of revision {before} is overwritten by a late attempt of revision {after}");
            Err(Broken::new(NAME, Some(run_id.as_str()), what))
        }
        _ => Ok(()),
    }
}

//! What there is when everything has come to rest.

use std::collections::BTreeMap;

use bytes::Bytes;
use workflow_runtime::{RunOutcome, RunStatus};

use crate::Sim;

/// A deployment at rest: no step or hook is under way or due, and no fault comes any more. Runs have ended, or wait.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rest {
    /// Every run by its id.
    pub runs: BTreeMap<String, RunStatus>,
    /// The ends of those that have ended.
    pub ends: BTreeMap<String, RunOutcome>,
    /// The application's key-value pairs.
    pub entries: BTreeMap<Bytes, Bytes>,
    /// What was told to [`Sim::outside`], in order.
    pub outside: Vec<String>,
}

impl Rest {
    pub(super) fn of(sim: &Sim, runs: BTreeMap<String, (RunStatus, Option<RunOutcome>)>) -> Self {
        let ends = runs.iter().filter_map(|(run_id, (_, end))| Some((run_id.clone(), end.clone()?))).collect();
        Self {
            ends,
            runs: runs.into_iter().map(|(run_id, (status, _))| (run_id, status)).collect(),
            entries: sim.entries(b"").into_iter().collect(),
            outside: sim.outside().done(),
        }
    }

    /// How often `what` was done outside.
    pub fn times(&self, what: &str) -> usize {
        self.outside.iter().filter(|done| *done == what).count()
    }
}

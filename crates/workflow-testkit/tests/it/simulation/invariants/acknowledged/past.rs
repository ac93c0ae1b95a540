//! How every run has been, commit by commit: answers are held against it.

use std::collections::BTreeMap;

use workflow_core::Run;

use crate::simulation::committed::RunChange;

/// The records that were ever durable.
#[derive(Default)]
pub(super) struct Past {
    /// How each run was from which commit on.
    states: BTreeMap<String, Vec<(u64, Run)>>,
}

impl Past {
    /// Commit `number` has changed a run.
    pub(super) fn land(&mut self, number: u64, run: &RunChange) {
        self.states.entry(run.run_id.clone()).or_default().push((number, run.after.clone()));
    }

    /// The ids that there ever was a run of.
    pub(super) fn run_ids(&self) -> impl Iterator<Item = &str> {
        self.states.keys().map(String::as_str)
    }

    /// Since which commit the run is as it is.
    pub(super) fn since(&self, run_id: &str) -> u64 {
        self.states.get(run_id).and_then(|states| states.last()).map_or(0, |(number, _)| *number)
    }

    /// How the run was after commit `asked`, and how it has become since.
    pub(super) fn from(&self, run_id: &str, asked: u64) -> impl Iterator<Item = &Run> {
        let states = self.states.get(run_id).map_or(&[][..], Vec::as_slice);
        let first = states.partition_point(|(landed, _)| *landed <= asked);
        let before = first.checked_sub(1).map_or(&Run::Absent, |before| &states[before].1);
        std::iter::once(before).chain(states[first..].iter().map(|(_, run)| run))
    }
}

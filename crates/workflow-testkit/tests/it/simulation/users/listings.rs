//! What users list and count, and how they are answered.

use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use workflow_runtime::port::Clock;
use workflow_runtime::{Result, RunFilter, RunOrder, RunState};

use super::{Runtime, Users};
use crate::simulation::answer::{Answer, KeptSignal, Listed};
use crate::simulation::committed::Committed;
use crate::simulation::workload::KINDS;

/// How far back a filter looks.
const MINUTE_MS: u64 = 60_000;

impl Users {
    /// All runs, or those in a state, with a header, of a time.
    pub(super) fn filter(&self) -> RunFilter {
        let states = [RunState::Active, RunState::Waiting, RunState::Paused, RunState::Succeeded, RunState::Failed];
        let state = match self.drawn.below(8) {
            0 | 1 => None,
            2 => Some(RunState::Cancelled),
            state => Some(states[state as usize - 3]),
        };
        RunFilter {
            header: (self.drawn.below(4) == 0).then(|| self.header()),
            state,
            since: self.time(),
            since_before: self.time(),
            submitted: self.time(),
            submitted_before: self.time(),
        }
    }

    /// One that several runs have, or one of one run.
    fn header(&self) -> (String, String) {
        let calls = self.witness.look(Committed::calls);
        match calls.get(self.drawn.below(2 * calls.len() as u64) as usize) {
            Some(call) => ("call".to_owned(), call.to_string()),
            None => ("kind".to_owned(), self.drawn.below(KINDS).to_string()),
        }
    }

    fn time(&self) -> Option<SystemTime> {
        let now: SystemTime = self.disk.clock().now().into();
        (self.drawn.below(8) == 0).then(|| now - Duration::from_millis(self.drawn.below(MINUTE_MS)))
    }

    pub(super) fn order(&self) -> RunOrder {
        if self.drawn.below(2) == 0 { RunOrder::OldestFirst } else { RunOrder::NewestFirst }
    }
}

pub(super) async fn listed(runtime: &Runtime, filter: &RunFilter, order: RunOrder) -> Result<Answer> {
    let runs = runtime.runs(filter.clone(), order);
    Ok(Answer::Listed(runs.map_ok(|run| Listed::of(&run)).try_collect().await?))
}

pub(super) async fn kept(runtime: &Runtime, key: &str) -> Result<Answer> {
    let signals = runtime.buffered_signals(key);
    Ok(Answer::Kept(signals.map_ok(KeptSignal::of).try_collect().await?))
}

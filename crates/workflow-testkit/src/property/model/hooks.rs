//! Hooks: which ends there were, and which of them a hook was told of.

use std::collections::BTreeMap;

use workflow_runtime::RunOutcome;

use super::{Model, Verdict};

/// What the hook was told, and what it may have been told of runs that are gone.
pub(super) struct Hooks {
    /// By run id.
    told: BTreeMap<String, Vec<RunOutcome>>,
    gone: BTreeMap<String, Ends>,
    /// So many deliveries a call of the hook survives.
    attempts: u32,
    faults: u32,
}

/// The ends of a run: of its submission, and one for each time it was brought back.
#[derive(Debug, Default)]
pub(super) struct Ends {
    seen: Vec<RunOutcome>,
    /// It may have ended, and have been brought back or removed, before anybody looked.
    may_be_more: bool,
}

impl Hooks {
    pub(super) fn new(attempts: u32) -> Self {
        Self { told: BTreeMap::new(), gone: BTreeMap::new(), attempts, faults: 0 }
    }

    /// The hook is called.
    pub(super) fn told(&mut self, end: &RunOutcome) {
        self.told.entry(end.run_id.clone()).or_default().push(end.clone());
    }

    /// A fault may have used up an attempt of a call.
    pub(super) fn fault(&mut self) {
        self.faults += 1;
    }

    /// The run is gone, which has ended like this.
    pub(super) fn gone(&mut self, run_id: &str, ends: Ends) {
        let gone = self.gone.entry(run_id.to_owned()).or_default();
        gone.seen.extend(ends.seen);
        gone.may_be_more |= ends.may_be_more;
    }
}

impl Ends {
    pub(super) fn see(&mut self, end: &RunOutcome) {
        self.seen.push(end.clone());
    }

    pub(super) fn miss(&mut self) {
        self.may_be_more = true;
    }
}

impl Model {
    /// After every run was looked at: the hook was told of no other ends than those that were seen.
    pub(in crate::property) fn hooks_were_told_the_truth(&self) -> Verdict {
        for (run_id, told) in &self.hooks.told {
            let ends = self.ends(run_id);
            // Of a run that the test has not submitted, it knows nothing.
            if ends.is_empty() || ends.iter().any(|ends| ends.may_be_more) {
                continue;
            }
            if let Some(end) = told.iter().find(|end| !ends.iter().any(|ends| ends.seen.contains(end))) {
                return Err(format!("the hook of {run_id} was told of an end that did not happen: {end:?}"));
            }
        }
        Ok(())
    }

    /// Everything rests: the hook was told of each end that it observes, as often as a run has ended so.
    pub(in crate::property) fn hooks_were_told(&self, observes: impl Fn(&RunOutcome) -> bool) -> Verdict {
        // Faults may have used up all attempts of a call.
        if self.hooks.faults >= self.hooks.attempts {
            return Ok(());
        }
        for run_id in self.runs.keys().chain(self.hooks.gone.keys()) {
            let told = self.hooks.told.get(run_id).map_or(&[][..], Vec::as_slice);
            let seen: Vec<RunOutcome> = self.ends(run_id).iter().flat_map(|ends| ends.seen.clone()).collect();
            for end in seen.iter().filter(|end| observes(end)) {
                let (told, seen) = (times(told, end), times(&seen, end));
                if told < seen {
                    return Err(format!(
                        "the hook of {run_id} was told {told} times of what happened {seen} times: {end:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The ends of all runs of this id.
    fn ends(&self, run_id: &str) -> Vec<&Ends> {
        let run = self.runs.get(run_id).map(|run| &run.ends);
        run.into_iter().chain(self.hooks.gone.get(run_id)).collect()
    }
}

fn times(ends: &[RunOutcome], end: &RunOutcome) -> usize {
    ends.iter().filter(|other| *other == end).count()
}

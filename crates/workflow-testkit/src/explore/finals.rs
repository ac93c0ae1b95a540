//! What an execution leaves behind, and how two differ in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::TryStreamExt;
use workflow_runtime::{
    NoopTerminalHook, RunFilter, RunOrder, Step, StepError, StepOutcome, StepRunner, WorkflowRuntime,
};

use crate::sim::Sim;

/// What is left when everything has come to an end.
#[derive(Debug, Default)]
pub(crate) struct Finals {
    /// How each run is, in words.
    runs: BTreeMap<String, String>,
    /// The application's keys.
    entries: BTreeMap<String, String>,
    /// How often each thing was done outside.
    outside: BTreeMap<String, usize>,
    /// What is wrong with the store.
    pub(crate) violations: Vec<String>,
}

/// Executes nothing: it is there to read.
struct Idle;

impl StepRunner for Idle {
    async fn run_step(&self, _: &Step) -> Result<StepOutcome, StepError> {
        std::future::pending().await
    }
}

impl Finals {
    /// Reads what `sim` has left behind.
    pub(crate) async fn of(sim: &Sim) -> Result<Self, String> {
        sim.begin_process();
        let mut finals = Self::default();
        for name in sim.queue_names() {
            finals.read(sim, &name).await.map_err(|error| format!("what is left does not read: {error}"))?;
        }
        for (key, value) in sim.entries(b"") {
            finals.entries.insert(text(&key), text(&value));
        }
        for done in sim.outside().done() {
            *finals.outside.entry(done).or_default() += 1;
        }
        Ok(finals)
    }

    async fn read(&mut self, sim: &Sim, queue_name: &str) -> workflow_runtime::Result<()> {
        let queue = Arc::new(sim.disk().open());
        let runtime = WorkflowRuntime::over(queue, sim.world.objects.clone(), Idle, NoopTerminalHook)
            .queue_name(queue_name)
            .build()?;
        let runs: Vec<_> = runtime.runs(RunFilter::default(), RunOrder::OldestFirst).try_collect().await?;
        for run in runs {
            let end = match runtime.run_end(&run.run_id).await? {
                Some(end) => {
                    let result = end.result.as_deref().map(text).unwrap_or_default();
                    format!("{:?} {}{}", end.status, end.error.unwrap_or_default(), result)
                }
                None => format!("{:?} at step {}", run.state, run.step),
            };
            self.runs.insert(run.run_id, end.trim_end().to_owned());
        }
        self.violations.extend(runtime.check().await?.iter().map(ToString::to_string));
        Ok(())
    }

    /// What is wrong with this, and what is other than `expected`, in words.
    pub(crate) fn differences(&self, expected: &Self) -> Vec<String> {
        let mut problems = self.violations.clone();
        problems.extend(differing(&self.runs, &expected.runs, "run"));
        problems.extend(differing(&self.entries, &expected.entries, "key"));
        let all: BTreeSet<&String> = self.outside.keys().chain(expected.outside.keys()).collect();
        for done in all {
            let times = |finals: &Self| finals.outside.get(done).copied().unwrap_or(0);
            if times(self) != times(expected) {
                problems.push(format!("outside: {done}, done {} times instead of {}", times(self), times(expected)));
            }
        }
        problems
    }
}

fn differing<V: PartialEq + Debug>(
    found: &BTreeMap<String, V>,
    expected: &BTreeMap<String, V>,
    what: &str,
) -> Vec<String> {
    let all: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differ = all.into_iter().filter(|name| found.get(*name) != expected.get(*name));
    let shown = |value: Option<&V>| value.map_or("nothing".to_owned(), |value| format!("{value:?}"));
    differ
        .map(|name| format!("{what} {name}: {} instead of {}", shown(found.get(name)), shown(expected.get(name))))
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

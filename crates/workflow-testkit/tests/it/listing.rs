//! What is promised of listings and counts of runs, in virtual time on the in-memory queue.

mod cost;
mod filters;
mod moving;
mod property;

use futures::TryStreamExt;
use workflow_runtime::{RunFilter, RunOrder, RunState, RunStatus};

use crate::scripted::Runtime;

/// Every state.
pub(crate) const STATES: [RunState; 6] =
    [RunState::Active, RunState::Waiting, RunState::Paused, RunState::Succeeded, RunState::Failed, RunState::Cancelled];

/// The runs in this state.
fn of(state: RunState) -> RunFilter {
    RunFilter { state: Some(state), ..RunFilter::default() }
}

async fn listed(runtime: &Runtime, filter: RunFilter, order: RunOrder) -> Vec<RunStatus> {
    runtime.runs(filter, order).try_collect().await.unwrap()
}

async fn ids(runtime: &Runtime, filter: RunFilter, order: RunOrder) -> Vec<String> {
    listed(runtime, filter, order).await.into_iter().map(|run| run.run_id).collect()
}

//! What is promised of a redrive, from whatever end, in virtual time on the in-memory queue.

mod cancelled;
mod crashes;
mod dead_jobs;
mod failed;
mod hooks;
mod signals;
mod steps;

use workflow_runtime::{RedriveOptions, RedriveOutcome};

use crate::scripted::{RUN, Runtime};

/// Brings the run back from the step that ended it.
async fn redrive(runtime: &Runtime) {
    assert_eq!(runtime.redrive(RUN, RedriveOptions::default()).await.unwrap(), RedriveOutcome::Redriven);
}

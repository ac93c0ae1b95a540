//! Bringing paths of the index up to date: submit a run where one is needed, and wait for its end.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use futures::stream::{self, StreamExt};
use tokio_util::sync::CancellationToken;
use workflow_runtime::{NoopTerminalHook, RunOutcome, RunSpec, TerminalStatus, WorkflowRuntime};

use crate::catalog::{self, Catalog, Known, Visible};
use crate::content;
use crate::document::Document;
use crate::index::{self, Latest};
use crate::indexer::Indexer;
use crate::report::Report;
use crate::state::{Ending, State};
use crate::totals::Change;

pub(crate) type Runtime = WorkflowRuntime<Indexer, NoopTerminalHook>;

/// What is to become of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    /// The index is to hold what the file holds.
    Index(String),
    /// The index is to hold nothing of it.
    Forget(String),
    /// The run that an earlier command left is to end; this one did not ask for it.
    Finish(String),
}

/// How [`work_off`] came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worked {
    Done,
    Interrupted,
}

/// Runs steps until all `jobs` are done or `stop` fires, which lets the steps in hand come to their end.
pub(crate) async fn work_off(
    runtime: &Runtime,
    catalog: &Catalog,
    jobs: Vec<Job>,
    report: &Arc<Report>,
    stop: &CancellationToken,
) -> anyhow::Result<Worked> {
    let drain = CancellationToken::new();
    let runner = runtime.spawn(drain.clone().cancelled_owned());
    let mut stopped = pin!(runner.wait());
    // Twice as many as there are steps at work: while some wait for their submission, the others have something to do.
    let in_flight = runtime.settings().max_concurrent_steps.saturating_mul(2);
    let mut results = pin!(stream::iter(jobs).map(|job| do_job(runtime, catalog, job)).buffer_unordered(in_flight));
    let worked = loop {
        tokio::select! {
            biased;
            // It stops by itself only with an error, for example when the store was taken away.
            end = &mut stopped => {
                end?;
                return Err(anyhow!("the runtime stopped while runs were unfinished"));
            }
            () = stop.cancelled() => break Ok(Worked::Interrupted),
            result = results.next() => match result {
                None => break Ok(Worked::Done),
                Some(Err(error)) => break Err(error),
                Some(Ok(change)) => report.job_done(&change),
            },
        }
    };
    drain.cancel();
    stopped.await?;
    worked
}

async fn do_job(runtime: &Runtime, catalog: &Catalog, job: Job) -> anyhow::Result<Change> {
    let (Job::Index(path) | Job::Forget(path) | Job::Finish(path)) = &job;
    let mut known = catalog.known(path);
    let mut resumed = None;
    if known.is_running {
        let document = Document { path: path.clone(), generation: known.generation };
        resumed = Some(ending(runtime.wait(&document.run_id()).await?)?);
        known.visible = catalog::record(&runtime.kv(), path).await?.map(Visible::from);
    }
    let was_resumed = resumed.is_some();
    let ending = match &job {
        Job::Finish(_) => resumed,
        Job::Index(_) => bring_up_to_date(runtime, path, known, resumed).await?,
        Job::Forget(_) if resumed == Some(Ending::Forgotten) => resumed,
        Job::Forget(_) => Some(run(runtime, path, known.generation, State::forget).await?),
    };
    let is_earlier = matches!(job, Job::Finish(_));
    Ok(Change { path: path.clone(), is_earlier, resumed: was_resumed, ending })
}

/// Indexes the file unless the index holds the same already: none, or what the run that was waited for has done.
async fn bring_up_to_date(
    runtime: &Runtime,
    path: &str,
    known: Known,
    resumed: Option<Ending>,
) -> anyhow::Result<Option<Ending>> {
    if let Some(visible) = known.visible {
        let file = path.to_owned();
        let Visible { size, modified_ns, hash } = visible;
        let look = move || content::is_unchanged(Path::new(&file), size, modified_ns, hash.as_deref());
        match tokio::task::spawn_blocking(look).await? {
            // The index is right already, even where that run has failed.
            Ok(true) => return Ok(resumed.filter(|ending| !matches!(ending, Ending::Failed { .. }))),
            Ok(false) => {}
            Err(error) => return Ok(Some(Ending::Failed { reason: format!("cannot read the file: {error}") })),
        }
    }
    run(runtime, path, known.generation, State::index).await.map(Some)
}

/// Submits the run of the generation after `generation`, and waits for its end.
async fn run(runtime: &Runtime, path: &str, generation: u64, state: fn(Document) -> State) -> anyhow::Result<Ending> {
    let document = Document { path: path.to_owned(), generation: generation + 1 };
    let run_id = document.run_id();
    let latest = serde_json::to_vec(&Latest { document: document.clone(), ended: false, forgotten: false })?;
    runtime
        .submit(RunSpec {
            run_id: Some(run_id.clone()),
            input: serde_json::to_vec(&state(document))?,
            kv_writes: [(index::generation_key(path).into_bytes(), latest)].into(),
            ..RunSpec::default()
        })
        .await?;
    ending(runtime.wait(&run_id).await?)
}

/// What a run came to.
fn ending(end: RunOutcome) -> anyhow::Result<Ending> {
    if end.status != TerminalStatus::Succeeded {
        return Ok(Ending::Failed { reason: end.error.unwrap_or_else(|| "no reason given".to_owned()) });
    }
    let result = end.result.unwrap_or_default();
    serde_json::from_slice(&result).with_context(|| format!("cannot read the result of run {}", end.run_id))
}

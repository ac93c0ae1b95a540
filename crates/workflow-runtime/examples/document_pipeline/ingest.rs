//! `ingest`: submit a run per file, let them run, wait for their ends, and say what was done.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, bail, ensure};
use futures::stream::{self, FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;
use workflow_runtime::{NoopTerminalHook, RunOutcome, RunSpec, TerminalStatus, WorkflowRuntime};

use crate::cli::IngestArgs;
use crate::document::Document;
use crate::index;
use crate::indexer::Indexer;
use crate::progress::{Progress, say};
use crate::state::{State, Summary};
use crate::store_url;
use crate::walk::walk;

/// Submissions in flight. Each waits until it is durable; together they share the wait.
const SUBMISSIONS: usize = 64;

type Runtime = WorkflowRuntime<Indexer, NoopTerminalHook>;

/// Indexes every text file below the folders of `args`.
pub(crate) async fn ingest(args: IngestArgs) -> anyhow::Result<()> {
    let started = Instant::now();
    let store = create_store(&args.store)?;
    let walk = walk(&args.folders, &store)?;
    let progress = Arc::new(Progress::new(args.verbose));
    for (path, reason) in &walk.skipped {
        progress.skipped(path, reason);
    }

    let storage = workflow_runtime::open(&store_url(&store)?).await?;
    let runtime = storage
        .runtime(Indexer::new(Arc::clone(&progress)), NoopTerminalHook)
        .max_concurrent_steps(args.concurrency)
        .build()?;
    let indexed = index_files(&runtime, walk.files, &progress).await;
    drop(runtime);
    let closed = storage.close().await;

    // Why indexing stopped says more than why a store could not be closed after that.
    let totals = indexed?;
    closed?;
    totals.say(&progress, started);
    ensure!(totals.failed == 0, "{} of {} runs failed", totals.failed, totals.runs());
    Ok(())
}

/// Submits all files before the first step runs, so that a run which is found unfinished was left so
/// by an earlier process; then runs steps until all of them have ended.
async fn index_files(runtime: &Runtime, files: BTreeSet<PathBuf>, progress: &Progress) -> anyhow::Result<Totals> {
    let mut totals = Totals::default();
    let unfinished = submit_all(runtime, files, progress, &mut totals).await?;
    let Totals { new, resumed, already_done, .. } = totals;
    say(&format!("{} files: {new} new, {resumed} to resume, {already_done} already done", totals.runs()));

    let stop = CancellationToken::new();
    let runner = runtime.spawn(stop.clone().cancelled_owned());
    let mut stopped = pin!(runner.wait());
    let followed = tokio::select! {
        biased;
        // It stops by itself only with an error, for example when another process took the store.
        end = &mut stopped => {
            end?;
            bail!("the runtime stopped while runs were unfinished");
        }
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted: the same command goes on from here")),
        followed = follow(runtime, unfinished, progress, &mut totals) => followed,
    };
    stop.cancel();
    stopped.await?;
    followed.map(|()| totals)
}

/// Submits a run per file, and gives those that have not ended yet.
async fn submit_all(
    runtime: &Runtime,
    files: BTreeSet<PathBuf>,
    progress: &Progress,
    totals: &mut Totals,
) -> anyhow::Result<Vec<Run>> {
    let mut unfinished = Vec::new();
    let mut submissions = pin!(stream::iter(files).map(|file| submit(runtime, file)).buffer_unordered(SUBMISSIONS));
    while let Some(submission) = submissions.next().await {
        match submission? {
            Submission::Skipped { file, reason } => progress.skipped(&file, &reason),
            Submission::New(run) => {
                totals.new += 1;
                unfinished.push(run);
            }
            Submission::Unfinished(run) => {
                totals.resumed += 1;
                unfinished.push(run);
            }
            Submission::Ended(run, end) => {
                totals.already_done += 1;
                // Its end was printed by the process that saw it; a failure is worth repeating.
                match summary(&end)? {
                    Some(summary) => totals.sections += summary.sections,
                    None => totals.count_failure(&run, &end, progress),
                }
            }
        }
    }
    Ok(unfinished)
}

/// A run that this process has submitted or found.
struct Run {
    id: String,
    path: String,
}

/// What became of a file.
enum Submission {
    Skipped { file: PathBuf, reason: String },
    New(Run),
    Unfinished(Run),
    Ended(Run, RunOutcome),
}

async fn submit(runtime: &Runtime, file: PathBuf) -> anyhow::Result<Submission> {
    let Some(path) = file.to_str().map(str::to_owned) else {
        let reason = "its path is not UTF-8".to_owned();
        return Ok(Submission::Skipped { file, reason });
    };
    let document = match read_document(&path).await {
        Ok(document) => document,
        Err(error) => {
            let reason = error.to_string();
            return Ok(Submission::Skipped { file, reason });
        }
    };
    let id = document.id();
    let latest = (index::latest_key(&path), id.clone().into_bytes());
    let submitted = runtime
        .submit(RunSpec {
            run_id: Some(id.clone()),
            input: serde_json::to_vec(&State::first(document))?,
            kv_writes: [latest].into(),
            ..RunSpec::default()
        })
        .await?;
    let run = Run { id, path };
    Ok(match submitted.end {
        Some(end) => Submission::Ended(run, end),
        None if submitted.newly_submitted => Submission::New(run),
        None => Submission::Unfinished(run),
    })
}

/// The content is let go at once: many submissions are in flight, and a run reads its file itself.
async fn read_document(path: &str) -> io::Result<Document> {
    let content = tokio::fs::read(path).await?;
    Ok(Document::new(path, &content))
}

/// Waits until every run has ended, and prints each end as it comes.
async fn follow(runtime: &Runtime, runs: Vec<Run>, progress: &Progress, totals: &mut Totals) -> anyhow::Result<()> {
    let mut ends: FuturesUnordered<_> = runs
        .into_iter()
        .map(|run| async move {
            let end = runtime.wait(&run.id).await;
            (run, end)
        })
        .collect();
    while let Some((run, end)) = ends.next().await {
        let end = end?;
        match summary(&end)? {
            Some(summary) => {
                totals.sections += summary.sections;
                progress.run_succeeded(&summary);
            }
            None => totals.count_failure(&run, &end, progress),
        }
    }
    Ok(())
}

/// The result of a run that succeeded.
fn summary(end: &RunOutcome) -> anyhow::Result<Option<Summary>> {
    if end.status != TerminalStatus::Succeeded {
        return Ok(None);
    }
    let result = end.result.as_deref().unwrap_or_default();
    serde_json::from_slice(result).map(Some).with_context(|| format!("cannot read the result of run {}", end.run_id))
}

/// What an `ingest` has done.
#[derive(Default)]
struct Totals {
    new: u64,
    resumed: u64,
    already_done: u64,
    failed: u64,
    sections: u64,
}

impl Totals {
    fn runs(&self) -> u64 {
        self.new + self.resumed + self.already_done
    }

    fn count_failure(&mut self, run: &Run, end: &RunOutcome, progress: &Progress) {
        self.failed += 1;
        let reason = end.error.as_deref().unwrap_or("no reason given");
        progress.run_failed(&run.path, reason);
    }

    fn say(&self, progress: &Progress, started: Instant) {
        let lines = [
            ("files", self.runs()),
            ("runs new", self.new),
            ("runs resumed", self.resumed),
            ("runs already done", self.already_done),
            ("runs failed", self.failed),
            ("sections", self.sections),
            ("sections computed", progress.sections_computed()),
            ("sections reused", progress.sections_reused()),
        ];
        for (name, value) in lines {
            say(&format!("{name:<20}{value:>8}"));
        }
        let seconds = started.elapsed().as_secs_f64();
        say(&format!("{:<20}{seconds:>8.1}", "seconds"));
    }
}

/// Makes the folder of the store, and gives its canonical path.
fn create_store(store: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(store)
        .and_then(|()| fs::canonicalize(store))
        .with_context(|| format!("cannot make {}", store.display()))
}

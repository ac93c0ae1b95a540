//! One opening of the store to write: open, find out what there is, work, close, and tell how it ended.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::poll;
use tokio_util::sync::CancellationToken;
use workflow_runtime::{HistoryLevel, NoopTerminalHook, RetryPolicy};

use crate::catalog::Catalog;
use crate::cli::Options;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::indexer::Indexer;
use crate::report::Report;
use crate::store;
use crate::work::{Job, Worked, work_off};

/// A file that cannot be read now may be readable in a few seconds; after some of those its run gives up.
const ATTEMPTS: u32 = 10;
const LONGEST_WAIT: Duration = Duration::from_secs(4);
/// How long the steps in hand may go on after Ctrl-C. Only one that reads a very long file takes as long.
const GRACE: Duration = Duration::from_secs(5);

/// Opens `store`, does the jobs that `plan` finds in what the store knows, and closes it again. A disk that is full
/// ends it at once.
pub(crate) async fn run(
    options: &Options,
    store: &Path,
    report: &Arc<Report>,
    plan: impl FnOnce(&Catalog) -> Result<Vec<Job>, Failure>,
) -> anyhow::Result<()> {
    tokio::select! {
        ended = work(options, store, report, plan) => ended,
        () = store::until_disk_is_full(store, || report.steps()) => Err(Failure::disk_full(store).into()),
    }
}

async fn work(
    options: &Options,
    store: &Path,
    report: &Arc<Report>,
    plan: impl FnOnce(&Catalog) -> Result<Vec<Job>, Failure>,
) -> anyhow::Result<()> {
    let stop = stop_on_interrupt(report);
    let storage = store::open_writer(store).await?;
    // Steps have no timeout: one may read a file of any length, after it has waited for its turn.
    let runtime = storage
        .runtime(Indexer::new(Arc::clone(report)), NoopTerminalHook)
        .max_concurrent_steps(options.concurrency)
        .max_attempts_per_step(ATTEMPTS)
        .retry_policy(RetryPolicy { cap: LONGEST_WAIT, ..RetryPolicy::default() })
        .shutdown_grace(GRACE)
        .history(HistoryLevel::Full)
        .build()?;
    let worked = async {
        let catalog = Catalog::load(&runtime).await?;
        let jobs = plan(&catalog)?;
        report.begin(&jobs);
        work_off(&runtime, &catalog, jobs, report, &stop).await
    }
    .await;
    drop(runtime);
    let closed = storage.close().await;

    // Why the work stopped says more than why a store could not be closed after that.
    let worked = worked?;
    closed?;
    let totals = report.end();
    match (worked, totals.failed) {
        (Worked::Done, 0) => Ok(()),
        (Worked::Done, failed) => Err(Failure::new(FAILED, format!("{failed} files failed, see above")).into()),
        (Worked::Interrupted, _) => {
            let left = totals.left();
            let line = format!("interrupted with {left} files left; the same command goes on from here");
            Err(Failure::new(INTERRUPTED, line).into())
        }
    }
}

/// Fires at the first Ctrl-C. The second one ends the process at once, which loses nothing that was committed.
fn stop_on_interrupt(report: &Arc<Report>) -> CancellationToken {
    let stop = CancellationToken::new();
    let (fired, report) = (stop.clone(), Arc::clone(report));
    tokio::spawn(async move {
        // Where there are no signals to wait for, there are none to heed.
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        fired.cancel();
        // It listens from its first poll on: a Ctrl-C that answers the note is not missed.
        let mut second = pin!(tokio::signal::ctrl_c());
        if poll!(second.as_mut()).is_pending() {
            let grace = GRACE.as_secs();
            report.note(&format!("finishing the steps in hand, for {grace} s at most; Ctrl-C again stops at once"));
            let _ = second.await;
        }
        report.note("stopped at once; the same command goes on from here");
        std::process::exit(i32::from(INTERRUPTED));
    });
    stop
}

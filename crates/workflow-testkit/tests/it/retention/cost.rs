//! Removing runs costs few commits, and nothing while nothing is over.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use workflow_runtime::port::QueuePort;
use workflow_runtime::{CancelOutcome, RunFilter, RunPhase, RunState, StepError};

use crate::scripted::{Runtime, Scripted, World, settle_down, submit};
use crate::watched::Watched;

const MINUTE: Duration = Duration::from_secs(60);

/// So many runs, or as many as the environment says in `RUNS`.
fn runs(count: usize) -> usize {
    std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(count)
}

fn never_called() -> Scripted {
    Scripted::new(|step| async move { panic!("step {} is called", step.step_number) })
}

async fn for_each_run(count: usize, act: impl AsyncFn(String)) {
    stream::iter(0..count).map(|number| act(format!("run-{number}"))).buffer_unordered(64).collect::<Vec<_>>().await;
}

/// Submits so many runs and cancels them.
async fn cancelled(runtime: &Runtime, count: usize) {
    for_each_run(count, async |run_id| {
        submit(runtime, &run_id).await;
        assert_eq!(runtime.cancel(&run_id, None).await.unwrap(), CancelOutcome::Ended);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_ended_runs_are_removed_in_few_commits() {
    let count = runs(1_000);
    let world = World::without_hook(never_called()).with(|s| s.retention = Some(10 * MINUTE));
    let port = Watched::new(Arc::new(world.queue.clone()));
    let runtime = world.over(Arc::new(port.clone()));
    cancelled(&runtime, count).await;
    let _running = runtime.spawn(std::future::pending());
    tokio::time::sleep(5 * MINUTE).await;
    port.take();
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
    let log = port.take();
    // For each page one that removes the records and one that removes the rest. The first page is not full: it ends with
    // the runs that are over when the sweep looks.
    assert!(log.commits.len() <= 2 * (count.div_ceil(256) + 1), "{} commits", log.commits.len());
    assert!(log.gets.len() <= 3 * count, "{} reads", log.gets.len());
    let largest = log.commits.iter().map(|commit| commit.puts.len() + commit.deletes.len()).max();
    assert!(largest <= Some(1_024), "{largest:?}");
}

/// Runs that have failed leave dead jobs, which go in batches too.
#[tokio::test(start_paused = true)]
async fn many_failed_runs_go_with_their_dead_jobs() {
    let count = runs(300);
    let runner = Scripted::new(|_| async { Err(StepError::permanent("no")) });
    let world = World::without_hook(runner).with(|s| s.retention = Some(10 * MINUTE));
    let port = Watched::new(Arc::new(world.queue.clone()));
    let runtime = world.over(Arc::new(port.clone()));
    let _running = runtime.spawn(std::future::pending());
    for_each_run(count, async |run_id| drop(submit(&runtime, &run_id).await)).await;
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.disk.jobs().len(), count);
    port.take();
    tokio::time::sleep(8 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
    let log = port.take();
    assert!(log.commits.len() <= count / 50 + 4, "{} commits", log.commits.len());
}

/// A day in which nothing happens, with runs that wait, are paused, or have ended and are kept for longer.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_of_runs_before_something_is_due() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let port = Watched::new(Arc::new(world.queue.clone()));
    let runtime = world.over(Arc::new(port.clone()));
    cancelled(&runtime, 300).await;
    let _running = runtime.spawn(std::future::pending());
    settle_down().await;
    port.take();
    let hours = 3;
    tokio::time::sleep(hours * 60 * MINUTE).await;
    let log = port.take();
    assert_eq!((log.commits.len(), log.settlements, log.gets.len()), (0, 0, 0));
    // The first page of each kind of end, once an hour: others may have ended runs.
    let (scans, entries) = log.scanned("workflow/workflow-steps/listed/");
    assert!(scans <= 7 * hours as usize && entries <= 256 * hours as usize, "{scans} {entries}");
    assert_eq!(log.scanned("workflow/workflow-steps/of/"), (0, 0));
    assert_eq!(log.scanned("workflow/workflow-steps/run/"), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn many_runs_that_are_cancelled_while_they_back_off_leave_no_job() {
    let count = runs(500);
    let runner = Scripted::new(|_| async { Err(StepError::transient("no").retry_after(60 * MINUTE)) });
    let world = World::without_hook(runner);
    let (runtime, running) = world.running();
    for_each_run(count, async |run_id| drop(submit(&runtime, &run_id).await)).await;
    while world.runner.seen().len() < count {
        settle_down().await;
    }
    settle_down().await;
    let status = runtime.status("run-0").await.unwrap().unwrap();
    assert!(matches!(status.phase, RunPhase::BackingOff { .. }), "{status:?}");
    running.shutdown().await.unwrap();
    for_each_run(count, async |run_id| {
        assert_eq!(runtime.cancel(&run_id, None).await.unwrap(), CancelOutcome::Ended);
    })
    .await;
    settle_down().await;
    assert_eq!(world.disk.jobs(), []);
    let of_cancelled = RunFilter { state: Some(RunState::Cancelled), ..RunFilter::default() };
    assert_eq!(runtime.count(of_cancelled).await.unwrap(), count as u64);
    let queue = world.disk.open();
    assert!(queue.claim("workflow-steps", count, MINUTE).await.unwrap().is_empty());
}

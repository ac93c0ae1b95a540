//! More than the store can take: submissions wait, and none that was acknowledged is lost.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tokio::task::JoinHandle;
use workflow_runtime::{
    NoopTerminalHook, Result, RunFilter, RunSpec, Storage, SubmitOutcome, TerminalStatus, WorkflowRuntime, open_on,
};
use workflow_testkit::{FaultyStore, Gate, Plan};

use crate::support::{Runner, succeed};

type Runtime = WorkflowRuntime<Runner, NoopTerminalHook>;

/// What a test waits before it is sure that nothing happens.
const SOON: Duration = Duration::from_millis(200);

async fn opened(store: Arc<dyn ObjectStore>) -> (Storage, Runtime) {
    let storage = open_on(store).await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    (storage, runtime)
}

/// Submits `count` runs at the same time, with inputs of `len` bytes.
fn submit(
    runtime: &Runtime,
    name: &str,
    count: usize,
    len: usize,
) -> FuturesUnordered<JoinHandle<Result<SubmitOutcome>>> {
    let submissions = (0..count).map(|number| {
        let (runtime, run_id) = (runtime.clone(), Some(format!("{name}-{number}")));
        tokio::spawn(
            async move { runtime.submit(RunSpec { run_id, input: vec![b'x'; len], ..RunSpec::default() }).await },
        )
    });
    submissions.collect()
}

#[tokio::test]
async fn while_the_disk_is_full_submissions_wait_and_once_there_is_room_they_go_on() {
    let disk: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let full = FaultyStore::new(disk.clone(), Plan::none());
    let (storage, runtime) = opened(Arc::new(full.clone())).await;
    let running = runtime.spawn(std::future::pending());
    runtime.submit(RunSpec { run_id: Some("early".to_owned()), ..RunSpec::default() }).await.unwrap();
    full.set_capacity(Some(0));
    let mut waiting = submit(&runtime, "late", 50, 100);
    tokio::time::timeout(SOON, waiting.next()).await.expect_err("nothing can be stored");
    full.set_capacity(None);
    while let Some(submitted) = waiting.next().await {
        let run = submitted.unwrap().unwrap();
        assert_eq!(runtime.wait(&run.run_id).await.unwrap().status, TerminalStatus::Succeeded);
    }
    assert_eq!(runtime.wait("early").await.unwrap().status, TerminalStatus::Succeeded);
    running.shutdown().await.unwrap();
    drop(runtime);
    storage.close().await.unwrap();
    let (_storage, runtime) = opened(disk).await;
    assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), 51);
}

#[tokio::test]
async fn submissions_beyond_what_the_store_takes_wait_and_each_that_is_answered_is_durable() {
    const RUNS: usize = 4_000;
    let disk: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let slow = Gate::new(disk.clone());
    let (storage, runtime) = opened(Arc::new(slow.clone())).await;
    slow.close();
    // Twice as many bytes as may wait inside.
    let mut waiting = submit(&runtime, "run", RUNS, 30 << 10);
    tokio::time::timeout(SOON, waiting.next()).await.expect_err("nothing can be stored");
    slow.open();
    while let Some(submitted) = waiting.next().await {
        assert!(submitted.unwrap().unwrap().newly_submitted);
    }
    // The process ends without a word.
    drop((runtime, storage));
    let (_storage, runtime) = opened(disk).await;
    assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), RUNS as u64);
}

//! Several adapters, and several runtimes, over one queue.

use std::sync::Arc;

use futures::future::join_all;
use workflow_effects::{KvStore, Read};
use workflow_runtime::{NoopTerminalHook, QueuePort, StepOutcome, TaqubaQueue, TerminalStatus, WorkflowRuntime};

use super::{World, assert_waits, commit_on, eventually, putting};
use crate::support::{Runner, spec};

#[tokio::test]
async fn two_adapters_over_one_queue_are_one() {
    let world = World::new().await;
    let other = TaqubaQueue::over(world.queue.clone());
    assert_eq!(world.port.open_number(), other.open_number());
    world.gate.close();
    let mut commit = Box::pin(commit_on(&other, putting("slot", "new")));
    assert_waits(&mut commit).await;
    let mut read = Box::pin(world.port.get(b"slot", Read::Durable));
    assert_waits(&mut read).await;
    let mut change = Box::pin(world.port.wait_for_change(b"slot", None));
    assert_waits(&mut change).await;
    world.gate.open();
    commit.await.unwrap();
    assert_eq!(read.await.unwrap().unwrap(), "new");
    assert_eq!(change.await.unwrap().unwrap(), "new");
}

#[tokio::test]
async fn every_opening_has_a_number_of_its_own() {
    let world = World::new().await;
    let first = world.port.open_number();
    let other = World::new().await;
    assert_ne!(other.port.open_number(), first, "another queue of the process");
    let world = world.crash().await;
    assert_ne!(world.port.open_number(), first, "the same store, opened again");
}

#[tokio::test(start_paused = true)]
async fn an_adapter_lets_go_of_its_queue() {
    let World { queue, port, .. } = World::new().await;
    commit_on(&port, putting("slot", "new")).await.unwrap();
    drop(port);
    let mut queue = Some(queue);
    let queue = eventually(async || {
        let shared = queue.take().expect("put back below");
        Arc::try_unwrap(shared).map_err(|shared| queue = Some(shared)).ok()
    });
    queue.await.close().await.unwrap();
}

#[tokio::test]
async fn runtimes_of_one_name_and_of_other_names_work_side_by_side() {
    let world = World::new().await;
    let runtime = |name: &str, says: &'static str| {
        let runner = Runner::sync(move |_| Ok(StepOutcome::Succeed { result: says.into() }));
        WorkflowRuntime::builder(world.queue.clone(), world.disk.clone(), runner, NoopTerminalHook)
            .queue_name(name)
            .build()
            .unwrap()
    };
    let runtimes = [runtime("one", "one"), runtime("one", "one"), runtime("two", "two")];
    let handles = runtimes.clone().map(|runtime| runtime.spawn(std::future::pending()));
    let ids: Vec<_> = (0..30).map(|number| format!("run-{number}")).collect();
    // Every id is submitted by every runtime: two share their runs, and the third has runs of its own.
    let mut submitted = Vec::new();
    for runtime in &runtimes {
        for answer in join_all(ids.iter().map(|id| runtime.submit(spec(id, "in")))).await {
            submitted.push(answer.unwrap().newly_submitted);
        }
    }
    assert_eq!(submitted.iter().filter(|new| **new).count(), 2 * ids.len());
    for (runtime, says) in runtimes.iter().zip(["one", "one", "two"]) {
        for id in &ids {
            let end = runtime.wait(id).await.unwrap();
            assert_eq!((end.status, end.result.as_deref()), (TerminalStatus::Succeeded, Some(says.as_bytes())));
        }
    }
    for handle in handles {
        handle.shutdown().await.unwrap();
    }
    let third = runtime("three", "three");
    assert!(third.status(&ids[0]).await.unwrap().is_none());
}

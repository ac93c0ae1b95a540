//! A store that another process has taken over, or that was closed.

use workflow_effects::{KvStore, Read, Rejected};
use workflow_runtime::{Error, NoopTerminalHook, WorkflowRuntime, open};

use super::{World, assert_waits, putting};
use crate::support::{Runner, spec, succeed};

#[tokio::test]
async fn a_running_runtime_that_loses_the_store_ends_with_an_error_that_says_so() {
    let old = World::new().await;
    let runtime =
        WorkflowRuntime::builder(old.queue.clone(), old.disk.clone(), Runner::sync(succeed), NoopTerminalHook)
            .build()
            .unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("before", "in")).await.unwrap();
    runtime.wait("before").await.unwrap();

    let new = World::on(old.disk.clone()).await;
    let Err(Error::Closed(reason)) = handle.wait().await else { panic!("it did not notice") };
    assert!(reason.contains("another process"), "{reason}");
    assert!(runtime.submit(spec("after", "in")).await.is_err_and(|error| error.is_closed()));
    let runtime =
        WorkflowRuntime::builder(new.queue.clone(), new.disk.clone(), Runner::sync(succeed), NoopTerminalHook)
            .build()
            .unwrap();
    assert!(runtime.run_end("before").await.unwrap().is_some());
    assert!(runtime.status("after").await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_in_flight_when_the_store_was_lost_is_told_to_nobody() {
    let old = World::new().await;
    old.gate.close();
    let mut commit = Box::pin(old.commit(putting("slot", "lost")));
    assert_waits(&mut commit).await;
    let mut read = Box::pin(old.port.get(b"slot", Read::Durable));
    assert_waits(&mut read).await;
    let new = World::on(old.disk.clone()).await;
    old.gate.open();
    let read = read.await;
    assert!(read.as_ref().is_err_and(|error| error.is_closed()), "{read:?}");
    assert!(matches!(commit.await, Err(Rejected::Unknown(error)) if error.is_closed()));
    assert_eq!(new.latest("slot").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_held_is_not_closed_under_its_holder() {
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    assert!(matches!(storage.close().await, Err(Error::InUse)));
    runtime.submit(spec("run", "in")).await.unwrap();
}

#[tokio::test]
async fn a_store_is_closed_once_its_holders_let_go() {
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("run", "in")).await.unwrap();
    runtime.wait("run").await.unwrap();
    handle.shutdown().await.unwrap();
    let mut closing = Box::pin(storage.close());
    assert_waits(&mut closing).await;
    drop(runtime);
    closing.await.unwrap();
}

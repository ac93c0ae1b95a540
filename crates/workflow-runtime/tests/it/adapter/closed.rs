//! A store that another process has taken over, or that was closed.

use bytes::Bytes;
use workflow_effects::{KvStore, Read, Rejected, ScanRange};
use workflow_runtime::port::Settlement;
use workflow_runtime::{Error, NoopTerminalHook, QueuePort, WorkflowRuntime, open};

use super::{LEASE, QUEUE, World, assert_waits, eventually, is_closed, putting};
use crate::support::{Runner, spec, succeed};

#[tokio::test]
async fn whoever_lost_the_store_is_told_so_by_every_call() {
    let old = World::new().await;
    old.ring().await;
    let claimed = old.claim_one().await;
    old.commit(putting("slot", "old")).await.unwrap();
    let (port, seen) = (old.port.clone(), Bytes::from_static(b"old"));
    let change = tokio::spawn(async move { port.wait_for_change(b"slot", Some(&seen)).await });

    let new = World::on(old.disk.clone()).await;
    // Nothing is written: the loop of the old process only looks for work.
    let refused = eventually(async || old.port.claim(QUEUE, 1, LEASE).await.err().filter(|error| error.is_closed()));
    assert!(refused.await.to_string().contains("another process"));
    assert!(is_closed(&change.await.unwrap()));
    assert!(is_closed(&old.port.get(b"slot", Read::Durable).await));
    assert!(is_closed(&old.port.get(b"slot", Read::Latest).await));
    let range = ScanRange { prefix: Bytes::new(), after: None, limit: 1 };
    assert!(is_closed(&old.port.scan(&range, Read::Durable).await));
    assert!(matches!(old.commit(putting("slot", "late")).await, Err(Rejected::Unknown(error)) if error.is_closed()));
    assert!(is_closed(&old.port.settle(Settlement::Ack(claimed.claim.clone())).await));
    assert!(is_closed(&old.port.persist_claims().await));
    assert!(is_closed(&old.port.dead_jobs(QUEUE, 1).await));
    assert!(old.port.extend(&claimed.claim, LEASE).is_err());
    assert!(claimed.lost.is_cancelled());

    assert_eq!(new.latest("slot").await.unwrap(), "old");
    assert_eq!(new.claim_one().await.deliveries, 2, "the job is the new process's");
}

#[tokio::test]
async fn a_write_of_whoever_lost_the_store_is_refused_and_changes_nothing() {
    let old = World::new().await;
    old.commit(putting("slot", "old")).await.unwrap();
    let new = World::on(old.disk.clone()).await;
    assert!(matches!(old.commit(putting("slot", "late")).await, Err(Rejected::Unknown(error)) if error.is_closed()));
    assert_eq!(new.latest("slot").await.unwrap(), "old");
    assert_eq!(new.crash().await.latest("slot").await.unwrap(), "old");
}

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

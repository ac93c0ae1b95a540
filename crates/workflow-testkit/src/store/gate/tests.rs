//! A closed gate holds writes back, and nothing else.

use futures::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;

fn at(path: &str) -> Path {
    Path::from(path)
}

#[tokio::test]
async fn writes_wait_while_the_gate_is_closed_and_reads_do_not() {
    let gate = Gate::new(Arc::new(InMemory::new()));
    gate.put(&at("a"), "1".into()).await.unwrap();
    gate.close();
    let (old, new) = (at("a"), at("b"));
    let mut put = Box::pin(gate.put(&new, "2".into()));
    let mut delete = Box::pin(gate.delete(&old));
    assert!(put.as_mut().now_or_never().is_none() && delete.as_mut().now_or_never().is_none());
    assert_eq!(gate.waiting(), 2);
    assert!(gate.until_waiting(2).now_or_never().is_some());
    assert!(gate.until_waiting(3).now_or_never().is_none());
    assert_eq!(gate.get(&old).await.unwrap().bytes().await.unwrap(), "1");
    assert!(gate.get(&new).await.is_err());
    assert_eq!(gate.list(None).count().await, 1);

    gate.open();
    put.await.unwrap();
    delete.await.unwrap();
    assert_eq!(gate.waiting(), 0);
    assert!(gate.get(&old).await.is_err());
    gate.put(&old, "3".into()).await.unwrap();
}

#[tokio::test]
async fn whoever_waited_passes_though_the_gate_is_closed_again() {
    let gate = Gate::new(Arc::new(InMemory::new()));
    gate.close();
    let (first, second) = (at("a"), at("b"));
    let mut waited = Box::pin(gate.put(&first, "1".into()));
    assert!(waited.as_mut().now_or_never().is_none());
    gate.open();
    gate.close();
    let mut late = Box::pin(gate.put(&second, "1".into()));
    assert!(late.as_mut().now_or_never().is_none());
    waited.await.unwrap();
    assert_eq!(gate.waiting(), 1);
}

#[tokio::test]
async fn a_write_that_is_given_up_is_gone() {
    let gate = Gate::new(Arc::new(InMemory::new()));
    gate.close();
    assert!(gate.put(&at("a"), "1".into()).now_or_never().is_none());
    assert_eq!(gate.waiting(), 0);
    gate.open();
    assert!(gate.get(&at("a")).await.is_err());
    assert_eq!(gate.to_string(), "Gate(InMemory)");
}

//! The lever over a queue whose flush interval is longer than the tests.

use ::taquba::OpenOptions;
use object_store::memory::InMemory;
use workflow_core::Timestamp;
use workflow_effects::{Commit, Enqueue, KvStore, Read};

use super::super::queue::TaqubaQueue;
use super::*;
use crate::port::{QueuePort, Settlement};

const HOUR: Duration = Duration::from_secs(3_600);
/// What a test waits before it is sure that nothing happens.
const SOON: Duration = Duration::from_millis(50);

async fn open(store: &Arc<InMemory>) -> TaqubaQueue {
    let (inbox, options) = FlushInbox::new();
    let options = OpenOptions::default().flush_interval(HOUR).inbox(Some(options));
    let queue = Queue::open_with_options(store.clone(), "queue", options).await.unwrap();
    let port = TaqubaQueue::over(Arc::new(queue));
    port.flush_through(inbox);
    port
}

fn put(key: String) -> Commit {
    Commit { puts: vec![(key.into(), "value".into())], ..Commit::default() }
}

async fn commit(port: &TaqubaQueue, commit: Commit) {
    port.commit(vec![commit]).await.remove(0).unwrap();
}

#[tokio::test]
async fn whoever_waits_for_a_commit_does_not_wait_for_the_flush_interval() {
    let store = Arc::new(InMemory::new());
    let port = open(&store).await;
    for number in 0..100 {
        commit(&port, put(format!("one after the other {number}"))).await;
    }
    let many = (0..1_000).map(|number| put(format!("at the same time {number}"))).collect();
    assert!(port.commit(many).await.iter().all(Result::is_ok));
    port.persist_claims().await.unwrap();
    drop(port);
    let next = open(&store).await;
    for key in ["one after the other 99", "at the same time 999"] {
        assert!(next.get(key.as_bytes(), Read::Durable).await.unwrap().is_some(), "{key} is lost");
    }
}

#[tokio::test]
async fn nothing_is_flushed_while_nobody_waits() {
    let store = Arc::new(InMemory::new());
    let port = open(&store).await;
    commit(&port, put("key".to_owned())).await;
    let before = objects(&store).await;
    tokio::time::sleep(SOON).await;
    assert_eq!(objects(&store).await, before);
}

/// The names of everything in the store.
async fn objects(store: &InMemory) -> Vec<String> {
    use futures::TryStreamExt;
    use object_store::ObjectStore;
    let mut names: Vec<_> = store.list(None).map_ok(|meta| meta.location.to_string()).try_collect().await.unwrap();
    names.sort();
    names
}

#[tokio::test]
async fn a_queue_closes_beside_a_lever_that_was_just_pulled() {
    for round in 0..20 {
        let store = Arc::new(InMemory::new());
        let port = open(&store).await;
        let waiting = {
            let port = port.clone();
            tokio::spawn(async move { commit(&port, put(format!("{round}"))).await })
        };
        waiting.await.unwrap();
        let mut queue = port.shared_queue();
        drop(port);
        let queue = loop {
            match Arc::try_unwrap(queue) {
                Ok(queue) => break queue,
                Err(shared) => queue = shared,
            }
            tokio::task::yield_now().await;
        };
        queue.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_lever_that_breaks_leaves_commits_to_the_flush_interval() {
    let store = Arc::new(InMemory::new());
    let (inbox, _) = FlushInbox::new();
    let (_, options) = FlushInbox::new();
    // The inbox of the lever is not the queue's: nothing is ever flushed through it.
    let options = OpenOptions::default().flush_interval(SOON).inbox(Some(options));
    let queue = Queue::open_with_options(store.clone(), "queue", options).await.unwrap();
    let port = TaqubaQueue::over(Arc::new(queue));
    port.flush_through(inbox);
    commit(&port, put("key".to_owned())).await;
    assert!(port.get(b"key", Read::Durable).await.unwrap().is_some());
}

#[tokio::test]
async fn jobs_are_carried_to_their_end_under_a_lever() {
    let port = open(&Arc::new(InMemory::new())).await;
    let due = Some(Timestamp::from_millis(0));
    for due in [None, due] {
        let job = Enqueue { queue: "q".to_owned(), job: port.next_job_id(), payload: "x".into(), due };
        commit(&port, Commit { enqueues: vec![job], ..Commit::default() }).await;
        let claimed = port.claim("q", 1, HOUR).await.unwrap().remove(0);
        port.persist_claims().await.unwrap();
        port.settle(Settlement::Ack(claimed.claim)).await.unwrap();
    }
    assert!(port.claim("q", 9, HOUR).await.unwrap().is_empty());
}

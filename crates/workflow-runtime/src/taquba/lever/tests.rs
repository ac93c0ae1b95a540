//! The lever over a queue whose flush interval is longer than the tests.

use ::taquba::OpenOptions;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use workflow_core::Timestamp;
use workflow_effects::{Commit, Enqueue, KvStore, Read};

use super::super::queue::TaqubaQueue;
use super::*;
use crate::port::{QueuePort, Settlement};

const HOUR: Duration = Duration::from_secs(3_600);
/// The least time between flushes, where there is one.
const GAP: Duration = Duration::from_secs(2);
/// How long a write takes, where it takes long.
const SLOW_PUT: Duration = Duration::from_millis(160);
/// What a test waits before it is sure that nothing happens.
const SOON: Duration = Duration::from_millis(50);

async fn open(store: &Arc<InMemory>) -> TaqubaQueue {
    open_with_gap(store.clone(), Duration::ZERO).await
}

async fn open_with_gap(store: Arc<dyn ObjectStore>, gap: Duration) -> TaqubaQueue {
    let (inbox, options) = FlushInbox::new();
    let options = OpenOptions::default().flush_interval(HOUR).inbox(Some(options));
    let queue = Queue::open_with_options(store, "queue", options).await.unwrap();
    let port = TaqubaQueue::over(Arc::new(queue));
    port.flush_through(inbox, gap);
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

#[tokio::test(start_paused = true)]
async fn a_commit_after_a_quiet_time_does_not_wait_and_those_that_follow_travel_together() {
    let store = Arc::new(InMemory::new());
    let port = open_with_gap(store.clone(), GAP).await;
    for round in 0..3 {
        tokio::time::sleep(GAP).await;
        let (quiet, before) = (Instant::now(), log_files(&store).await);
        commit(&port, put(format!("first {round}"))).await;
        assert_eq!(quiet.elapsed(), Duration::ZERO, "the first is flushed at once");
        let others = (1..=10).map(|number| {
            let port = port.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GAP / 20 * number).await;
                commit(&port, put(format!("{round} {number}"))).await;
                Instant::now()
            })
        });
        for other in futures::future::join_all(others).await {
            assert_eq!(other.unwrap().duration_since(quiet), GAP);
        }
        assert_eq!(log_files(&store).await, before + 2);
    }
}

#[tokio::test(start_paused = true)]
async fn those_whom_a_slow_flush_answers_travel_together_from_then_on() {
    const ROUNDS: u32 = 10;
    let slow = ThrottleConfig { wait_put_per_call: SLOW_PUT, ..ThrottleConfig::default() };
    let store = Arc::new(ThrottledStore::new(InMemory::new(), slow));
    let port = open_with_gap(store.clone(), Duration::ZERO).await;
    for travellers in [1, 5] {
        let began = Instant::now();
        let all = (0..travellers).map(|number| {
            let port = port.clone();
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    // What a step takes, which is another time for each.
                    tokio::time::sleep(Duration::from_millis(number + 1)).await;
                    commit(&port, put(format!("{travellers} {number} {round}"))).await;
                }
            })
        });
        for traveller in futures::future::join_all(all).await {
            traveller.unwrap();
        }
        let flushes = began.elapsed().as_millis() / SLOW_PUT.as_millis();
        assert!((10..=11).contains(&flushes), "{travellers} took {flushes} flushes' time for {ROUNDS} commits each");
    }
}

/// How many flushes have written something.
async fn log_files(store: &InMemory) -> usize {
    objects(store).await.iter().filter(|name| name.contains("/wal/")).count()
}

/// The names of everything in the store.
async fn objects(store: &InMemory) -> Vec<String> {
    use futures::TryStreamExt;
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
    port.flush_through(inbox, Duration::ZERO);
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

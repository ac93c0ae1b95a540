//! The timer over Taquba: what is read from the store, and when.

use std::sync::Arc;

use ::taquba::{Clock as _, MockClock};
use bytes::Bytes;
use object_store::memory::InMemory;
use workflow_effects::{Commit, Enqueue, KvStore};

use super::super::queue::tests::queue;
use super::*;
use crate::TaqubaQueue;
use crate::port::{QueuePort, Settlement};

const LEASE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);
/// What happens at all happens sooner.
const SOON: Duration = Duration::from_secs(10);
const MINUTE_MS: u64 = 60_000;
/// So few are held of each queue.
const HELD: usize = 4;

async fn open(store: Arc<InMemory>, clock: &MockClock) -> TaqubaQueue {
    TaqubaQueue::holding(HELD, queue(store, clock).await)
}

/// Rings at these times, in one commit.
async fn ring(port: &TaqubaQueue, queue: &str, times: impl IntoIterator<Item = u64>) {
    let enqueues = times.into_iter().map(|due| Enqueue {
        queue: queue.to_owned(),
        job: port.next_job_id(),
        payload: Bytes::copy_from_slice(&due.to_be_bytes()),
        due: Some(Timestamp::from_millis(due)),
    });
    let commit = Commit { enqueues: enqueues.collect(), ..Commit::default() };
    port.commit(vec![commit]).await.remove(0).unwrap();
}

/// The due times of the next `count` jobs of `q` in the order of their claims, each claimed when it is due.
async fn rung(port: &TaqubaQueue, clock: &MockClock, count: usize) -> Vec<u64> {
    let mut rung = Vec::new();
    while rung.len() < count {
        let change = port.shared().schedule.next_change();
        for claimed in port.claim("q", 3, LEASE).await.unwrap() {
            let due = u64::from_be_bytes(claimed.payload.as_ref().try_into().unwrap());
            assert_eq!(due.max(START), clock.now_ms(), "it is on time");
            rung.push(due);
            port.settle(Settlement::Ack(claimed.claim)).await.unwrap();
        }
        match port.shared().schedule.next_look(&["q".to_owned()]) {
            Some(at) => clock.advance(at.since(Timestamp::from_millis(clock.now_ms()))),
            None if rung.len() < count => {
                tokio::time::timeout(SOON, change).await.expect("the timer reads on");
            }
            None => {}
        }
    }
    rung
}

/// When the tests begin.
const START: u64 = 1_000_000;

#[tokio::test]
async fn many_more_timers_than_are_held_ring_in_order_and_on_time_in_several_openings() {
    let (store, clock) = (Arc::new(InMemory::new()), MockClock::new(START));
    let port = open(store.clone(), &clock).await;
    ring(&port, "q", (1..=40).rev().map(|n| START + n * MINUTE_MS)).await;
    // Another queue's lie between them.
    ring(&port, "other", (1..=40).map(|n| START + n * MINUTE_MS)).await;
    let times: Vec<_> = (1..=40).map(|n| START + n * MINUTE_MS).collect();
    assert_eq!(rung(&port, &clock, 20).await, times[..20]);
    drop(port);
    let port = open(store, &clock).await;
    assert_eq!(rung(&port, &clock, 10).await, times[20..30]);
    ring(&port, "q", [times[30] - 1, times[39] + 1]).await;
    let rest: Vec<_> = [times[30] - 1].into_iter().chain(times[30..].to_vec()).chain([times[39] + 1]).collect();
    assert_eq!(rung(&port, &clock, 12).await, rest);
    assert_eq!(port.shared().schedule.next_look(&["q".to_owned()]), None);
}

#[tokio::test]
async fn a_made_cursor_is_that_of_taquba() {
    let clock = MockClock::new(START);
    let port = open(Arc::default(), &clock).await;
    let due = START + MINUTE_MS;
    ring(&port, "q", [due, due, due + 1]).await;
    for limit in [1, 2] {
        let queue = &port.shared().queue;
        let page = queue.view().list_jobs("q", JobStatus::Scheduled, None, limit).await.unwrap();
        let last = page.jobs.last().unwrap();
        let horizon = Horizon::After((Timestamp::from_millis(due), last.id.as_str().into()));
        assert_eq!(page.next_cursor, cursor("q", &horizon));
    }
    assert_eq!(cursor("q", &Horizon::Start), None);
}

#[tokio::test]
async fn a_claim_goes_on_beside_a_reading_that_takes_long() {
    let port = open(Arc::default(), &MockClock::new(START)).await;
    let lane = port.shared().lanes.of("q");
    lane.turn.lock().await.reading = Some(tokio::spawn(std::future::pending()));
    let enqueue = Enqueue { queue: "q".to_owned(), job: port.next_job_id(), payload: Bytes::new(), due: None };
    port.commit(vec![Commit { enqueues: vec![enqueue], ..Commit::default() }]).await.remove(0).unwrap();
    assert_eq!(port.claim("q", 9, LEASE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_jump_of_the_clock_wakes_whoever_waits_for_a_due_time() {
    let clock = MockClock::new(START);
    let port = open(Arc::default(), &clock).await;
    ring(&port, "q", [START + 30 * MINUTE_MS]).await;
    assert!(port.claim("q", 9, LEASE).await.unwrap().is_empty());
    let queues = ["q".to_owned()];
    let wait = port.wait_for_work(&queues, HOUR);
    let jump = port.shared().outlast(HOUR, || clock.advance(HOUR));
    tokio::time::timeout(SOON, futures::future::join(wait, jump)).await.expect("it is woken");
    assert_eq!(port.claim("q", 9, LEASE).await.unwrap().len(), 1);
}

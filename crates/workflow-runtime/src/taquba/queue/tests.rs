//! What only the inside of the adapter can show.

use std::cell::Cell;

use ::taquba::{Clock as _, MockClock, OpenOptions};
use futures::FutureExt;
use object_store::memory::InMemory;
use workflow_effects::Enqueue;

use super::*;

const LEASE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);

async fn open(clock: &MockClock) -> TaqubaQueue {
    open_on(Arc::new(InMemory::new()), clock).await
}

async fn open_on(store: Arc<InMemory>, clock: &MockClock) -> TaqubaQueue {
    TaqubaQueue::over(queue(store, clock).await)
}

/// A queue that goes by `clock` and looks for nothing by itself.
pub(in super::super) async fn queue(store: Arc<InMemory>, clock: &MockClock) -> Arc<Queue> {
    let options = OpenOptions::default()
        .flush_interval(Duration::from_millis(1))
        .scheduler_interval(HOUR)
        .reaper_interval(HOUR)
        .clock(Arc::new(clock.clone()));
    Arc::new(Queue::open_with_options(store, "queue", options).await.unwrap())
}

async fn claim(port: &TaqubaQueue) -> ClaimedJob {
    let enqueue = Enqueue { queue: "q".to_owned(), job: port.next_job_id(), payload: Bytes::new(), due: None };
    let commit = Commit { enqueues: vec![enqueue], ..Commit::default() };
    port.commit(vec![commit]).await.remove(0).unwrap();
    port.claim("q", 1, LEASE).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_jump_of_the_clock_expires_no_lease() {
    let clock = MockClock::new(1_000_000);
    let port = open(&clock).await;
    let (short, long) = (claim(&port).await, claim(&port).await);
    port.extend(&long.claim, Duration::MAX).unwrap();
    clock.advance(LEASE / 2);
    port.shared.outlast(HOUR, || clock.advance(HOUR)).await;
    port.shared.queue.reap_now().await.unwrap();
    let expiry = port.shared.queue.lease_expiry("q", short.job.as_str()).unwrap();
    assert_eq!(Duration::from_millis(expiry - clock.now_ms()), LEASE / 2, "what was left is left");
    for claimed in [short, long] {
        port.extend(&claimed.claim, LEASE).unwrap();
        port.settle(Settlement::Ack(claimed.claim)).await.unwrap();
    }
    assert!(port.claim("q", 9, LEASE).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_jump_waits_for_the_claims_that_are_being_made() {
    let clock = MockClock::new(1_000_000);
    let port = open(&clock).await;
    let making = port.shared.leases.making().await;
    let mut jump = Box::pin(port.shared.outlast(HOUR, || clock.advance(HOUR)));
    assert!(jump.as_mut().now_or_never().is_none());
    assert_eq!(clock.now_ms(), 1_000_000);
    drop(making);
    jump.await;
    assert_eq!(clock.now_ms(), 1_000_000 + 3_600_000);
}

#[tokio::test]
async fn a_lease_is_forgotten_with_its_claim() {
    let clock = MockClock::new(1_000_000);
    let port = open(&clock).await;
    let first = claim(&port).await;
    clock.advance(HOUR);
    port.shared.queue.reap_now().await.unwrap();
    let second = port.claim("q", 1, LEASE).await.unwrap().remove(0);
    assert_eq!(second.job, first.job);
    drop(first);
    port.shared.outlast(HOUR, || clock.advance(HOUR)).await;
    port.shared.queue.reap_now().await.unwrap();
    port.extend(&second.claim, LEASE).expect("the later claim of the job is still known");
    drop(second);
    assert!(port.shared.leases.is_empty());
}

#[tokio::test]
async fn a_durable_read_outlives_a_commit_of_unknown_outcome() {
    let port = open(&MockClock::new(1_000_000)).await;
    let commit = Commit { puts: vec![("key".into(), "value".into())], ..Commit::default() };
    port.commit(vec![commit]).await.remove(0).unwrap();
    drop(port.shared.flights.take_off(vec!["key".into()], || false));
    assert!(port.shared.flights.settled(b"key").await.is_err());
    assert_eq!(port.get(b"key", Read::Durable).await.unwrap().unwrap(), "value");
    assert!(port.shared.flights.settled(b"key").await.is_ok(), "a durable write has settled it");
    drop(port.shared.flights.take_off(vec!["key".into()], || false));
    let range = ScanRange::first("k", 9);
    assert_eq!(port.scan(&range, Read::Durable).await.unwrap().entries.len(), 1);
    assert!(port.shared.flights.settled(b"key").await.is_ok());
}

/// Puts `value` at a key of the runtime's own.
fn put(value: &'static str) -> Commit {
    Commit { puts: vec![("workflow/key".into(), value.into())], ..Commit::default() }
}

#[tokio::test]
async fn of_commits_that_overlap_nobody_knows_which_was_last() {
    let port = open(&MockClock::new(1_000_000)).await;
    assert!(port.commit(vec![put("one"), put("other")]).await.iter().all(Result::is_ok));
    assert_eq!(port.shared.known.get(b"workflow/key"), None);
    assert!(port.get(b"workflow/key", Read::Durable).await.unwrap().is_some());
    assert!(port.shared.known.get(b"workflow/key").is_some(), "the store has told it");
}

#[tokio::test]
async fn a_commit_waits_for_one_that_does_not_look_at_what_is_there() {
    let port = open(&MockClock::new(1_000_000)).await;
    let sole = port.shared.flights.take_off(vec!["workflow/key".into()], || true);
    let mut later = port.commit(vec![put("later")]);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut later).await.is_err(), "it does not wait");
    assert!(port.get(b"workflow/key", Read::Latest).await.unwrap().is_none());
    sole.land();
    later.await.remove(0).unwrap();
}

#[tokio::test]
async fn no_lease_is_made_while_a_jump_waits() {
    let clock = MockClock::new(1_000_000);
    let port = open(&clock).await;
    let making = port.shared.leases.making().await;
    let mut jump = Box::pin(port.shared.outlast(HOUR, || clock.advance(HOUR)));
    assert!(jump.as_mut().now_or_never().is_none());
    let mut claimed = Box::pin(claim(&port));
    assert!(tokio::time::timeout(Duration::from_millis(50), claimed.as_mut()).await.is_err(), "it does not wait");
    drop(making);
    jump.await;
    let claimed = claimed.await;
    port.extend(&claimed.claim, LEASE).expect("the lease was made after the jump");
}

#[tokio::test(start_paused = true)]
async fn a_settlement_is_repeated_until_it_holds_or_the_claim_or_the_queue_is_gone() {
    let port = open(&MockClock::new(1_000_000)).await;
    let check = async |end: fn() -> ::taquba::Result<()>| {
        let tries = Cell::new(0);
        let settled = port.shared.repeat("job", async || {
            tries.set(tries.get() + 1);
            let fails = ::slatedb::Error::unavailable("no answer".to_owned());
            if tries.get() <= 5 { Err(::taquba::Error::Storage(fails)) } else { end() }
        });
        let settled = settled.await;
        assert_eq!(tries.get(), 6);
        settled
    };
    check(|| Ok(())).await.unwrap();
    check(|| Err(::taquba::Error::ClaimLost)).await.unwrap();
    let gone = check(|| {
        let closed = ::slatedb::Error::closed("fenced".to_owned(), ::slatedb::CloseReason::Fenced);
        Err(::taquba::Error::Storage(closed))
    });
    let gone = gone.await;
    assert!(gone.is_err_and(|error| error.is_closed()));
}

#[tokio::test]
async fn a_storage_engine_that_has_stopped_is_found_out_whatever_its_error_says() {
    let (store, clock) = (Arc::new(InMemory::new()), MockClock::new(1_000_000));
    let port = open_on(store.clone(), &clock).await;
    let failure = || ::taquba::Error::Storage(::slatedb::Error::unavailable("no answer".to_owned()));
    assert!(!port.shared.failure(failure()).await.is_closed());
    let _next = open_on(store, &clock).await;
    port.persist_claims().await.expect_err("the queue is lost");
    assert!(port.shared.failure(failure()).await.is_closed());
}

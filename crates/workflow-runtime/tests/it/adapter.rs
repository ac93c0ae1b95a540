//! What of the port over Taquba is its own. What every port must keep is in [`conformance`](crate::conformance).

#![expect(clippy::unwrap_used, reason = "what helps a test fails as the test does")]

mod claims;
mod closed;
mod commits;
mod jobs;
mod leases;
mod opened;
mod sharing;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::taquba::{OpenOptions, Queue};
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use workflow_core::{JobId, Timestamp};
use workflow_effects::{Commit, Enqueue, KvStore, Read, Rejected};
use workflow_runtime::port::ClaimedJob;
use workflow_runtime::{QueuePort, TaqubaQueue};
use workflow_testkit::Gate;

/// Nothing in these tests is to happen by a timer of the queue's own.
const HOUR: Duration = Duration::from_secs(3600);
/// Long before anything looks for itself, in case it was not told.
const AT_ONCE: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(600);
const QUEUE: &str = "bells";

/// A queue in memory whose writes can be held back.
struct World {
    disk: Arc<dyn ObjectStore>,
    gate: Gate,
    queue: Arc<Queue>,
    port: TaqubaQueue,
}

impl World {
    async fn new() -> Self {
        Self::on(Arc::new(InMemory::new())).await
    }

    /// Opens the queue that `disk` holds, taking it over from whoever had it.
    async fn on(disk: Arc<dyn ObjectStore>) -> Self {
        let gate = Gate::new(disk.clone());
        let options = OpenOptions::default()
            .flush_interval(Duration::from_millis(1))
            .scheduler_interval(HOUR)
            .reaper_interval(HOUR);
        let opened = Queue::open_with_options(Arc::new(gate.clone()), "queue", options).await;
        let queue = Arc::new(opened.unwrap());
        let port = TaqubaQueue::over(queue.clone());
        Self { disk, gate, queue, port }
    }

    /// Kills the process: what has not been written by now never will be. Then the next process opens the queue.
    async fn crash(self) -> Self {
        self.gate.close();
        Self::on(self.disk).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), Rejected> {
        commit_on(&self.port, commit).await
    }

    /// Puts a job in the queue.
    async fn ring(&self) -> JobId {
        let job = self.port.next_job_id();
        self.commit(ringing(&job, None)).await.unwrap();
        job
    }

    async fn claim(&self, max: usize) -> Vec<ClaimedJob> {
        self.port.claim(QUEUE, max, LEASE).await.unwrap()
    }

    /// The one job that is there.
    async fn claim_one(&self) -> ClaimedJob {
        let mut jobs = self.claim(9).await;
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    }

    async fn latest(&self, key: &'static str) -> Option<Bytes> {
        self.port.get(key.as_bytes(), Read::Latest).await.unwrap()
    }
}

async fn commit_on(port: &TaqubaQueue, commit: Commit) -> Result<(), Rejected> {
    port.commit(vec![commit]).await.remove(0)
}

fn putting(key: &'static str, value: impl Into<Bytes>) -> Commit {
    Commit { puts: vec![(key.into(), value.into())], ..Commit::default() }
}

fn ringing(job: &JobId, due: Option<Timestamp>) -> Commit {
    let (queue, payload) = (QUEUE.to_owned(), Bytes::from_static(b"ding"));
    Commit { enqueues: vec![Enqueue { queue, job: job.clone(), payload, due }], ..Commit::default() }
}

/// Lets everything else run for a while, as `future` is polled, and asserts that it does not end.
async fn assert_waits<F: Future + Unpin>(future: &mut F) {
    for _ in 0..20 {
        let polled = std::future::poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context)));
        assert!(polled.await.is_pending(), "it does not wait");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until `found` finds something. Gives up when that takes absurdly long, so that a broken rule is a failure.
async fn eventually<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(it) = found().await {
                return it;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), search).await.expect("it never happened")
}

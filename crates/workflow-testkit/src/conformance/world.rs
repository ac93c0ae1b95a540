//! What the rules share: a subject with one opening of it, and ways to wait on virtual time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Commit, Enqueue, JobId, JobState, Read, Rejected, ScanOrder, ScanRange, Settlement, Timestamp,
};

use super::Subject;

pub(super) const QUEUE: &str = "bells";
/// Longer than anything takes that happens while a job is held.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// What "at once" means: longer than any flush, far shorter than a lease.
pub(super) const MOMENT: Duration = Duration::from_secs(1);
/// What "within seconds" means.
pub(super) const SECONDS: Duration = Duration::from_secs(15);

/// A subject and its latest opening.
pub(super) struct World<S> {
    pub(super) subject: S,
    pub(super) port: Arc<dyn QueuePort>,
}

impl<S: Subject> World<S> {
    pub(super) async fn new() -> Self {
        let subject = S::new();
        let port = subject.open().await;
        Self { subject, port }
    }

    /// What is not durable by now never will be. Then the next process opens the store.
    pub(super) async fn crash(self) -> Self {
        self.subject.hold();
        let port = self.subject.open().await;
        Self { port, ..self }
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<(), Rejected> {
        commit_on(&*self.port, commit).await
    }

    /// Begins a commit in a task of its own, and gives it the time to become visible.
    pub(super) async fn begin(&self, commit: Commit) -> JoinHandle<Result<(), Rejected>> {
        let port = self.port.clone();
        let begun = tokio::spawn(async move { commit_on(&*port, commit).await });
        tokio::time::sleep(MOMENT).await;
        begun
    }

    pub(super) async fn put(&self, key: &'static str, value: &'static str) {
        self.commit(putting(key, value)).await.expect("a put without an expectation is applied");
    }

    /// Queues a job.
    pub(super) async fn ring(&self, due: Option<Timestamp>) -> JobId {
        let job = self.port.next_job_id();
        self.commit(ringing(&job, due)).await.expect("a job with a fresh id is queued");
        job
    }

    pub(super) async fn claim(&self, max: usize) -> Vec<ClaimedJob> {
        self.claim_for(max, LEASE).await
    }

    pub(super) async fn claim_for(&self, max: usize, lease: Duration) -> Vec<ClaimedJob> {
        self.port.claim(QUEUE, max, lease).await.expect("an open queue answers a claim")
    }

    /// The one job that can be claimed.
    pub(super) async fn claim_one(&self) -> ClaimedJob {
        let mut jobs = self.claim(9).await;
        assert_eq!(jobs.len(), 1, "one job can be claimed");
        jobs.remove(0)
    }

    /// The next job that can be claimed, which comes within seconds.
    pub(super) async fn next(&self) -> ClaimedJob {
        eventually(async || self.claim(1).await.pop()).await
    }

    /// Asserts that there is nothing to claim.
    pub(super) async fn assert_no_job(&self) {
        let jobs = self.claim(9).await;
        assert!(jobs.is_empty(), "there is nothing to claim, but {jobs:?}");
    }

    pub(super) async fn ack(&self, claim: &Claim) {
        let acked = self.port.settle(Settlement::Ack(claim.clone())).await;
        acked.expect("an open queue settles a claim, or finds it gone");
    }

    pub(super) async fn bury(&self, claim: &Claim) {
        let buried = self.port.settle(Settlement::Dead(claim.clone(), "because".to_owned())).await;
        buried.expect("an open queue settles a claim, or finds it gone");
    }

    pub(super) async fn drop_jobs(&self, jobs: &[JobId]) {
        let dropped = self.port.settle(Settlement::Drop(jobs.to_vec())).await;
        dropped.expect("an open queue drops jobs, or leaves them");
    }

    /// The dead jobs, in ascending order.
    pub(super) async fn dead(&self) -> Vec<JobId> {
        let mut dead = self.port.dead_jobs(QUEUE, 99).await.expect("an open queue tells its dead jobs");
        dead.sort();
        dead
    }

    pub(super) async fn state(&self, job: &JobId) -> Option<JobState> {
        self.port.job_state(job).await.expect("an open queue tells where a job is")
    }

    /// Puts a job back as an operator does, and lets that become durable.
    pub(super) async fn requeue(&self, job: &JobId) -> bool {
        let is_requeued = self.subject.requeue_dead_job(job).await;
        tokio::time::sleep(MOMENT / 2).await;
        is_requeued
    }

    pub(super) async fn is_requeued(&self, job: &JobId) -> bool {
        self.port.is_requeued(job).await.expect("an open queue tells whether a job was put back")
    }

    pub(super) async fn get(&self, key: &str, read: Read) -> Option<Bytes> {
        self.port.get(key.as_bytes(), read).await.expect("an open store answers a read")
    }

    pub(super) async fn latest(&self, key: &str) -> Option<Bytes> {
        self.get(key, Read::Latest).await
    }

    pub(super) async fn keys(&self, range: &ScanRange, read: Read) -> Vec<Bytes> {
        let page = self.port.scan(range, read).await.expect("an open store answers a scan");
        page.entries.into_iter().map(|(key, _)| key).collect()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.port.clock().now()
    }

    pub(super) fn after(&self, delay: Duration) -> Timestamp {
        self.now().after(delay)
    }
}

pub(super) async fn commit_on(port: &dyn QueuePort, commit: Commit) -> Result<(), Rejected> {
    port.commit(vec![commit]).await.pop().expect("every commit is answered")
}

pub(super) fn putting(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Commit {
    Commit { puts: vec![(key.into(), value.into())], ..Commit::default() }
}

pub(super) fn deleting(key: impl Into<Bytes>) -> Commit {
    Commit { deletes: vec![key.into()], ..Commit::default() }
}

pub(super) fn ringing(job: &JobId, due: Option<Timestamp>) -> Commit {
    ringing_in(QUEUE, job, due)
}

pub(super) fn ringing_in(queue: &str, job: &JobId, due: Option<Timestamp>) -> Commit {
    let enqueue = Enqueue { queue: queue.to_owned(), job: job.clone(), payload: "ding".into(), due };
    Commit { enqueues: vec![enqueue], ..Commit::default() }
}

/// `commit`, decided on `value` at `key`, which it also writes.
pub(super) fn expecting(key: impl Into<Bytes>, value: Option<&str>, commit: Commit) -> Commit {
    let value = value.map(|value| Bytes::copy_from_slice(value.as_bytes()));
    Commit { expect: vec![(key.into(), value)], ..commit }
}

pub(super) fn range(prefix: &'static str, after: Option<&'static str>, limit: usize) -> ScanRange {
    ScanRange { after: after.map(Bytes::from), ..ScanRange::first(prefix, limit) }
}

/// As [`range`], from its other end.
pub(super) fn descending(prefix: &'static str, after: Option<&'static str>, limit: usize) -> ScanRange {
    ScanRange { order: ScanOrder::Descending, ..range(prefix, after, limit) }
}

pub(super) fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    let mut ids: Vec<_> = jobs.iter().map(|job| job.job.clone()).collect();
    ids.sort();
    ids
}

/// The answer of `call`, if it comes at once.
pub(super) async fn at_once<T>(call: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(MOMENT, call).await.ok()
}

/// Asserts that `call` is not answered at once.
pub(super) async fn assert_waits<F: Future + Unpin>(call: &mut F) {
    assert!(at_once(call).await.is_none(), "it was answered, and has to wait");
}

/// What `found` finds within seconds.
pub(super) async fn eventually<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(it) = found().await {
                return it;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(search).await
}

/// The answer of `call`, which comes within seconds.
pub(super) async fn soon<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(SECONDS, call).await.expect("it happens within seconds")
}

/// Polls `call` so often, with time for everything else in between, then drops it.
pub(super) async fn give_up_after<F: Future>(polls: usize, call: F) {
    let mut call = pin!(call);
    for _ in 0..polls {
        let answered = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
        if answered {
            return;
        }
        tokio::task::yield_now().await;
    }
}

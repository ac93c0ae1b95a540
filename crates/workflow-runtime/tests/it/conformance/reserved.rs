//! The same contract for keys of the runtime's own, whose values the adapter remembers, and with few due times in memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Clock, Commit, Error, JobId, JobState, KvStore, Read, Rejected, ScanPage, ScanRange, Settlement,
};
use workflow_testkit::conformance::Subject;

use super::TaqubaDisk;

/// What every key begins with that the suite knows without it.
const PREFIX: &[u8] = b"workflow/conformance/";

pub(crate) struct ReservedKeys(TaqubaDisk);

#[async_trait]
impl Subject for ReservedKeys {
    fn new() -> Self {
        Self(TaqubaDisk::holding_few())
    }

    async fn open(&self) -> Arc<dyn QueuePort> {
        Arc::new(Prefixed(self.0.open().await))
    }

    async fn open_with_power_for(&self, writes: u64) -> Option<Arc<dyn QueuePort>> {
        Some(Arc::new(Prefixed(self.0.open_with_power_for(writes).await?)))
    }

    async fn cut(&self) {
        self.0.cut().await;
    }

    fn hold(&self) {
        self.0.hold();
    }

    fn release(&self) {
        self.0.release();
    }

    async fn requeue_dead_job(&self, job: &JobId) -> bool {
        self.0.requeue_dead_job(job).await
    }
}

struct Prefixed(Arc<dyn QueuePort>);

fn prefixed(key: &[u8]) -> Bytes {
    [PREFIX, key].concat().into()
}

fn bare(key: &Bytes) -> Bytes {
    key.slice(PREFIX.len()..)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for Prefixed {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        self.0.get(&prefixed(key), read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        let range = ScanRange {
            prefix: prefixed(&range.prefix),
            after: range.after.as_ref().map(|after| prefixed(after)),
            ..*range
        };
        let page = self.0.scan(&range, read).await?;
        let entries = page.entries.into_iter().map(|(key, value)| (bare(&key), value)).collect();
        Ok(ScanPage { entries, more: page.more })
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let commits = commits.into_iter().map(|commit| Commit {
            expect: commit.expect.into_iter().map(|(key, value)| (prefixed(&key), value)).collect(),
            puts: commit.puts.into_iter().map(|(key, value)| (prefixed(&key), value)).collect(),
            deletes: commit.deletes.iter().map(|key| prefixed(key)).collect(),
            enqueues: commit.enqueues,
        });
        self.0.commit(commits.collect()).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl QueuePort for Prefixed {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        self.0.claim(queue, max, lease).await
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        self.0.persist_claims().await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        self.0.extend(claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        self.0.settle(settlement).await
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        self.0.wait_for_work(queues, at_most).await;
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        self.0.wait_for_change(&prefixed(key), seen).await
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        self.0.may_have_ready_job(queue)
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        self.0.job_state(job).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        self.0.is_requeued(job).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        self.0.dead_jobs(queue, limit).await
    }

    fn next_job_id(&self) -> JobId {
        self.0.next_job_id()
    }

    fn open_number(&self) -> u64 {
        self.0.open_number()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }
}

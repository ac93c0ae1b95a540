//! A port that writes down what is read and committed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Clock, Commit, Error, JobId, JobState, KvStore, Read, Rejected, ScanPage, ScanRange, Settlement,
};

/// What was asked of a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// The keys that were read one by one.
    pub(crate) gets: Vec<Bytes>,
    /// The prefixes that were read, and how many entries each scan found.
    pub(crate) scans: Vec<(Bytes, usize)>,
    /// The commits that were handed over.
    pub(crate) commits: Vec<Commit>,
    /// Settlements.
    pub(crate) settlements: usize,
}

impl Log {
    /// How many scans there were below `prefix`, and how many entries they found.
    pub(crate) fn scanned(&self, prefix: &str) -> (usize, usize) {
        let below = self.scans.iter().filter(|(scanned, _)| scanned.starts_with(prefix.as_bytes()));
        below.fold((0, 0), |(scans, entries), (_, found)| (scans + 1, entries + found))
    }
}

/// A queue that is watched. Clones are the same port.
#[derive(Clone)]
pub(crate) struct Watched {
    port: Arc<dyn QueuePort>,
    log: Arc<Mutex<Log>>,
}

impl Watched {
    pub(crate) fn new(port: Arc<dyn QueuePort>) -> Self {
        Self { port, log: Arc::default() }
    }

    /// What was asked since the last call.
    pub(crate) fn take(&self) -> Log {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn note(&self, note: impl FnOnce(&mut Log)) {
        note(&mut self.log.lock().unwrap());
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for Watched {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        self.note(|log| log.gets.push(Bytes::copy_from_slice(key)));
        self.port.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        let page = self.port.scan(range, read).await?;
        self.note(|log| log.scans.push((range.prefix.clone(), page.entries.len())));
        Ok(page)
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        self.note(|log| log.commits.extend(commits.iter().cloned()));
        self.port.commit(commits).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl QueuePort for Watched {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        self.port.claim(queue, max, lease).await
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        self.port.persist_claims().await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        self.port.extend(claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        self.note(|log| log.settlements += 1);
        self.port.settle(settlement).await
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        self.port.wait_for_work(queues, at_most).await;
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        self.port.wait_for_change(key, seen).await
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        self.port.may_have_ready_job(queue)
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        self.port.job_state(job).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        self.port.is_requeued(job).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        self.port.dead_jobs(queue, limit).await
    }

    fn next_job_id(&self) -> JobId {
        self.port.next_job_id()
    }

    fn open_number(&self) -> u64 {
        self.port.open_number()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.port.clock()
    }
}

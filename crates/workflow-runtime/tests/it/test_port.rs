//! A port that counts what passes through it, and fails commits on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;
use workflow_core::JobId;
use workflow_effects::{Commit, Error, KvStore, Read, Rejected, ScanPage, ScanRange};
use workflow_runtime::QueuePort;
use workflow_runtime::port::{Claim, ClaimedJob, Clock, Settlement};

/// How often each operation was asked for.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicUsize,
    pub(crate) enqueues: AtomicUsize,
    pub(crate) claimed: AtomicUsize,
    pub(crate) settled: AtomicUsize,
    pub(crate) persisted: AtomicUsize,
}

impl Counts {
    /// Commits, enqueued jobs, claimed jobs, settlements.
    pub(crate) fn all(&self) -> [usize; 4] {
        [&self.commits, &self.enqueues, &self.claimed, &self.settled].map(|count| count.load(Ordering::SeqCst))
    }
}

/// What becomes of a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The port decides.
    Passed,
    /// It is refused for good.
    Refused,
    /// It is applied, and reported as unknown.
    AnswerLost,
    /// The same, reported so late that others have moved on.
    AnswerLostForLong,
    /// It is not applied, and reported as unknown.
    Lost,
}

/// Decides the fate of each commit.
pub(crate) type Fates = Box<dyn Fn(&Commit) -> Fate + Send + Sync>;

/// Whether the store answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// Every call fails for the moment.
    Down,
    /// No call returns.
    Hung,
}

/// Counts, decides the fate of commits, delegates.
pub(crate) struct TestPort<P> {
    inner: P,
    counts: Arc<Counts>,
    fates: Fates,
    health: watch::Sender<Health>,
}

impl<P> TestPort<P> {
    /// Counts only.
    pub(crate) fn counting(inner: P) -> (Self, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        let health = watch::Sender::new(Health::Well);
        (Self { inner, counts: counts.clone(), fates: Box::new(|_| Fate::Passed), health }, counts)
    }

    /// Fails commits as `fates` says.
    pub(crate) fn failing(inner: P, fates: Fates) -> Self {
        Self { fates, ..Self::counting(inner).0 }
    }
}

impl<P> TestPort<P> {
    /// Makes the store answer, or not.
    pub(crate) fn set_health(&self, health: Health) {
        self.health.send_replace(health);
    }

    /// Passes while the store is well, fails while it is down, waits while it hangs.
    async fn answer(&self) -> Result<(), Error> {
        let mut health = self.health.subscribe();
        let health = *health.wait_for(|health| *health != Health::Hung).await.expect("the port lives");
        if health == Health::Well { Ok(()) } else { Err(Error::Unavailable("the test took the store down".into())) }
    }
}

fn unknown() -> Rejected {
    Rejected::Unknown(Error::Unavailable("the test loses answers".into()))
}

fn add(count: &AtomicUsize, more: usize) {
    count.fetch_add(more, Ordering::SeqCst);
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: QueuePort> KvStore for TestPort<P> {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        self.answer().await?;
        self.inner.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        self.answer().await?;
        self.inner.scan(range, read).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        add(&self.counts.commits, commits.len());
        add(&self.counts.enqueues, commits.iter().map(|commit| commit.enqueues.len()).sum());
        if let Err(error) = self.answer().await {
            let reason = error.to_string();
            return commits.iter().map(|_| Err(Rejected::Unknown(Error::Unavailable(reason.clone().into())))).collect();
        }
        let mut answers = Vec::with_capacity(commits.len());
        for commit in commits {
            let fate = (self.fates)(&commit);
            let answer = match fate {
                Fate::Refused => {
                    Err(Rejected::Invalid(Error::InvalidCommit { detail: "is refused by the test".to_owned() }))
                }
                Fate::Lost => Err(unknown()),
                Fate::Passed | Fate::AnswerLost => self.inner.commit(vec![commit]).await.remove(0),
                Fate::AnswerLostForLong => {
                    let compared: Vec<_> = commit.expect.iter().map(|(key, _)| key.clone()).collect();
                    let answer = self.inner.commit(vec![commit]).await.remove(0);
                    for key in compared {
                        let seen = self.inner.get(&key, Read::Durable).await.ok().flatten();
                        let _ = self.inner.wait_for_change(&key, seen.as_ref()).await;
                    }
                    answer
                }
            };
            let lost = matches!(fate, Fate::AnswerLost | Fate::AnswerLostForLong);
            answers.push(if lost && answer.is_ok() { Err(unknown()) } else { answer });
        }
        answers
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: QueuePort> QueuePort for TestPort<P> {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        self.answer().await?;
        let jobs = self.inner.claim(queue, max, lease).await?;
        add(&self.counts.claimed, jobs.len());
        Ok(jobs)
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        add(&self.counts.persisted, 1);
        self.answer().await?;
        self.inner.persist_claims().await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        self.inner.extend(claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        add(&self.counts.settled, 1);
        self.inner.settle(settlement).await
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        self.inner.wait_for_work(queues, at_most).await;
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        self.inner.wait_for_change(key, seen).await
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        self.inner.may_have_ready_job(queue)
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        self.inner.dead_jobs(queue, limit).await
    }

    fn next_job_id(&self) -> JobId {
        self.inner.next_job_id()
    }

    fn open_number(&self) -> u64 {
        self.inner.open_number()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }
}

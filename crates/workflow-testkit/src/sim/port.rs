//! The port of a simulated process: each call is a point before it reaches the queue, and each change another before
//! its answer returns.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Clock, Commit, Error, JobId, JobState, KvStore, Read, Rejected, ScanPage, ScanRange, Settlement,
};

use super::Sim;
use super::describe::{commit_events, key_text};

/// How long a loop may find nothing to do before it looks again.
const IDLE: Duration = Duration::from_secs(24 * 3_600);

pub(super) struct SimPort {
    inner: Arc<dyn QueuePort>,
    sim: Sim,
}

impl SimPort {
    pub(super) fn new(inner: Arc<dyn QueuePort>, sim: Sim) -> Self {
        Self { inner, sim }
    }

    async fn pass(&self, what: impl FnOnce() -> String) {
        self.sim.world.points.pass(&self.sim, what).await;
    }

    /// Carries out a change, to its end whatever becomes of whoever waits for it.
    async fn change<T: Send + 'static>(
        &self,
        what: String,
        change: impl Future<Output = T> + Send + 'static,
        applied: impl FnOnce(&Sim, &T) + Send + 'static,
    ) -> T {
        let sim = self.sim.clone();
        let task = tokio::spawn(async move {
            sim.world.points.pass(&sim, || format!("before {what}")).await;
            let answer = change.await;
            applied(&sim, &answer);
            sim.world.points.pass(&sim, || format!("after {what}")).await;
            answer
        });
        // A change that died with the async runtime has no answer.
        match task.await {
            Ok(answer) => answer,
            Err(_) => pending().await,
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for SimPort {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        self.pass(|| format!("reading {}", key_text(&self.sim, key))).await;
        self.inner.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        self.pass(|| format!("reading {}…", key_text(&self.sim, &range.prefix))).await;
        self.inner.scan(range, read).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let inner = self.inner.clone();
        let events = commit_events(&self.sim, &commits);
        let what = match events.iter().flatten().next() {
            Some(event) => format!("the commit of: {event}"),
            None => "a commit".to_owned(),
        };
        let applied = move |sim: &Sim, answers: &Vec<Result<(), Rejected>>| {
            for (events, answer) in events.into_iter().zip(answers) {
                if answer.is_ok() {
                    events.into_iter().for_each(|event| sim.world.log.tell(event.committed()));
                }
            }
        };
        self.change(what, async move { inner.commit(commits).await }, applied).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl QueuePort for SimPort {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        let (inner, name) = (self.inner.clone(), queue.to_owned());
        self.change(format!("a claim of {queue}"), async move { inner.claim(&name, max, lease).await }, |_, _| {}).await
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        let inner = self.inner.clone();
        self.change("making claims durable".to_owned(), async move { inner.persist_claims().await }, |_, _| {}).await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        if self.sim.world.points.pass_now(&self.sim, || "extending a lease".to_owned()) {
            return Err(Error::Closed { reason: "the process is dead".to_owned() });
        }
        self.inner.extend(claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        let inner = self.inner.clone();
        self.change("a settlement".to_owned(), async move { inner.settle(settlement).await }, |_, _| {}).await
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        // The claim that follows is the point. Nobody but this process rings here, so there is nothing to look for meanwhile:
        // looks that find nothing would be most of the points of a scenario that waits.
        self.inner.wait_for_work(queues, at_most.max(IDLE)).await;
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        self.inner.wait_for_change(key, seen).await
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        self.inner.may_have_ready_job(queue)
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        self.pass(|| format!("asking for job {job}")).await;
        self.inner.job_state(job).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        self.pass(|| format!("asking for job {job}")).await;
        self.inner.is_requeued(job).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        self.pass(|| format!("listing the dead jobs of {queue}")).await;
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

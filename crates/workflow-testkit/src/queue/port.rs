//! The port over the model: every call acts on the model at once, then waits until what it did, or read, is durable.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Clock, Commit, Error, JobId, JobState, KvStore, Read, Rejected, ScanPage, ScanRange, Settlement,
};

use super::disk::{Life, MemoryQueue, Opening, State};
use super::model::{ClaimNumber, Model, NewClaim};

/// The longest lease and the longest wait: time has an end.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Our handle inside a claim.
struct Held {
    opening: u64,
    claim: ClaimNumber,
}

impl Opening {
    /// Acts on the state if the opening is open, and tells everyone who waits for a change.
    async fn act<T>(&self, act: impl FnOnce(&mut State) -> T + Send) -> Result<T, Error> {
        self.is_open().await?;
        Ok(self.disk.change(act))
    }

    /// Looks at the state if the opening is open.
    async fn look<T>(&self, look: impl FnOnce(&Model) -> T + Send) -> Result<T, Error> {
        self.is_open().await?;
        Ok(look(&self.disk.lock().model))
    }

    async fn is_open(&self) -> Result<(), Error> {
        let life = self.progress.borrow().clone();
        match life {
            Life::Open => Ok(()),
            Life::Closed(reason) => Err(Error::Closed { reason: reason.to_owned() }),
            Life::Dead => pending().await,
        }
    }

    /// Waits until `found` finds something in the state of the open queue.
    async fn wait_until<T>(&self, mut found: impl FnMut(&Model) -> Option<T> + Send) -> Result<T, Error> {
        let mut changes = self.progress.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = self.look(&mut found).await? {
                return Ok(found);
            }
            changes.changed().await;
        }
    }

    /// Waits until operation `number` is durable.
    pub(super) async fn durable(&self, number: u64) -> Result<(), Error> {
        self.wait_until(|model| (model.durable() >= number).then_some(())).await
    }

    /// The claim inside `claim`, if this opening made it.
    fn held(&self, claim: &Claim) -> Option<ClaimNumber> {
        let held: &Held = claim.handle().expect("a claim is settled with the queue that made it");
        (held.opening == self.number).then_some(held.claim)
    }

    fn hand_out(&self, claim: NewClaim) -> ClaimedJob {
        let NewClaim { number, job, payload, deliveries, lost } = claim;
        ClaimedJob { claim: Claim::new(Held { opening: self.number, claim: number }), job, payload, deliveries, lost }
    }
}

/// The time `duration` from now.
fn from_now(duration: Duration) -> Instant {
    Instant::now() + duration.min(LONGEST)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for MemoryQueue {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        let opening = &self.opening;
        let found = |model: &Model| (model.get(key), model.last_write(|written| written == key));
        let (value, operation) = opening.look(found).await?;
        if read == Read::Durable {
            opening.durable(operation).await?;
        }
        Ok(value)
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        let opening = &self.opening;
        let found = |model: &Model| {
            let page = model.scan(range);
            let operation = model.last_write(|written| range.has_read(&page, written));
            (page, operation)
        };
        let (page, operation) = opening.look(found).await?;
        if read == Read::Durable {
            opening.durable(operation).await?;
        }
        Ok(page)
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let opening = &self.opening;
        let mut applied = Vec::with_capacity(commits.len());
        for commit in commits {
            let apply = |state: &mut State| state.model.commit(commit).map(|()| state.model.applied());
            applied.push(opening.act(apply).await.unwrap_or_else(|closed| Err(Rejected::Unknown(closed))));
        }
        let mut answers = Vec::with_capacity(applied.len());
        for applied in applied {
            answers.push(match applied {
                Ok(operation) => opening.durable(operation).await.map_err(Rejected::Unknown),
                Err(rejected) => Err(rejected),
            });
        }
        answers
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl QueuePort for MemoryQueue {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        let (now, end) = (self.clock().now(), from_now(lease));
        let claims = self.opening.act(|state| state.model.claim(queue, max, now, end)).await?;
        Ok(claims.into_iter().map(|claim| self.opening.hand_out(claim)).collect())
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        let operation = self.opening.look(Model::applied).await?;
        self.opening.durable(operation).await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        let claim = self.opening.held(claim);
        let extended = |state: &mut State| claim.is_some_and(|claim| state.model.extend(claim, from_now(lease)));
        match self.opening.disk.change(extended) {
            true => Ok(()),
            false => Err(Error::Unavailable("the claim is lost".into())),
        }
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        let held = |claim: &Claim| self.opening.held(claim);
        let settle = |state: &mut State| {
            let model = &mut state.model;
            let is_settled = match settlement {
                Settlement::Ack(claim) => held(&claim).is_some_and(|claim| model.settle(claim, None)),
                Settlement::Dead(claim, reason) => held(&claim).is_some_and(|claim| model.settle(claim, Some(reason))),
                Settlement::Drop(jobs) => model.drop_jobs(jobs),
            };
            is_settled.then(|| model.applied())
        };
        match self.opening.act(settle).await? {
            Some(operation) => self.opening.durable(operation).await,
            None => Ok(()),
        }
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        let deadline = from_now(at_most);
        let mut changes = self.opening.progress.subscribe();
        let mut clock = self.opening.disk.clock().settings();
        loop {
            changes.borrow_and_update();
            clock.borrow_and_update();
            let next_due = |model: &Model| queues.iter().filter_map(|queue| model.next_due(queue)).min();
            // Whoever waits learns from the next claim that the queue is closed.
            let Ok(due) = self.opening.look(next_due).await else { return };
            let wait = due.map(|due| due.since(self.clock().now()));
            if wait.is_some_and(|wait| wait.is_zero()) {
                return;
            }
            let end = wait.map_or(deadline, |wait| from_now(wait).min(deadline));
            tokio::select! {
                biased;
                () = changes.changed() => continue,
                () = clock.changed() => continue,
                () = self.opening.disk.clock().sleep_until(end, || "the next job, or the end of a wait for one".to_owned()) => return,
            }
        }
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        let written = |model: &Model| model.last_write(|written| written == key);
        let changed = |model: &Model| {
            let value = model.get(key);
            (value.as_ref() != seen && written(model) <= model.durable()).then_some(value)
        };
        self.opening.wait_until(changed).await
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        let due = self.opening.disk.lock().model.next_due(queue);
        due.is_some_and(|due| due <= self.clock().now())
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        self.opening.look(|model| model.job_state(job)).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        self.opening.look(|model| model.is_requeued(job)).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        self.opening.look(|model| model.dead_jobs(queue, limit)).await
    }

    fn next_job_id(&self) -> JobId {
        let mut state = self.opening.disk.lock();
        state.jobs_named += 1;
        format!("job-{:010}", state.jobs_named).into()
    }

    fn open_number(&self) -> u64 {
        self.opening.number
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.opening.disk.clock().clone())
    }
}

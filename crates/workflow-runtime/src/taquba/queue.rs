//! The port over one Taquba queue.

use std::ops::Bound;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use ::taquba::{JobStatus, KvOrder, Queue, QueueView};
use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{join_all, select_all};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;
use workflow_core::JobId;
use workflow_effects::{Commit, Error, KvStore, Read, Rejected, ScanOrder, ScanPage, ScanRange};

use super::clock::{QueueClock, SteadyClock};
use super::flights::Flights;
use super::known::Known;
use super::lanes::Lanes;
use super::leases::{Leases, clamped, follow_wall_clock};
use super::lever::{FlushInbox, Lever};
use super::lock::DirectoryLock;
use super::schedule::Schedule;
use super::watchers::Watchers;
use crate::port::{Claim, ClaimedJob, Clock, JobState, QueuePort, Settlement};

/// The key that makes everything before it durable by being written. Nobody reads what it holds.
pub(super) const MARK_KEY: &[u8] = b"workflow/.mark";
/// So many jobs of a queue name that are due later are held in memory.
const NEAR: usize = 4_096;
/// So many settlements go on at a time.
const SETTLING: usize = 64;

/// A Taquba queue as the runtime's port. All adapters of one queue in the process share their state.
#[derive(Clone)]
pub struct TaqubaQueue {
    shared: Arc<Shared>,
}

/// What all adapters of one queue share. The process finds it by the queue, weakly: closing a queue needs sole
/// ownership.
pub(super) struct Shared {
    pub(super) queue: Arc<Queue>,
    pub(super) clock: Arc<QueueClock>,
    pub(super) open_number: u64,
    pub(super) flights: Arc<Flights>,
    pub(super) known: Known,
    pub(super) watchers: Watchers,
    pub(super) schedule: Schedule,
    pub(super) lanes: Lanes,
    pub(super) leases: Leases,
    /// The settlements that may go on at a time.
    pub(super) settling: Semaphore,
    /// Whoever of those who wait for a change looks for all of them whether the store has closed.
    pub(super) looking: tokio::sync::Mutex<()>,
    /// Makes commits durable at once, where the queue was opened for it.
    pub(super) lever: OnceLock<Lever>,
    /// Lets the clock follow the wall clock, where the clock is ours.
    clock_follower: OnceLock<AbortOnDropHandle<()>>,
    /// Kept for as long as anybody can write.
    lock: OnceLock<Arc<DirectoryLock>>,
}

/// A page of the application's and the runtime's key-value pairs.
pub(super) async fn scan_page(view: &QueueView, range: &ScanRange) -> ::taquba::Result<ScanPage> {
    let after = range.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
    let (bounds, order) = match range.order {
        // SlateDB panics at a range that ends where the prefix begins.
        ScanOrder::Descending if range.after.as_ref() == Some(&range.prefix) => return Ok(ScanPage::default()),
        ScanOrder::Ascending => ((after, Bound::Unbounded), KvOrder::Ascending),
        ScanOrder::Descending => ((Bound::Unbounded, after), KvOrder::Descending),
    };
    let page = view.kv_scan(&range.prefix, bounds, order, range.limit).await?;
    let entries = page.entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
    Ok(ScanPage { entries, more: page.more })
}

/// The adapters of the process.
static ADAPTERS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl TaqubaQueue {
    /// The adapter of `queue`: the one that exists, or a new one.
    pub fn over(queue: Arc<Queue>) -> Self {
        Self::holding(NEAR, queue)
    }

    /// As [`over`](Self::over), but of the jobs of a queue name that are due later, a new adapter holds at most the
    /// `near` nearest in memory, at least one. It reads the others from the store as their time comes near.
    pub fn holding(near: usize, queue: Arc<Queue>) -> Self {
        let mut adapters = ADAPTERS.lock().unwrap_or_else(PoisonError::into_inner);
        adapters.retain(|adapter| adapter.strong_count() > 0);
        let mut live = adapters.iter().filter_map(Weak::upgrade);
        if let Some(shared) = live.find(|shared| Arc::ptr_eq(&shared.queue, &queue)) {
            return Self { shared };
        }
        let shared = Arc::new(Shared {
            clock: Arc::new(QueueClock(queue.clock())),
            open_number: rand::random(),
            flights: Arc::default(),
            known: Known::default(),
            watchers: Watchers::default(),
            schedule: Schedule::holding(near),
            lanes: Lanes::default(),
            leases: Leases::default(),
            settling: Semaphore::new(SETTLING),
            looking: tokio::sync::Mutex::default(),
            lever: OnceLock::new(),
            clock_follower: OnceLock::new(),
            lock: OnceLock::new(),
            queue,
        });
        adapters.push(Arc::downgrade(&shared));
        Self { shared }
    }

    /// Keeps the lock of the store's directory for as long as an adapter of the queue lives.
    pub(super) fn keep_locked(&self, lock: Arc<DirectoryLock>) {
        let _ = self.shared.lock.set(lock);
    }

    /// Flushes what somebody waits for, through the inbox that the queue was opened with, as soon as the last flush began
    /// `gap` ago.
    pub(super) fn flush_through(&self, inbox: FlushInbox, gap: Duration) {
        self.shared.lever.get_or_init(|| Lever::new(Arc::downgrade(&self.shared.queue), inbox, gap));
    }

    /// Proves by a write that the queue can be written.
    pub(super) async fn prove(&self) -> ::taquba::Result<()> {
        self.shared.mark().await
    }

    /// Lets `clock`, which is the queue's, follow the wall clock for as long as an adapter of the queue lives.
    pub(super) fn follow_wall_clock(&self, clock: Arc<SteadyClock>) {
        let shared = Arc::downgrade(&self.shared);
        self.shared
            .clock_follower
            .get_or_init(|| AbortOnDropHandle::new(tokio::spawn(follow_wall_clock(clock, shared))));
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[cfg(test)]
    pub(super) fn shared_queue(&self) -> Arc<Queue> {
        self.shared.queue.clone()
    }

    #[cfg(test)]
    pub(super) fn follows_wall_clock(&self) -> bool {
        self.shared.clock_follower.get().is_some_and(|follower| !follower.is_finished())
    }

    /// Starts an operation that runs to its end whatever becomes of its caller.
    fn spawn<T: Send + 'static, F>(&self, operation: impl FnOnce(Arc<Shared>) -> F) -> JoinHandle<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        // Boxed: a task is moved about before it runs, and these are large.
        tokio::spawn(Box::pin(operation(self.shared.clone())))
    }
}

impl Shared {
    /// Reads from the store, and remembers what it finds unless a commit `is_busy` there.
    async fn get(&self, key: &[u8], read: Read, is_busy: bool) -> Result<Option<Bytes>, Error> {
        let reading = self.known.begin_read(key).filter(|_| !is_busy);
        let value = match self.queue.view().kv_get(key).await {
            Ok(value) => value,
            Err(cause) => return Err(self.failure(cause).await),
        };
        if read == Read::Durable {
            self.resolve(self.flights.settled(key).await).await?;
        }
        if let Some(reading) = reading {
            self.known.end_read(&reading, value.as_ref());
        }
        Ok(value)
    }
}

#[async_trait]
impl KvStore for TaqubaQueue {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        let shared = &self.shared;
        // While a commit is in flight, the store knows more.
        let is_busy = shared.flights.is_busy(key);
        match shared.known.get(key).filter(|_| !is_busy) {
            Some(value) => Ok(value),
            // Boxed: the future is large, and what is known needs none of it.
            None => Box::pin(shared.get(key, read, is_busy)).await,
        }
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        let shared = &self.shared;
        let page = match scan_page(shared.queue.view(), range).await {
            Ok(page) => page,
            Err(cause) => return Err(shared.failure(cause).await),
        };
        if read == Read::Durable {
            shared.resolve(shared.flights.settled_in(range, &page).await).await?;
        }
        Ok(page)
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let tasks: Vec<_> = commits.into_iter().map(|commit| self.spawn(|shared| shared.commit(commit))).collect();
        let unknown = |_| Err(Rejected::Unknown(torn_down()));
        join_all(tasks).await.into_iter().map(|joined| joined.unwrap_or_else(unknown)).collect()
    }
}

#[async_trait]
impl QueuePort for TaqubaQueue {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        let queue = queue.to_owned();
        let task = self.spawn(move |shared| async move { shared.claim(&queue, max, clamped(lease)).await });
        task.await.unwrap_or_else(|_| Err(torn_down()))
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        self.shared.barrier().await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        self.shared.extend(claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        let task = self.spawn(move |shared| async move { shared.settle(settlement).await });
        task.await.unwrap_or_else(|_| Err(torn_down()))
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        let shared = &self.shared;
        let change = shared.schedule.next_change();
        let due = shared.schedule.next_look(queues).map(|due| due.since(shared.clock.now()));
        let wait = due.unwrap_or(at_most).min(at_most);
        let arrivals = queues.iter().map(|queue| shared.queue.wait_for_jobs_on(queue, wait).boxed());
        let arrival = select_all(arrivals.chain([tokio::time::sleep(wait).boxed()]));
        tokio::select! {
            biased;
            _ = arrival => {}
            () = change => {}
        }
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        let watch = self.shared.watchers.watch(Bytes::copy_from_slice(key));
        loop {
            let change = watch.next_change();
            let value = self.get(key, Read::Durable).await?;
            if value.as_ref() != seen {
                return Ok(value);
            }
            tokio::select! {
                biased;
                () = change => {}
                closed = self.shared.closed() => return Err(closed),
            }
        }
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        let shared = &self.shared;
        shared.lanes.of(queue).may_have_more() || shared.schedule.may_be_due(queue, shared.clock.now())
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        self.shared.job_state(job).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        self.shared.is_requeued(job).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        match self.shared.queue.view().list_jobs(queue, JobStatus::Dead, None, limit).await {
            Ok(page) => Ok(page.jobs.into_iter().map(|job| job.id.into()).collect()),
            Err(cause) => Err(self.shared.failure(cause).await),
        }
    }

    fn next_job_id(&self) -> JobId {
        self.shared.queue.next_job_id().into()
    }

    fn open_number(&self) -> u64 {
        self.shared.open_number
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock.clone()
    }
}

/// The async runtime was shut down under the operation.
fn torn_down() -> Error {
    Error::Unavailable("the operation's task was torn down".into())
}

#[cfg(test)]
pub(super) mod tests;

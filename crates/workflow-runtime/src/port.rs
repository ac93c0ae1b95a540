//! The port that the runtime drives: key-value transactions and jobs. One implementation stands on Taquba; whoever
//! brings another queue implements these traits and nothing else.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
pub use workflow_core::{JobId, Timestamp};
pub use workflow_effects::{Commit, Enqueue, Error, KvStore, Read, Rejected, ScanOrder, ScanPage, ScanRange};

/// A queue whose jobs and key-value pairs change in the same transactions.
///
/// # Contract
///
/// 1. A job is enqueued by [`KvStore::commit`] and by nothing else. It is delivered once its time has come, to one
///    claim at a time, again and again until it is settled. A delivery that is not settled ends with its lease, or with
///    the process; the job comes back within seconds of the one, and at once when the queue is opened after the other.
/// 2. `commit`, [`claim`](Self::claim) and [`settle`](Self::settle), once begun, run to their end: a caller that drops
///    the future abandons the answer, never the call.
/// 3. A commit may be seen by `claim`, and by reads that ask for the latest, before it is durable. A claim need not be
///    durable when it returns; [`persist_claims`](Self::persist_claims) makes it so.
/// 4. Deliveries are counted per job, every claim that became durable included. No number of them ends a job.
/// 5. Times are the [`clock`](Self::clock)'s. Due times and leases follow it. A clock that is set, or a machine that
///    sleeps, ends no lease early.
///
/// Once the queue is lost to this process (closed, taken over by another process, its storage stopped) every call says
/// so with [`Error::Closed`], calls that wait included, within seconds and for ever.
#[async_trait]
pub trait QueuePort: KvStore {
    /// Claims up to `max` jobs of `queue` that are ready or due, under a lease of `lease`: fewer only when there are no
    /// more. Which of many it takes is the queue's choice. A lease may be longer than anybody lives.
    ///
    /// Jobs that are claimed for a caller who has dropped the future come back when their leases end.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] when the queue cannot answer now, [`Error::Closed`] when it never will again.
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error>;

    /// Returns once no crash can undo any claim that this process made before the call.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    async fn persist_claims(&self) -> Result<(), Error>;

    /// Makes the lease of `claim` last at least `lease` from now. Never shortens it. Does not wait: where the
    /// extension has to travel, a loss is reported through [`ClaimedJob::lost`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] or any other error when the claim is known to be lost, or is settled. While its settlement is
    /// in progress the answer says nothing.
    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error>;

    /// Ends a claim, or jobs that nobody has claimed, after the commit that it led to. Repeats itself until the
    /// settlement is durable, or the claim or jobs are gone, which is no error; it carries no effects, so that a
    /// repetition changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the queue was closed first. The job is then delivered again after the next open.
    async fn settle(&self, settlement: Settlement) -> Result<(), Error>;

    /// Returns when a job of one of `queues` may have become ready or due, or come back, since the caller's last claim
    /// found nothing, and after `at_most` in any case. Of several who wait for one queue, a job may wake only one.
    async fn wait_for_work(&self, queues: &[String], at_most: Duration);

    /// Waits until the durable value of `key` is another than `seen`, and returns it. No value is another than any.
    ///
    /// # Errors
    ///
    /// As [`KvStore::get`].
    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error>;

    /// Whether a job of `queue` may be waiting to be claimed, as far as this process knows. A cheap hint: it may be
    /// wrongly true until a claim takes fewer jobs than it asks for, and wrongly false only for jobs that this process
    /// did not make ready by a commit it was answered: those of others, and those that come back.
    fn may_have_ready_job(&self, queue: &str) -> bool;

    /// Where `job` is, if there is such a job. One whose lease is over may count as claimed.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error>;

    /// Whether an operator has put `job` back among the waiting ones after it was dead, and it has not been dead since.
    /// The queue remembers it for as long as there is the job, whatever becomes of its deliveries. May be slow.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error>;

    /// The ids of the dead jobs of `queue`, in no particular order, at most `limit`.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error>;

    /// An id for a job to be enqueued. No two calls give the same, in any process.
    fn next_job_id(&self) -> JobId;

    /// A random number of this opening of the queue: equal while a claim that is not durable can be lost, different
    /// after a crash.
    fn open_number(&self) -> u64;

    /// The clock of the queue.
    fn clock(&self) -> Arc<dyn Clock>;
}

/// Tells the time and waits. Implementations decide what time is; everything in the runtime waits through it.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The time. It never goes back.
    fn now(&self) -> Timestamp;

    /// Waits for `duration`.
    async fn sleep(&self, duration: Duration);
}

/// One delivery of a job.
#[derive(Debug)]
pub struct ClaimedJob {
    /// Stands for the delivery towards the queue.
    pub claim: Claim,
    /// The job.
    pub job: JobId,
    /// Its payload.
    pub payload: Bytes,
    /// How often it has been delivered, this time included; at least 1.
    pub deliveries: u32,
    /// Fires when the claim is lost: at the latest when the queue is, or when an [extension](QueuePort::extend) finds
    /// out.
    pub lost: CancellationToken,
}

/// A queue's own handle of a delivery, opaque to the runtime.
#[derive(Clone)]
pub struct Claim(Arc<dyn Any + Send + Sync>);

impl Claim {
    /// Wraps the queue's handle.
    pub fn new<T: Any + Send + Sync>(handle: T) -> Self {
        Self(Arc::new(handle))
    }

    /// The queue's handle, if it is a `T`.
    pub fn handle<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim")
    }
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Ready, or scheduled for later.
    Waiting,
    /// In somebody's hands: it was claimed, and not settled since.
    Claimed,
    /// Given up, and kept.
    Dead,
}

/// How claims and jobs end.
#[derive(Clone, Debug)]
pub enum Settlement {
    /// The job is done and forgotten.
    Ack(Claim),
    /// The job is kept among the dead ones, with the reason.
    Dead(Claim, String),
    /// Jobs that nobody holds are forgotten, waiting or dead. Those that somebody holds, or that are not there, are left
    /// as they are. Many dead ones of a queue at a time cost little more than one.
    ///
    /// A failure or a crash half-way may leave a dead job waiting, [requeued](QueuePort::is_requeued). Drop what is no
    /// record's doorbell any more, and it is a stale one, which harms nobody.
    Drop(Vec<JobId>),
}

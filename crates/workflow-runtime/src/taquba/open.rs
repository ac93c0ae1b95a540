//! Opening a store by its URL, with the settings that fit it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::taquba::{OpenOptions, Queue, QueueConfig};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tracing::error;
use workflow_effects::{KvReadHandle, KvStore};

pub use self::settings::OpenSettings;
pub(super) use self::url::existing_store_of;
use self::url::{Named, directory, invalid, parse, reachable_bucket};
use super::clock::SteadyClock;
use super::failure::{ClockBehind, error as failure};
use super::lever::FlushInbox;
use super::lock::DirectoryLock;
use super::queue::TaqubaQueue;
use crate::runtime::{WorkflowRuntime, WorkflowRuntimeBuilder};
use crate::{Error, Result, StepRunner, TerminalHook};

mod settings;
mod url;

/// The path of the queue inside its store.
pub(super) const QUEUE_PATH: &str = "queue";
/// Due doorbells are claimed by our own timer; the queue's scheduler is the safety net.
const SCHEDULER_INTERVAL: Duration = Duration::from_secs(60);
/// How long an open waits for a system's clock that is behind the last write of the store.
const CLOCK_WAIT: Duration = Duration::from_secs(60);
/// The pause between its looks.
const CLOCK_PAUSE: Duration = Duration::from_secs(1);
/// How long a closing store waits for the runtime's last background tasks.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// An open store: the queue and the object store under it.
///
/// Make runtimes with [`runtime`](Self::runtime), and [`close`](Self::close) it when they are gone. One opening at a
/// time: a directory is locked while it is open; another kind of store is taken away from its first opening by a second,
/// in this process or another. Use [`open_reader`](crate::open_reader) beside it.
pub struct Storage {
    queue: Arc<Queue>,
    port: TaqubaQueue,
    store: Arc<dyn ObjectStore>,
    /// The lock of a store in a directory.
    lock: Option<Arc<DirectoryLock>>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("store", &self.store.to_string()).finish_non_exhaustive()
    }
}

/// Opens the store that `url` names, making it when it is not there.
///
/// | URL | store | feature |
/// | --- | --- | --- |
/// | `file:///var/lib/app` | a local directory, synced to disk at every commit, locked while it is open | – |
/// | `memory:` | this process's memory, for tests and examples | – |
/// | `s3://bucket/prefix` | a bucket of Amazon S3, or of a server that speaks its protocol | `aws` |
/// | `gs://bucket/prefix` | a bucket of Google Cloud Storage | `gcp` |
/// | `az://container/prefix` | a container of Azure Blob Storage | `azure` |
///
/// A bucket is there already, and the prefix may be left out. Who is let in, and where the bucket is, the environment's
/// variables say that begin with `AWS_`, `GOOGLE_` or `AZURE_`, as `object_store` reads them. A bucket has no lock: the
/// next opening takes it away from the one before.
///
/// # Errors
///
/// [`Error::InvalidUrl`] when the URL has another form or its directory cannot be made; [`Error::MissingFeature`] when
/// a bucket's feature is off; [`Error::Held`] when somebody else has the directory open for writing; [`Error::Store`]
/// and [`Error::Queue`] when the store cannot be opened. While the system's clock is behind the last write of the
/// store, nothing can be written: the call waits for the clock for a minute, then fails with an error that says so.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> workflow_runtime::Result<()> {
/// let storage = workflow_runtime::open("memory:").await?;
/// assert!(storage.kv().get(b"nothing").await?.is_none());
/// storage.close().await?;
/// # Ok(()) }
/// ```
pub async fn open(url: &str) -> Result<Storage> {
    open_with(url, OpenSettings::for_url(url)?).await
}

/// Opens the store that `url` names with other settings than [`open`] would choose.
///
/// # Errors
///
/// As [`open`], and [`Error::InvalidOption`] when a setting is out of its range.
///
/// ```
/// use std::time::Duration;
/// use workflow_runtime::{OpenSettings, open_with};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> workflow_runtime::Result<()> {
/// let url = "memory:"; // "s3://bucket/orders"
/// let settings = OpenSettings { flush_gap: Duration::from_millis(200), ..OpenSettings::for_url(url)? };
/// let storage = open_with(url, settings).await?;
/// storage.close().await?;
/// # Ok(()) }
/// ```
pub async fn open_with(url: &str, settings: OpenSettings) -> Result<Storage> {
    settings.check()?;
    match parse(url)? {
        Named::Memory => open_on_with(Arc::new(InMemory::new()), settings).await,
        Named::Bucket => open_on_with(reachable_bucket(url).await?, settings).await,
        Named::Directory(path) => {
            std::fs::create_dir_all(&path).map_err(|cause| invalid(url, cause.to_string()))?;
            let lock = Arc::new(DirectoryLock::take(&path)?);
            let storage = open_on_with(directory(url, &path)?, settings).await?;
            storage.port.keep_locked(lock.clone());
            Ok(Storage { lock: Some(lock), ..storage })
        }
    }
}

/// Opens `store` as [`open`] opens a store in memory or in a directory: for object stores that the application makes
/// itself, and for tests that wrap one. A bucket wants other settings: [`open_on_with`].
///
/// # Errors
///
/// As [`open`].
pub async fn open_on(store: Arc<dyn ObjectStore>) -> Result<Storage> {
    open_on_with(store, OpenSettings::local()).await
}

/// Opens `store` with `settings`.
///
/// # Errors
///
/// As [`open_with`].
//
// Writes are refused while the system's clock is behind the last write of the store, and one that is refused stops
// the storage engine for good. So a write proves the clock here, before anyone relies on the store.
pub async fn open_on_with(store: Arc<dyn ObjectStore>, settings: OpenSettings) -> Result<Storage> {
    settings.check()?;
    let deadline = tokio::time::Instant::now() + CLOCK_WAIT;
    let mut told = false;
    loop {
        let cause = match try_open(store.clone(), settings).await {
            Err(cause) if ClockBehind::is_told_by(&cause) => ClockBehind(cause),
            opened => return Ok(opened.map_err(failure)?),
        };
        if !told {
            error!(error = &cause as &dyn std::error::Error, "waiting for the system's clock");
            told = true;
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(Error::Queue(Box::new(cause)));
        }
        tokio::time::sleep(CLOCK_PAUSE).await;
    }
}

async fn try_open(store: Arc<dyn ObjectStore>, settings: OpenSettings) -> Result<Storage, ::taquba::Error> {
    let clock = Arc::new(SteadyClock::new());
    let (inbox, inbox_options) = FlushInbox::new();
    let config = QueueConfig::default().dead_retention(None).max_attempts(u32::MAX);
    let mut options = OpenOptions::default()
        .flush_interval(settings.flush_interval)
        .scheduler_interval(SCHEDULER_INTERVAL)
        .payload_offload_threshold(None)
        .inbox(Some(inbox_options))
        .clock(clock.clone());
    options.default_queue_config = config;
    let queue = Arc::new(Queue::open_with_options(store.clone(), QUEUE_PATH, options).await?);
    let port = TaqubaQueue::over(queue.clone());
    port.flush_through(inbox, settings.flush_gap);
    port.prove().await?;
    port.follow_wall_clock(clock);
    Ok(Storage { queue, port, store, lock: None })
}

impl Storage {
    /// A runtime on this store. See [`WorkflowRuntimeBuilder`].
    pub fn runtime<R, H>(&self, runner: R, hook: H) -> WorkflowRuntimeBuilder<R, H>
    where
        R: StepRunner + 'static,
        H: TerminalHook + 'static,
    {
        WorkflowRuntime::over(Arc::new(self.port.clone()), self.store.clone(), runner, hook)
    }

    /// Reads of committed application KV, without a runtime.
    pub fn kv(&self) -> KvReadHandle {
        let kv: Arc<dyn KvStore> = Arc::new(self.port.clone());
        KvReadHandle::new(kv)
    }

    /// The Taquba queue.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The object store.
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Closes the store. Drop what holds it first: runtimes and their clones, running loops, `wait`s in progress, and
    /// read handles. A store that is not closed loses nothing: the
    /// next open takes a little longer. Dropping the future leaves it to close with its last holder.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] when something still holds the store after 5 s; it is then left to close with its last holder.
    pub async fn close(self) -> Result<()> {
        let Self { mut queue, port, store: _, lock: _lock } = self;
        drop(port);
        let deadline = tokio::time::Instant::now() + CLOSE_WAIT;
        loop {
            match Arc::try_unwrap(queue) {
                Ok(queue) => return Ok(queue.close().await.map_err(failure)?),
                Err(_) if tokio::time::Instant::now() >= deadline => return Err(Error::InUse),
                Err(shared) => queue = shared,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[cfg(test)]
mod tests;

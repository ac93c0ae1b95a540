//! Reading a store beside the process that has it open, without ever disturbing that process.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::taquba::{QueueReader, ReaderMode, ReaderOptions};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use object_store::ObjectStore;
use workflow_core::Timestamp;
use workflow_effects::{
    Commit, Error as EffectsError, KeySpace, KvReadHandle, KvStore, ObjectConfig, ObjectValues, Read, Rejected,
    ScanPage, ScanRange,
};

use super::failure::error;
use super::open::{QUEUE_PATH, existing_store_of};
use super::queue::scan_page;
use crate::reads::{RunReads, parse_run_id};
use crate::settings::Settings;
use crate::{Error, HistoryEntry, Result, RunFilter, RunOrder, RunOutcome, RunStatus};

/// How often the view catches up with the writer.
const POLL: Duration = Duration::from_millis(500);
/// How often a read is tried that finds its part of the store cleaned away: the view is too old, and catches up soon.
const ATTEMPTS: u32 = 6;

/// A store that another process may have open: its runs and its application KV, for reading only.
///
/// It shows durable, whole commits, up to about a second late; what is durable when it is opened, it shows at once. It
/// writes nothing, holds no lock and slows no writer.
#[derive(Clone)]
pub struct StoreReader {
    kv: Arc<ReaderKv>,
    store: Arc<dyn ObjectStore>,
}

/// The runs of one queue name in a [`StoreReader`].
#[derive(Clone)]
pub struct RunReader {
    reads: RunReads,
}

/// Opens the store that `url` names for reading, beside the process that writes it, if there is one.
///
/// # Errors
///
/// [`Error::InvalidUrl`] when the URL names no directory and no bucket (a store in memory is its own process's alone),
/// [`Error::NoStore`] when there is no store, [`Error::Store`] when a bucket does not answer, [`Error::Queue`] when what is there does not read as one.
pub async fn open_reader(url: &str) -> Result<StoreReader> {
    let store = existing_store_of(url).await?;
    let options = ReaderOptions::default().mode(ReaderMode::FollowLatest).manifest_poll_interval(POLL);
    match QueueReader::open_with_options(store.clone(), QUEUE_PATH, options).await {
        Ok(reader) => Ok(StoreReader { kv: Arc::new(ReaderKv(reader)), store }),
        Err(::taquba::Error::StoreNotInitialized { .. }) => Err(Error::NoStore { url: url.to_owned() }),
        Err(cause) => Err(error(cause).into()),
    }
}

impl StoreReader {
    /// Reads of committed application KV.
    pub fn kv(&self) -> KvReadHandle {
        KvReadHandle::new(self.kv.clone())
    }

    /// The runs of the runtime of this [`queue_name`](Settings::queue_name).
    ///
    /// # Errors
    ///
    /// [`Error::Misconfigured`] when no runtime can have this name.
    pub fn runs(&self, queue_name: &str) -> Result<RunReader> {
        let settings = Settings { queue_name: queue_name.to_owned(), ..Settings::default() };
        settings.check()?;
        let keys = KeySpace::new(queue_name);
        let objects = ObjectValues::new(ObjectConfig {
            kv: self.kv.clone(),
            store: self.store.clone(),
            keys: keys.clone(),
            prefix: settings.prefix,
            inline_limit: settings.inline_limit,
            max_value_size: settings.max_value_size,
            fresh: Box::new(|| 0),
            now: Box::new(|| Timestamp::from_millis(0)),
        });
        Ok(RunReader { reads: RunReads { kv: self.kv.clone(), keys, objects: Arc::new(objects) } })
    }

    /// Stops following the writer. Dropping the reader does the same a little later.
    ///
    /// # Errors
    ///
    /// [`Error::Queue`] when the storage engine does not stop.
    pub async fn close(self) -> Result<()> {
        Ok(self.kv.0.close().await.map_err(error)?)
    }
}

impl fmt::Debug for StoreReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreReader").field("store", &self.store.to_string()).finish_non_exhaustive()
    }
}

impl RunReader {
    /// As [`WorkflowRuntime::status`](crate::WorkflowRuntime::status), of what the reader sees.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn status(&self, run_id: &str) -> Result<Option<RunStatus>> {
        self.reads.status(&parse_run_id(run_id)?, Timestamp::from(SystemTime::now())).await
    }

    /// As [`WorkflowRuntime::run_end`](crate::WorkflowRuntime::run_end), of what the reader sees.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn run_end(&self, run_id: &str) -> Result<Option<RunOutcome>> {
        self.reads.run_end(&parse_run_id(run_id)?).await
    }

    /// As [`WorkflowRuntime::runs`](crate::WorkflowRuntime::runs), of what the reader sees.
    pub fn runs(&self, filter: RunFilter, order: RunOrder) -> impl Stream<Item = Result<RunStatus>> + Send + use<> {
        self.reads.clone().runs(filter, order, Timestamp::from(SystemTime::now()))
    }

    /// As [`WorkflowRuntime::count`](crate::WorkflowRuntime::count), of what the reader sees.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn count(&self, filter: RunFilter) -> Result<u64> {
        self.reads.clone().count(filter, Timestamp::from(SystemTime::now())).await
    }

    /// As [`WorkflowRuntime::history`](crate::WorkflowRuntime::history), of what the reader sees.
    pub fn history(&self, run_id: &str) -> impl Stream<Item = Result<HistoryEntry>> + Send + use<> {
        match parse_run_id(run_id) {
            Ok(id) => self.reads.history(id).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        }
    }
}

impl fmt::Debug for RunReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunReader")
    }
}

/// The key-value pairs of a reader. Everything it shows is durable.
struct ReaderKv(QueueReader);

#[async_trait]
impl KvStore for ReaderKv {
    async fn get(&self, key: &[u8], _: Read) -> Result<Option<Bytes>, EffectsError> {
        again(|| self.0.view().kv_get(key)).await
    }

    async fn scan(&self, range: &ScanRange, _: Read) -> Result<ScanPage, EffectsError> {
        again(|| scan_page(self.0.view(), range)).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        commits.iter().map(|_| Err(Rejected::Invalid(EffectsError::ReadOnly))).collect()
    }
}

/// Reads, again a little later where the writer has cleaned away what the view still names.
async fn again<T, F>(read: impl Fn() -> F) -> Result<T, EffectsError>
where
    F: Future<Output = ::taquba::Result<T>>,
{
    let mut attempt = 1;
    loop {
        match read().await {
            Ok(value) => return Ok(value),
            Err(cause) if attempt == ATTEMPTS || cause.is_permanent() => return Err(error(cause)),
            Err(_) => attempt += 1,
        }
        tokio::time::sleep(POLL).await;
    }
}

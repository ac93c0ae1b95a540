//! An inbox whose passes do nothing but flush.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::taquba::{CancelEntry, InboxOptions, InboxSender, Queue};
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

/// The one queue of the inbox, the one entry in it, and the job that the entry is about, which is not there.
const NOTHING: &str = "workflow-flush";
const INBOX_PATH: &str = "inbox";
/// How seldom the queue looks into the inbox by itself.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The sender to the inbox.
pub(in super::super) struct FlushInbox {
    store: Arc<ListedForEver>,
    is_sent: bool,
}

impl FlushInbox {
    /// An inbox, and what to open a queue with it.
    pub(in super::super) fn new() -> (Self, InboxOptions) {
        let store = Arc::new(ListedForEver::default());
        let options = InboxOptions::new([NOTHING])
            .object_store(store.clone() as Arc<dyn ObjectStore>)
            .path(INBOX_PATH.to_owned())
            .interval(NEVER)
            .touch_poll_interval(None);
        (Self { store, is_sent: false }, options)
    }

    /// Flushes everything that `queue` has committed so far; `false` when a pass does not do that any more.
    pub(super) async fn flush(&mut self, queue: &Queue) -> ::taquba::Result<bool> {
        if !self.is_sent {
            let sender = InboxSender::new(self.store.clone() as Arc<dyn ObjectStore>, INBOX_PATH);
            sender.send_with_id(NOTHING, NOTHING, CancelEntry { job_id: NOTHING.to_owned() }).await?;
            self.is_sent = true;
        }
        tokio::select! {
            biased;
            // What a pass does after that is of no use here.
            () = self.store.settled.notified() => Ok(true),
            passed = queue.apply_inbox_now() => passed.map(|()| false),
        }
    }
}

/// A store whose objects are listed for ever and never found: an entry that was listed and is gone counts as settled,
/// leaves no record in the queue, and is deleted after the flush.
#[derive(Debug, Default)]
struct ListedForEver {
    names: InMemory,
    /// Notified when settled entries are to be deleted.
    settled: Notify,
}

impl fmt::Display for ListedForEver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListedForEver")
    }
}

#[async_trait]
impl ObjectStore for ListedForEver {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.names.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(unsupported("multipart"))
    }

    async fn get_opts(&self, location: &Path, _: GetOptions) -> Result<GetResult> {
        Err(Error::NotFound { path: location.to_string(), source: "nothing is ever found here".into() })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.settled.notify_one();
        // Whoever waits for the flush gets to know before the pass goes on.
        stream::once(tokio::task::yield_now()).flat_map(|()| stream::empty()).chain(locations).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.names.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.names.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(unsupported("copy"))
    }
}

fn unsupported(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: "ListedForEver".to_owned() }
}

//! Reads of committed application key-value data.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::error::{Error, Result};
use crate::keys::{RESERVED_PREFIX, is_reserved};
use crate::memory::MemoryKv;
use crate::pages::Pages;
use crate::port::{KvStore, Read, ScanRange};
use crate::staged::check_key;

/// How many entries a scan asks for at a time.
const PAGE: usize = 256;

/// Greater than every key below [`RESERVED_PREFIX`], where the text of a queue name follows: no text holds this byte.
const AFTER_RESERVED: &[u8] = b"workflow/\xff";

/// Reads committed application data: what earlier steps put through their effects. It does not see what the step in
/// hand has staged, and it answers nothing that a crash could still undo.
///
/// ```
/// use workflow_effects::KvReadHandle;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> workflow_effects::Result<()> {
/// let kv = KvReadHandle::detached_with([("greeting", "hello")]);
/// assert_eq!(kv.get(b"greeting").await?.as_deref(), Some(&b"hello"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct KvReadHandle {
    kv: Arc<dyn KvStore>,
}

impl KvReadHandle {
    /// A handle over `kv`.
    pub fn new(kv: Arc<dyn KvStore>) -> Self {
        Self { kv }
    }

    /// A handle outside any runtime, over nothing.
    pub fn detached() -> Self {
        Self::new(Arc::new(MemoryKv::new()))
    }

    /// A handle outside any runtime, over `entries`.
    pub fn detached_with<K: Into<Bytes>, V: Into<Bytes>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::new(Arc::new(MemoryKv::with_entries(entries)))
    }

    /// The committed value at `key`. Dropping the future has no effect.
    ///
    /// # Errors
    ///
    /// [`Error::KeyLength`] and [`Error::ReservedKey`] for a key that no application can have written;
    /// [`Error::Unavailable`] and [`Error::Closed`] when the store cannot answer.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        check_key(key)?;
        self.kv.get(key, Read::Durable).await
    }

    /// The committed entries whose keys begin with `prefix`, keys ascending. The empty prefix is every entry of the
    /// application; the runtime's own entries never appear.
    ///
    /// Entries are read in pages: a commit made meanwhile may be seen in part. Dropping the stream has no effect.
    ///
    /// # Errors
    ///
    /// The stream ends with [`Error::Unavailable`] or [`Error::Closed`] when the store cannot answer.
    pub fn scan(&self, prefix: &[u8]) -> impl Stream<Item = Result<(Bytes, Bytes)>> + Send + Unpin + use<> {
        let of_all =
            || Pages::new(self.kv.clone(), ScanRange::first(Bytes::copy_from_slice(prefix), PAGE), Read::Durable);
        let pages = (!prefix.starts_with(RESERVED_PREFIX)).then(of_all);
        let pages = stream::try_unfold(pages, |pages| async move {
            let Some(mut pages) = pages else { return Ok::<_, Error>(None) };
            let page = next_page(&mut pages).await?;
            Ok(page.map(|page| (page, Some(pages))))
        });
        pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten().boxed()
    }
}

/// The application's entries on the next page.
async fn next_page(pages: &mut Pages) -> Result<Option<Vec<(Bytes, Bytes)>>> {
    let Some(mut entries) = pages.next().await? else { return Ok(None) };
    // A page that ends among the runtime's entries is followed by one that begins after all of them.
    if entries.last().is_some_and(|(key, _)| is_reserved(key)) {
        pages.skip_to(AFTER_RESERVED);
    }
    entries.retain(|(key, _)| !is_reserved(key));
    Ok(Some(entries))
}

/// Says nothing of the store.
impl fmt::Debug for KvReadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvReadHandle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

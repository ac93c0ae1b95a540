//! A store that counts its requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object_store::{ObjectStore, Result};

use super::intercept::{Intercept, Request, impl_object_store};

/// A store that counts what is asked of it, and does it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> object_store::Result<()> {
/// use std::sync::Arc;
///
/// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
/// use workflow_testkit::Counting;
///
/// let store = Counting::new(Arc::new(InMemory::new()));
/// store.put(&Path::from("a"), "1".into()).await?;
/// let before = store.requests();
/// store.get(&Path::from("a")).await?;
/// assert_eq!(store.requests().since(before).gets, 1);
/// assert_eq!(store.requests().since(before).writes(), 0);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Counting {
    store: Arc<dyn ObjectStore>,
    requests: Arc<Mutex<Requests>>,
}

/// How many requests of each kind were begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requests {
    /// Puts of a whole object.
    pub puts: u64,
    /// Requests of multipart uploads: their beginnings, parts, completions and aborts.
    pub multiparts: u64,
    /// Gets, of metadata too. Ranges that are asked for together are one.
    pub gets: u64,
    /// Listings.
    pub lists: u64,
    /// Deleted objects.
    pub deletes: u64,
    /// Copies.
    pub copies: u64,
    /// Renames.
    pub renames: u64,
}

impl Requests {
    /// What was asked since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            puts: self.puts - earlier.puts,
            multiparts: self.multiparts - earlier.multiparts,
            gets: self.gets - earlier.gets,
            lists: self.lists - earlier.lists,
            deletes: self.deletes - earlier.deletes,
            copies: self.copies - earlier.copies,
            renames: self.renames - earlier.renames,
        }
    }

    /// The requests that change the store.
    pub fn writes(self) -> u64 {
        self.puts + self.multiparts + self.deletes + self.copies + self.renames
    }

    /// All requests.
    pub fn total(self) -> u64 {
        self.writes() + self.gets + self.lists
    }

    fn of(&mut self, request: Request) -> &mut u64 {
        match request {
            Request::Put => &mut self.puts,
            Request::Multipart => &mut self.multiparts,
            Request::Get => &mut self.gets,
            Request::List => &mut self.lists,
            Request::Delete => &mut self.deletes,
            Request::Copy => &mut self.copies,
            Request::Rename => &mut self.renames,
        }
    }
}

impl Counting {
    /// A store over `store` that has counted nothing.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, requests: Arc::default() }
    }

    /// What was asked so far.
    pub fn requests(&self) -> Requests {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for Counting {
    type Passage = ();

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    async fn before(&self, request: Request, _bytes: u64) -> Result<()> {
        *self.lock().of(request) += 1;
        Ok(())
    }

    async fn after(&self, (): ()) -> Result<()> {
        Ok(())
    }
}

impl_object_store!(Counting);

#[cfg(test)]
mod tests;

//! A store whose requests meet the faults of a plan.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use object_store::{Error, ObjectStore, Result};

use super::intercept::{Intercept, Request, impl_object_store};
use crate::Plan;
use crate::plan::Course;

/// What the requests of a [`FaultyStore`] meet.
pub type StorePlan = Plan<StoreCalls, StoreFault>;

/// Requests of a store. Deleted objects and the requests of a multipart upload are requests of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCalls {
    /// Every request.
    Any,
    /// Requests that change the store.
    Writes,
    /// Requests that do not.
    Reads,
    /// Puts of a whole object.
    Put,
    /// Requests of multipart uploads: their beginnings, parts, completions and aborts.
    Multipart,
    /// Gets, of metadata too.
    Get,
    /// Listings.
    List,
    /// Deletes.
    Delete,
    /// Copies.
    Copy,
    /// Renames.
    Rename,
}

/// What happens to a request of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFault {
    /// The request reaches the store so much later. A caller that gives up by then takes it back.
    Slow(Duration),
    /// The request does not reach the store, and fails.
    Fails,
    /// The request is carried out, and reported as failed.
    AnswerLost,
    /// The store has no room for what the request brings. Deletes and reads succeed.
    Full,
}

/// A store whose requests meet the faults of a plan, and which can run full. The same plan and requests give the same
/// faults. Clones are the same store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> object_store::Result<()> {
/// use std::sync::Arc;
///
/// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
/// use workflow_testkit::{FaultyStore, Plan, StoreCalls, StoreFault, When};
///
/// let plan = Plan::of(StoreCalls::Put, When::Nth(1), StoreFault::AnswerLost);
/// let store = FaultyStore::new(Arc::new(InMemory::new()), plan);
/// let path = Path::from("a");
/// assert!(store.put(&path, "1".into()).await.is_err());
/// assert_eq!(store.get(&path).await?.bytes().await?, "1");
///
/// store.set_capacity(Some(4));
/// assert!(store.put(&Path::from("b"), "2345".into()).await.is_err());
/// store.delete(&path).await?;
/// assert!(store.put(&Path::from("b"), "2345".into()).await.is_ok());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore {
    store: Arc<dyn ObjectStore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    course: Course<StoreCalls, StoreFault>,
    capacity: Option<u64>,
}

impl FaultyStore {
    /// A store over `store` whose requests meet the faults of `plan`.
    pub fn new(store: Arc<dyn ObjectStore>, plan: StorePlan) -> Self {
        let state = State { course: Course::new(plan), capacity: None };
        Self { store, state: Arc::new(Mutex::new(state)) }
    }

    /// Follows another plan from now on; [`Plan::none`] ends all faults.
    pub fn follow(&self, plan: StorePlan) {
        self.lock().course = Course::new(plan);
    }

    /// The faults that were met on the present plan, in the order in which their requests began: a plan without chance
    /// that has the same requests meet the same faults.
    pub fn met(&self) -> StorePlan {
        self.lock().course.met()
    }

    /// From now on the objects of the store have at most so many bytes together, or as many as they like. What would
    /// not fit beside them fails, even if it replaced one of them; deletes give room. Of an upload, each part has to
    /// fit by itself.
    ///
    /// The store is listed for every request that brings something, and requests at the same time do not see each
    /// other.
    pub fn set_capacity(&self, bytes: impl Into<Option<u64>>) {
        self.lock().capacity = bytes.into();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `bytes` more fit.
    async fn has_room(&self, bytes: u64) -> Result<bool> {
        let Some(capacity) = self.lock().capacity.filter(|_| bytes > 0) else { return Ok(true) };
        let used = self.store.list(None).try_fold(0, async |used, object| Ok(used + object.size)).await?;
        Ok(bytes <= capacity.saturating_sub(used))
    }
}

impl Intercept for FaultyStore {
    /// Whether the answer gets lost.
    type Passage = bool;

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    async fn before(&self, request: Request, bytes: u64) -> Result<bool> {
        let fault = self.lock().course.meet(|calls| calls.include(request));
        match fault {
            Some(StoreFault::Slow(duration)) => tokio::time::sleep(duration).await,
            Some(StoreFault::Fails) => return Err(failed(io::ErrorKind::TimedOut)),
            Some(StoreFault::Full) if request.takes_room() => return Err(failed(io::ErrorKind::StorageFull)),
            Some(StoreFault::Full | StoreFault::AnswerLost) | None => {}
        }
        if !self.has_room(bytes).await? {
            return Err(failed(io::ErrorKind::StorageFull));
        }
        Ok(fault == Some(StoreFault::AnswerLost))
    }

    async fn after(&self, lost: bool) -> Result<()> {
        if lost { Err(failed(io::ErrorKind::TimedOut)) } else { Ok(()) }
    }
}

impl_object_store!(FaultyStore);

impl StoreCalls {
    fn include(self, request: Request) -> bool {
        match self {
            Self::Any => true,
            Self::Writes => request.is_write(),
            Self::Reads => !request.is_write(),
            Self::Put => request == Request::Put,
            Self::Multipart => request == Request::Multipart,
            Self::Get => request == Request::Get,
            Self::List => request == Request::List,
            Self::Delete => request == Request::Delete,
            Self::Copy => request == Request::Copy,
            Self::Rename => request == Request::Rename,
        }
    }
}

/// The error of a store that cannot do what it was asked.
fn failed(kind: io::ErrorKind) -> Error {
    Error::Generic { store: "FaultyStore", source: Box::new(io::Error::new(kind, "a fault of the test's plan")) }
}

#[cfg(test)]
mod tests;

//! A store that loses its power at a chosen write.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use object_store::{ObjectStore, Result};
use tokio::sync::watch;

use super::intercept::{Intercept, Request, impl_object_store};

/// A store on which so many writes succeed and no more: the next one cuts the power. From then on nothing reaches the
/// wrapped store and no call returns, reads and calls in flight included.
///
/// What a process has been told before the cut is all that it will ever be told, so dropping the process and opening
/// the wrapped store again shows what a crash at that write leaves. Puts, deletes, copies, renames and each request of
/// a multipart upload count as writes.
///
/// A write that was let through before the cut may reach the store while the cut happens. Stop the process before
/// looking at the store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> object_store::Result<()> {
/// use std::sync::Arc;
///
/// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
/// use workflow_testkit::PowerCut;
///
/// let disk = Arc::new(InMemory::new());
/// let store = PowerCut::after(1, disk.clone());
/// let (first, second) = (Path::from("first"), Path::from("second"));
/// store.put(&first, "kept".into()).await?;
/// tokio::select! {
///     biased;
///     _ = store.put(&second, "lost".into()) => unreachable!("no call returns"),
///     () = store.cut() => {}
/// }
/// assert!(disk.get(&first).await.is_ok());
/// assert!(disk.get(&second).await.is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PowerCut {
    store: Arc<dyn ObjectStore>,
    power: Arc<Power>,
}

#[derive(Debug)]
struct Power {
    /// How many writes succeed.
    last: usize,
    writes: AtomicUsize,
    cut: watch::Sender<bool>,
}

impl PowerCut {
    /// A store over `store` on which `writes` writes succeed.
    pub fn after(writes: usize, store: Arc<dyn ObjectStore>) -> Self {
        let power = Power { last: writes, writes: AtomicUsize::new(0), cut: watch::Sender::new(false) };
        Self { store, power: Arc::new(power) }
    }

    /// Cuts the power now.
    pub fn cut_now(&self) {
        self.power.cut.send_replace(true);
    }

    /// How many writes were let through.
    pub fn writes(&self) -> usize {
        self.power.writes.load(Ordering::Acquire).min(self.power.last)
    }

    /// Whether the cut has happened.
    pub fn is_cut(&self) -> bool {
        *self.power.cut.borrow()
    }

    /// Returns once the cut has happened. Dropping the future has no effect.
    pub async fn cut(&self) {
        let mut cut = self.power.cut.subscribe();
        let _ = cut.wait_for(|cut| *cut).await;
    }

    /// Returns if there is power.
    async fn powered(&self) {
        if self.is_cut() {
            pending::<()>().await;
        }
    }
}

impl Intercept for PowerCut {
    type Passage = ();

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    async fn before(&self, request: Request, _bytes: u64) -> Result<()> {
        if request.is_write() && self.power.writes.fetch_add(1, Ordering::AcqRel) >= self.power.last {
            self.power.cut.send_replace(true);
        }
        self.powered().await;
        Ok(())
    }

    async fn after(&self, (): ()) -> Result<()> {
        self.powered().await;
        Ok(())
    }
}

impl_object_store!(PowerCut);

#[cfg(test)]
mod tests;

//! A store whose writes wait for as long as a test likes.

use std::sync::Arc;

use object_store::{ObjectStore, Result};
use tokio::sync::watch;

use super::intercept::{Intercept, Request, impl_object_store};

/// A store with a gate before its writes: the deterministic form of a store with a slow flush. Reads pass at any time.
///
/// The gate is open at first. While it is closed, writes wait and have not reached the wrapped store; a write whose
/// caller gives up is gone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> object_store::Result<()> {
/// use std::sync::Arc;
///
/// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
/// use workflow_testkit::Gate;
///
/// let gate = Gate::new(Arc::new(InMemory::new()));
/// gate.close();
/// let store = gate.clone();
/// let put = tokio::spawn(async move { store.put(&Path::from("a"), "1".into()).await });
/// gate.until_waiting(1).await;
/// assert!(gate.get(&Path::from("a")).await.is_err());
/// gate.open();
/// put.await.expect("the task does not panic")?;
/// assert!(gate.get(&Path::from("a")).await.is_ok());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    store: Arc<dyn ObjectStore>,
    position: Arc<watch::Sender<Position>>,
    waiting: Arc<watch::Sender<usize>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Position {
    closed: bool,
    /// How often the gate was opened: whoever waited then may pass, even if it was closed again at once.
    openings: u64,
}

impl Gate {
    /// A store over `store`, its gate open.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, position: Arc::default(), waiting: Arc::default() }
    }

    /// Holds back the writes that begin from now on.
    pub fn close(&self) {
        self.position.send_modify(|position| position.closed = true);
    }

    /// Lets every waiting write pass, and the writes to come.
    pub fn open(&self) {
        self.position.send_modify(|position| {
            position.closed = false;
            position.openings += 1;
        });
    }

    /// How many writes wait.
    pub fn waiting(&self) -> usize {
        *self.waiting.borrow()
    }

    /// Returns once at least `count` writes wait. Dropping the future has no effect.
    pub async fn until_waiting(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let _ = waiting.wait_for(|waiting| *waiting >= count).await;
    }
}

/// Counts one waiting write.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

impl Intercept for Gate {
    type Passage = ();

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    async fn before(&self, request: Request, _bytes: u64) -> Result<()> {
        if !request.is_write() {
            return Ok(());
        }
        let mut position = self.position.subscribe();
        let Position { closed, openings } = *position.borrow_and_update();
        if closed {
            let _waiting = Waiting::new(&self.waiting);
            let _ = position.wait_for(|position| position.openings > openings).await;
        }
        Ok(())
    }

    async fn after(&self, (): ()) -> Result<()> {
        Ok(())
    }
}

impl_object_store!(Gate);

#[cfg(test)]
mod tests;

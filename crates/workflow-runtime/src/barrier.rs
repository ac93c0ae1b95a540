//! The barrier of a step: whether a crash can still undo what it stands on.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::Result;

/// What [`Step::sync`](crate::Step::sync) waits for.
#[derive(Clone)]
pub struct Barrier(Arc<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>);

impl Barrier {
    /// A barrier that opens when the future of `durable` resolves, for tests of a runner.
    ///
    /// ```
    /// use workflow_runtime::{Barrier, EffectsError, Step};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let mut step = Step::detached("order 17");
    /// assert!(step.sync().await.is_ok());
    /// step.barrier = Barrier::new(|| async { Err(EffectsError::Undone.into()) });
    /// assert!(step.sync().await.is_err());
    /// # }
    /// ```
    pub fn new<F>(durable: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(durable())))
    }

    /// A barrier that is open.
    pub fn detached() -> Self {
        Self::new(|| async { Ok(()) })
    }

    pub(crate) async fn wait(&self) -> Result<()> {
        (self.0)().await
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Barrier")
    }
}

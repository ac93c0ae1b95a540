//! Where puts run: this crate has no async runtime, so whoever makes a memo says it.

use std::fmt;
use std::pin::Pin;

/// Work that is to run to its end.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a memo's puts.
pub struct Spawn(Box<dyn Fn(Work) -> Work + Send + Sync>);

impl Spawn {
    /// Runs work by `run`, which begins it before it returns. The future that it gives ends when the work does;
    /// dropping it leaves the work alone.
    pub fn new(run: impl Fn(Work) -> Work + Send + Sync + 'static) -> Self {
        Self(Box::new(run))
    }

    /// Runs work where it is waited for: dropping the future drops the work. For memos outside any runtime.
    pub fn inline() -> Self {
        Self::new(|work| work)
    }

    pub(crate) fn run(&self, work: Work) -> Work {
        (self.0)(work)
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawn")
    }
}

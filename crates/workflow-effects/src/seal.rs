//! The mark that an attempt has ended, shared by its handles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the handles of one attempt that it has ended: returned, timed out, lost its lease, was cancelled. Clones
/// share the mark.
#[derive(Clone, Debug, Default)]
pub struct Seal(Arc<AtomicBool>);

impl Seal {
    /// A mark for an attempt that goes on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the attempt, for good.
    pub fn seal(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the attempt has ended.
    pub fn is_sealed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_sealed_together() {
        let seal = Seal::new();
        let clone = seal.clone();
        assert!(!clone.is_sealed());
        seal.seal();
        assert!(clone.is_sealed());
    }
}

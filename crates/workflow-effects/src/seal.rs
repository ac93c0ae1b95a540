//! The mark that an attempt has ended, shared by its handles, and what of theirs is still in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Set in the state once the attempt has ended; the other bits count what is in flight.
const SEALED: u64 = 1 << 63;

/// Tells the handles of one attempt that it has ended: returned, timed out, lost its lease, was cancelled. It counts
/// the work that they have begun before, which may go on after the end. Clones share the mark.
#[derive(Clone, Debug, Default)]
pub struct Seal(Arc<AtomicU64>);

/// Work of an attempt's handles, in flight until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct InFlight(Seal);

impl Seal {
    /// A mark for an attempt that goes on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the attempt, for good.
    pub fn seal(&self) {
        self.0.fetch_or(SEALED, Ordering::AcqRel);
    }

    /// Whether the attempt has ended.
    pub fn is_sealed(&self) -> bool {
        self.0.load(Ordering::Acquire) & SEALED != 0
    }

    /// Begins work, unless the attempt has ended.
    pub fn enter(&self) -> Option<InFlight> {
        let more = |state| (state & SEALED == 0).then_some(state + 1);
        let entered = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.is_ok().then(|| InFlight(self.clone()))
    }

    /// Whether the attempt has ended and nothing of it is in flight: its handles write nothing any more.
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == SEALED
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
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

    #[test]
    fn what_was_begun_before_the_end_may_outlast_it() {
        let seal = Seal::new();
        let clone = seal.clone();
        let (first, second) = (seal.enter().unwrap(), clone.enter().unwrap());
        drop(first);
        assert!(!seal.is_idle(), "the attempt goes on");
        seal.seal();
        seal.seal();
        assert!(seal.is_sealed() && !seal.is_idle());
        assert!(seal.enter().is_none());
        drop(second);
        assert!(seal.is_idle() && clone.is_idle() && seal.enter().is_none());
    }
}

//! What a process knows of the times at which runs have ended.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use workflow_core::Timestamp;

use super::FORGOTTEN;

/// The earliest end that there may be a run of. Every end that this process brings lowers it; in the beginning nothing
/// is known.
pub(crate) struct Ends {
    earliest: Mutex<Timestamp>,
    lowered: Notify,
}

impl Default for Ends {
    fn default() -> Self {
        Self { earliest: Mutex::new(FORGOTTEN), lowered: Notify::new() }
    }
}

impl Ends {
    /// A run has ended at `at`.
    pub(crate) fn note(&self, at: Timestamp) {
        let mut earliest = self.earliest.lock().unwrap_or_else(PoisonError::into_inner);
        if at < *earliest {
            *earliest = at;
            self.lowered.notify_one();
        }
    }

    /// The earliest end; [`Timestamp::NEVER`] when there is none.
    pub(crate) fn earliest(&self) -> Timestamp {
        *self.earliest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Others may have ended runs: as in the beginning, nothing is known.
    pub(crate) fn forget(&self) {
        self.note(FORGOTTEN);
    }

    /// The earliest end, which the caller looks after: only later notes count from now on.
    pub(super) fn take(&self) -> Timestamp {
        std::mem::replace(&mut *self.earliest.lock().unwrap_or_else(PoisonError::into_inner), Timestamp::NEVER)
    }

    /// Returns when an earlier end has been noted than any that was known, since the last call returned.
    pub(crate) async fn lowered(&self) {
        self.lowered.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn only_an_earlier_end_is_news() {
        let (ends, at) = (Ends::default(), Timestamp::from_millis);
        assert_eq!(ends.take(), FORGOTTEN);
        assert_eq!(ends.earliest(), Timestamp::NEVER);
        assert!(ends.lowered().now_or_never().is_none());
        ends.note(at(7));
        assert!(ends.lowered().now_or_never().is_some());
        ends.note(at(9));
        assert!(ends.lowered().now_or_never().is_none());
        assert_eq!((ends.earliest(), ends.take(), ends.earliest()), (at(7), at(7), Timestamp::NEVER));
    }
}

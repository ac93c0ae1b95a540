//! How a store is flushed, with what fits each kind of store.

use std::time::Duration;

use super::url::{Named, parse};
use crate::{Error, Result};

/// How a store is opened. Fields may be added, so begin with [`for_url`](Self::for_url), [`local`](Self::local) or
/// [`bucket`](Self::bucket).
///
/// A *flush* writes what was committed since the last one as one object of the storage engine's log. There is one at a
/// time, and on a bucket each is a request that is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSettings {
    /// The least time from the start of a flush to the start of the next, up to a minute. A commit after a quiet time is
    /// flushed at once; what comes less than this after a flush waits for the rest of it, and travels together.
    pub flush_gap: Duration,
    /// How long what nobody waits for may wait for its flush, from 1 ms up to a minute: the claims and acknowledgements
    /// of queue jobs, which a crash may undo without harm. They travel with the next commit that comes before.
    pub flush_interval: Duration,
}

/// The most that either may be.
const MOST: Duration = Duration::from_secs(60);
/// The least flush interval: what timers can tell apart.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

impl OpenSettings {
    /// What fits a store in memory or in a directory, where a flush costs next to nothing: no gap, and an interval of
    /// 10 ms.
    pub fn local() -> Self {
        Self { flush_gap: Duration::ZERO, flush_interval: Duration::from_millis(10) }
    }

    /// What fits a bucket, where a write takes tens of milliseconds and is paid for: a gap of 20 ms, which is what the
    /// quickest write takes, so that it delays no run whose steps follow each other and still bounds what is paid where
    /// writes are quicker; and an interval of 500 ms, so that what nobody waits for nearly always travels with a commit.
    pub fn bucket() -> Self {
        Self { flush_gap: Duration::from_millis(20), flush_interval: Duration::from_millis(500) }
    }

    /// What fits the store that `url` names.
    ///
    /// # Errors
    ///
    /// As [`open`](crate::open) when the URL names no store.
    pub fn for_url(url: &str) -> Result<Self> {
        Ok(match parse(url)? {
            Named::Memory | Named::Directory(_) => Self::local(),
            Named::Bucket => Self::bucket(),
        })
    }

    /// Checks the ranges of the fields.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |option, problem: &str| Err(Error::InvalidOption { option, problem: problem.to_owned() });
        if self.flush_gap > MOST {
            return refuse("flush_gap", "it is at most 1 min");
        }
        if !(LEAST_INTERVAL..=MOST).contains(&self.flush_interval) {
            return refuse("flush_interval", "it is at least 1 ms and at most 1 min");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut OpenSettings), accepted: bool) {
        let mut settings = OpenSettings::local();
        change(&mut settings);
        assert_eq!(settings.check().is_ok(), accepted, "{settings:?}");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        check(|_| (), true);
        check(|settings| *settings = OpenSettings::bucket(), true);
        check(|settings| settings.flush_gap = MOST, true);
        check(|settings| settings.flush_gap = MOST + Duration::from_nanos(1), false);
        check(|settings| settings.flush_interval = LEAST_INTERVAL, true);
        check(|settings| settings.flush_interval = Duration::ZERO, false);
        check(|settings| settings.flush_interval = Duration::MAX, false);
    }
}

//! Points in time as the queue's clock tells them, with arithmetic that cannot overflow.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch. Nothing lies beyond [`Timestamp::NEVER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The last millisecond of the year 9999. Whatever is due then or later is never due.
    pub const NEVER: Self = Self(253_402_300_799_999);

    /// The time `millis` milliseconds after the epoch, at most [`Timestamp::NEVER`].
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::NEVER.0 { Self::NEVER } else { Self(millis) }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time `delay` later, at most [`Timestamp::NEVER`]. A part of a millisecond counts as a whole one, so that
    /// nothing is due too early.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let millis = delay.as_nanos().div_ceil(1_000_000);
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// How long it is from now until this time; zero when it has passed.
    pub fn since(self, now: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(now.0))
    }
}

/// A time before the epoch counts as the epoch.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(0).after(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_millis(time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_time_is_reached_and_not_passed() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(now.after(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER.after(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::NEVER);
    }

    #[test]
    fn a_part_of_a_millisecond_waits_for_the_whole() {
        let now = Timestamp::from_millis(5);
        assert_eq!(now.after(Duration::from_nanos(1)).as_millis(), 6);
        assert_eq!(now.after(Duration::ZERO), now);
    }

    #[test]
    fn a_time_before_the_epoch_is_the_epoch() {
        let before = UNIX_EPOCH - Duration::from_secs(5);
        assert_eq!(Timestamp::from(before).as_millis(), 0);
    }

    #[test]
    fn system_time_survives_the_round_trip() {
        let time = UNIX_EPOCH + Duration::from_millis(1_234_567);
        assert_eq!(SystemTime::from(Timestamp::from(time)), time);
    }
}

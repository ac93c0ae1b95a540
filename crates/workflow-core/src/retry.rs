//! How long to wait before the next attempt: exponential, capped, with full jitter from entropy in the event.

use std::time::Duration;

use crate::Timestamp;

/// The wait before each further attempt of a step or hook.
///
/// The ceiling of the wait before attempt *n + 1* is `base * factor^(n - 1)`, at most `cap`. It never falls and never
/// overflows, whatever the numbers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The ceiling after the first attempt.
    pub base: Duration,
    /// What each further attempt multiplies the ceiling by; 0 counts as 1.
    pub factor: u32,
    /// The highest ceiling.
    pub cap: Duration,
    /// How the wait is drawn below its ceiling.
    pub jitter: Jitter,
}

/// How a wait is drawn below its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// Evenly between zero and the ceiling, so that runs that failed together do not return together.
    Full,
    /// Always the ceiling.
    None,
}

impl Default for RetryPolicy {
    /// 1 s, doubling up to 5 min, full jitter.
    fn default() -> Self {
        Self { base: Duration::from_secs(1), factor: 2, cap: Duration::from_secs(300), jitter: Jitter::Full }
    }
}

impl RetryPolicy {
    /// The longest wait after the failed attempt number `attempt` (from 1).
    pub fn ceiling(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1);
        let multiplier = u128::from(self.factor.max(1)).saturating_pow(doublings);
        let nanos = self.base.as_nanos().saturating_mul(multiplier);
        if nanos >= self.cap.as_nanos() { self.cap } else { from_nanos(nanos) }
    }

    /// The wait after the failed attempt number `attempt` (from 1), in whole milliseconds when jittered.
    pub fn delay(&self, attempt: u32, entropy: u64) -> Duration {
        let ceiling = self.ceiling(attempt);
        match self.jitter {
            Jitter::None => ceiling,
            Jitter::Full => {
                let millis = u64::try_from(ceiling.as_millis()).unwrap_or(u64::MAX);
                let millis = Timestamp::from_millis(millis).as_millis();
                let drawn = ((u128::from(millis) + 1) * u128::from(entropy)) >> u64::BITS;
                Duration::from_millis(u64::try_from(drawn).unwrap_or(millis))
            }
        }
    }
}

/// The duration of so many nanoseconds, at most [`Duration::MAX`].
fn from_nanos(nanos: u128) -> Duration {
    const PER_SECOND: u128 = 1_000_000_000;
    let (seconds, rest) = (nanos / PER_SECOND, (nanos % PER_SECOND) as u32);
    u64::try_from(seconds).map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(base: Duration, factor: u32, cap: Duration) -> RetryPolicy {
        RetryPolicy { base, factor, cap, jitter: Jitter::None }
    }

    #[test]
    fn the_default_doubles_up_to_five_minutes() {
        let seconds: Vec<u64> = (1..=11).map(|n| RetryPolicy::default().ceiling(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn extreme_numbers_saturate() {
        let extreme = policy(Duration::MAX, u32::MAX, Duration::MAX);
        assert_eq!(extreme.ceiling(u32::MAX), Duration::MAX);
        let jittered = RetryPolicy { jitter: Jitter::Full, ..extreme };
        assert!(jittered.delay(u32::MAX, u64::MAX) <= Duration::from_millis(Timestamp::NEVER.as_millis()));
        assert_eq!(policy(Duration::from_secs(1), 0, Duration::MAX).ceiling(9), Duration::from_secs(1));
        assert_eq!(policy(Duration::from_secs(9), 2, Duration::ZERO).ceiling(1), Duration::ZERO);
    }

    #[test]
    fn the_smallest_base_reaches_the_cap() {
        let cap = Duration::from_secs(300);
        assert_eq!(policy(Duration::from_nanos(1), 2, cap).ceiling(64), cap);
    }

    #[test]
    fn jitter_stays_below_a_ceiling_of_less_than_a_millisecond() {
        let policy = RetryPolicy { jitter: Jitter::Full, ..policy(Duration::from_micros(1_500), 1, Duration::MAX) };
        assert_eq!(policy.delay(1, u64::MAX), Duration::from_millis(1));
    }

    #[test]
    fn full_jitter_reaches_from_zero_to_the_ceiling() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay(3, 0), Duration::ZERO);
        assert_eq!(policy.delay(3, u64::MAX), Duration::from_secs(4));
        assert_eq!(policy.delay(3, u64::MAX / 2), Duration::from_secs(2));
    }
}

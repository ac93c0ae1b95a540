//! Time over Taquba: the queue's clock as the port tells it, and the clock that `open` gives the queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use workflow_core::Timestamp;

use crate::port::Clock;

/// The clock of a queue.
pub(super) struct QueueClock(pub(super) Arc<dyn ::taquba::Clock>);

#[async_trait]
impl Clock for QueueClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.now_ms())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A wall-clock step larger than this is a jump: the clock was set, or the machine slept.
const JUMP_MS: u64 = 1_000;
/// The clock is asked at least once a second. When nobody has asked for longer than this, the process was stopped: the
/// time since is a jump too, or every lease would have ended unseen.
const QUIET_MS: u64 = 1_500;

/// The wall clock with its jumps taken out: it stands still while the wall clock is behind it, and follows a jump
/// forward only when told to, so that the leases can be extended first.
pub(super) struct SteadyClock {
    state: Mutex<Steady>,
}

struct Steady {
    /// Where the clock stood at `since`, by the steady clock of the machine.
    anchor_ms: u64,
    since: Instant,
    /// The last time told.
    last_ms: u64,
}

impl SteadyClock {
    pub(super) fn new() -> Self {
        let now_ms = wall_ms();
        Self { state: Mutex::new(Steady { anchor_ms: now_ms, since: Instant::now(), last_ms: now_ms }) }
    }

    /// How far the wall clock has jumped ahead of this one, if it has.
    pub(super) fn jump(&self) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall_ms, now) = (wall_ms(), Instant::now());
        let jump_ms = state.jump_ms(wall_ms, now);
        if jump_ms.is_none() {
            state.tell(wall_ms, now);
        }
        jump_ms.map(Duration::from_millis)
    }

    /// Follows a jump of the wall clock, by as much as it was told and no further.
    pub(super) fn follow(&self, jump: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.follow(jump, Instant::now());
    }
}

impl ::taquba::Clock for SteadyClock {
    fn now_ms(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tell(wall_ms(), Instant::now())
    }
}

impl Steady {
    fn expected_ms(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.since).as_millis();
        self.anchor_ms.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX).min(QUIET_MS))
    }

    fn jump_ms(&self, wall_ms: u64, now: Instant) -> Option<u64> {
        let ahead = wall_ms.saturating_sub(self.expected_ms(now).max(self.last_ms));
        (ahead > JUMP_MS).then_some(ahead)
    }

    fn tell(&mut self, wall_ms: u64, now: Instant) -> u64 {
        if self.jump_ms(wall_ms, now).is_some() {
            self.last_ms = self.last_ms.max(self.expected_ms(now));
        } else {
            self.last_ms = self.last_ms.max(wall_ms);
            self.anchor(self.last_ms, now);
        }
        self.last_ms
    }

    fn follow(&mut self, jump: Duration, now: Instant) {
        let jump_ms = u64::try_from(jump.as_millis()).unwrap_or(u64::MAX);
        self.anchor(self.expected_ms(now).max(self.last_ms).saturating_add(jump_ms), now);
    }

    fn anchor(&mut self, at_ms: u64, now: Instant) {
        self.anchor_ms = at_ms.max(self.last_ms);
        self.since = now;
    }
}

fn wall_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Times {
        clock: Steady,
        start: Instant,
    }

    impl Times {
        fn new() -> Self {
            let start = Instant::now();
            Self { clock: Steady { anchor_ms: 10_000, since: start, last_ms: 10_000 }, start }
        }

        fn tell(&mut self, wall_ms: u64, elapsed_ms: u64) -> u64 {
            self.clock.tell(wall_ms, self.start + Duration::from_millis(elapsed_ms))
        }

        fn jump(&self, wall_ms: u64, elapsed_ms: u64) -> Option<u64> {
            self.clock.jump_ms(wall_ms, self.start + Duration::from_millis(elapsed_ms))
        }
    }

    #[test]
    fn it_goes_with_the_wall_clock() {
        let mut times = Times::new();
        assert_eq!(times.tell(10_500, 500), 10_500);
        assert_eq!(times.tell(11_400, 1_000), 11_400);
    }

    #[test]
    fn it_stands_still_while_the_wall_clock_is_behind() {
        let mut times = Times::new();
        assert_eq!(times.tell(4_000, 500), 10_000);
        assert_eq!(times.tell(9_000, 5_500), 10_000);
        assert_eq!(times.tell(10_200, 6_700), 10_200);
    }

    #[test]
    fn a_process_that_was_stopped_finds_a_jump() {
        let mut times = Times::new();
        assert_eq!(times.tell(10_900, 900), 10_900);
        assert_eq!(times.jump(70_900, 60_900), Some(58_500));
        assert_eq!(times.tell(70_900, 60_900), 12_400);
    }

    #[test]
    fn it_follows_a_jump_only_when_told_to() {
        let mut times = Times::new();
        assert_eq!(times.tell(3_610_500, 500), 10_500);
        assert_eq!(times.tell(3_611_000, 1_000), 11_000);
        assert_eq!(times.jump(3_611_000, 1_000), Some(3_600_000));
        times.clock.follow(Duration::from_secs(3_600), times.start + Duration::from_millis(1_000));
        assert_eq!(times.tell(3_611_200, 1_200), 3_611_200);
        assert_eq!(times.jump(3_611_200, 1_200), None);
    }

    #[test]
    fn it_follows_no_further_than_the_leases_were_told() {
        let mut times = Times::new();
        assert_eq!(times.jump(3_611_000, 1_000), Some(3_600_000));
        times.clock.follow(Duration::from_secs(3_600), times.start + Duration::from_millis(1_000));
        assert_eq!(times.tell(7_211_000, 1_000), 3_611_000);
        assert_eq!(times.jump(7_211_000, 1_000), Some(3_600_000));
    }
}

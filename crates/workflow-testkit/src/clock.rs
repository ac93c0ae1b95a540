//! Virtual time: it jumps when everything waits.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use workflow_runtime::port::{Clock, Timestamp};

use crate::watch;

/// Where a [`VirtualClock`] starts: the year 2000.
const START: Timestamp = Timestamp::from_millis(946_684_800_000);
/// The most skips that are remembered.
const MAX_SKIPS: usize = 1_000;

/// A clock whose time is that of the async runtime it runs on.
///
/// On a paused runtime (`#[tokio::test(start_paused = true)]`) nothing takes time, and once every task waits, time
/// jumps to the end of the earliest wait: a year of timers passes at once, in the order of the timers. The clock tells
/// what was [`skipped`](Self::skipped). Waits of the application's own jump as well, if they are tokio's.
///
/// Like a machine's clock it can be [`set`](Self::set) forwards and back; [`now`](Clock::now) stands still until a
/// clock that was set back has caught up. Clones are the same clock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
///
/// use workflow_runtime::port::Clock;
/// use workflow_testkit::VirtualClock;
///
/// let clock = VirtualClock::new();
/// clock.sleep(Duration::from_secs(3600)).await;
/// assert_eq!(clock.skipped()[0].to_string(), "skipped 3600s, to the end of a sleep of 3600s");
/// # }
/// ```
#[derive(Clone)]
pub struct VirtualClock {
    state: Arc<Mutex<State>>,
    /// Changes whenever the clock is set.
    set: watch::Sender<()>,
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VirtualClock").field(&*self.lock()).finish()
    }
}

#[derive(Debug)]
struct State {
    /// When the clock was made, by the runtime's time.
    since: Instant,
    /// What it showed then, plus all that it was set forwards since, less all that it was set back.
    base_ms: i128,
    /// The last time told.
    told: Timestamp,
    /// When somebody last looked.
    seen: Instant,
    skips: VecDeque<Skip>,
}

/// A jump of virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// How far it went.
    pub duration: Duration,
    /// What it ended: the wait that was over first.
    pub until: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped {:?}, to {}", self.duration, self.until)
    }
}

/// How a clock is set wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    /// Ahead by so much.
    Forwards(Duration),
    /// Back by so much.
    Back(Duration),
}

impl VirtualClock {
    /// A clock that starts at the beginning of the year 2000.
    pub fn new() -> Self {
        Self::starting_at(START)
    }

    /// A clock that starts at `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        let now = Instant::now();
        let base_ms = i128::from(start.as_millis());
        let state = State { since: now, base_ms, told: start, seen: now, skips: VecDeque::new() };
        Self { state: Arc::new(Mutex::new(state)), set: watch::Sender::new(()) }
    }

    /// Sets the clock wrong, or right again. Waits are as long as they were, but whoever waits for jobs that are due looks
    /// again.
    pub fn set(&self, step: ClockStep) {
        self.step(step);
        self.set.send_modify(|()| {});
    }

    fn step(&self, step: ClockStep) {
        let mut state = self.lock();
        let millis = |duration: Duration| i128::try_from(duration.as_millis()).unwrap_or(i128::MAX);
        let base_ms = match step {
            ClockStep::Forwards(by) => state.base_ms.saturating_add(millis(by)),
            ClockStep::Back(by) => state.base_ms.saturating_sub(millis(by)),
        };
        state.base_ms = base_ms;
    }

    /// Goes on, on another async runtime, from the last time told.
    pub(crate) fn go_on(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        (state.since, state.seen, state.base_ms) = (now, now, i128::from(state.told.as_millis()));
    }

    /// Changes whenever the clock is set.
    pub(crate) fn settings(&self) -> watch::Receiver<()> {
        self.set.subscribe()
    }

    /// The last thousand jumps of time, oldest first. On a runtime that is not paused, the passing of time counts.
    pub fn skipped(&self) -> Vec<Skip> {
        self.lock().skips.iter().cloned().collect()
    }

    /// Waits until `end` by the runtime's time. `what` names the end of the wait, should time jump there.
    pub(crate) async fn sleep_until(&self, end: Instant, what: impl FnOnce() -> String) {
        tokio::time::sleep_until(end).await;
        self.lock().see(what);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let mut state = self.lock();
        state.see(|| "the end of a wait of tokio's".to_owned());
        let elapsed = i128::try_from((state.seen - state.since).as_millis()).unwrap_or(i128::MAX);
        let shown = u64::try_from(state.base_ms.saturating_add(elapsed).max(0)).unwrap_or(u64::MAX);
        state.told = state.told.max(Timestamp::from_millis(shown));
        state.told
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        self.lock().see(|| format!("the end of a sleep of {duration:?}"));
    }
}

impl State {
    /// Notes how far time has jumped since the last look. The first to look after a jump is whoever it woke.
    fn see(&mut self, what: impl FnOnce() -> String) {
        let now = Instant::now();
        let duration = now - self.seen;
        if duration.is_zero() {
            return;
        }
        self.seen = now;
        if self.skips.len() == MAX_SKIPS {
            self.skips.pop_front();
        }
        self.skips.push_back(Skip { duration, until: what() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn time_jumps_to_the_end_of_each_wait_and_tells_whose_it_was() {
        let clock = VirtualClock::new();
        let start = clock.now();
        tokio::join!(clock.sleep(2 * HOUR), clock.sleep(HOUR), tokio::time::sleep(3 * HOUR));
        assert_eq!(clock.now().since(start), 3 * HOUR);
        let skipped: Vec<_> = clock.skipped().iter().map(ToString::to_string).collect();
        assert_eq!(
            skipped,
            [
                "skipped 3600s, to the end of a sleep of 3600s",
                "skipped 3600s, to the end of a sleep of 7200s",
                "skipped 3600s, to the end of a wait of tokio's",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_stands_still_until_it_has_caught_up() {
        let clock = VirtualClock::new();
        let start = clock.now();
        clock.set(ClockStep::Back(2 * HOUR));
        clock.sleep(HOUR).await;
        assert_eq!(clock.now(), start);
        clock.sleep(2 * HOUR).await;
        assert_eq!(clock.now().since(start), HOUR);
        clock.set(ClockStep::Forwards(5 * HOUR));
        assert_eq!(clock.now().since(start), 6 * HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_absurdly_stays_within_time() {
        let clock = VirtualClock::new();
        let start = clock.now();
        clock.set(ClockStep::Back(Duration::MAX));
        assert_eq!(clock.now(), start);
        clock.set(ClockStep::Forwards(Duration::MAX));
        clock.set(ClockStep::Forwards(Duration::MAX));
        assert_eq!(clock.now(), Timestamp::NEVER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_year_of_timers_passes_at_once() {
        let clock = VirtualClock::new();
        let start = clock.now();
        for _ in 0..365 * 24 {
            clock.sleep(HOUR).await;
        }
        assert_eq!(clock.now().since(start), 365 * 24 * HOUR);
        assert_eq!(clock.skipped().len(), MAX_SKIPS);
    }
}

//! Waiting out a store that cannot answer: longer each time, up to a few seconds.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::port::Clock;

const FIRST: Duration = Duration::from_millis(20);
const LAST: Duration = Duration::from_secs(5);

/// The pauses between the tries of one operation.
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Waits for the next try, or until `stop` fires.
    pub(crate) async fn pause(&mut self, clock: &dyn Clock, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = clock.sleep(self.0) => {}
        }
        self.0 = (self.0 * 2).min(LAST);
    }
}

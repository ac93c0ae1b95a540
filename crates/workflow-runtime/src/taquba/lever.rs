//! The flush lever: makes what is in the log durable at once, instead of at the next tick of the flush interval.
//!
//! Taquba has no call that flushes, but a pass of its inbox that settles an entry flushes before it deletes the entry. So
//! the queue is opened with an inbox in memory that nobody else knows, with one entry in it that never goes. Where that
//! stops working, commits are durable at the next tick.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::taquba::Queue;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

pub(super) use self::inbox::FlushInbox;

mod inbox;

/// How long the lever is left alone after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// After a flush for several, the next waits for this part of the time that the flush took: whoever it answered commits
/// again soon, and those would wait for two flushes if one began without them.
const BOARDING_PART: u32 = 16;
/// What timers can tell apart. A shorter wait would take longer than it is worth.
const TIMER_TICK: Duration = Duration::from_millis(1);

/// Flushes for as long as somebody waits for a commit.
pub(super) struct Lever {
    pulls: Arc<Pulls>,
}

/// Somebody waits for a commit, until this is dropped.
pub(super) struct Pull<'a>(&'a Pulls);

#[derive(Default)]
struct Pulls {
    waiting: AtomicUsize,
    wake: Notify,
    gone: AtomicBool,
}

impl Lever {
    /// Flushes `queue`, which was opened with `inbox`, whenever somebody waits, and begins no flush within `gap` of the
    /// one before. The queue can be closed: it is held during a flush only, and no flush is cut short.
    pub(super) fn new(queue: Weak<Queue>, inbox: FlushInbox, gap: Duration) -> Self {
        let pulls = Arc::new(Pulls::default());
        tokio::spawn(flush_while_pulled(queue, inbox, pulls.clone(), gap));
        Self { pulls }
    }

    /// Flushes until the pull is dropped.
    pub(super) fn pull(&self) -> Pull<'_> {
        if self.pulls.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            self.pulls.wake.notify_one();
        }
        Pull(&self.pulls)
    }
}

impl Drop for Lever {
    fn drop(&mut self) {
        self.pulls.gone.store(true, Ordering::Release);
        self.pulls.wake.notify_one();
    }
}

impl Drop for Pull<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn flush_while_pulled(queue: Weak<Queue>, mut inbox: FlushInbox, pulls: Arc<Pulls>, gap: Duration) {
    let mut failed = false;
    let mut earliest = Instant::now();
    loop {
        pulls.wake.notified().await;
        while pulls.waiting.load(Ordering::Acquire) > 0 {
            let began = Instant::now();
            if began < earliest {
                tokio::time::sleep_until(earliest).await;
                continue;
            }
            // What was begun just now gets into the log first.
            tokio::task::yield_now().await;
            let Some(queue) = queue.upgrade() else { return };
            let before = pulls.waiting.load(Ordering::Acquire);
            let flushed = flush(&mut inbox, &queue).await;
            drop(queue);
            if let Err(problem) = flushed {
                if !failed {
                    warn!(problem, "commits wait for the flush interval");
                }
                failed = true;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            failed = false;
            let is_for_several = before.max(pulls.waiting.load(Ordering::Acquire)) > 1;
            earliest = (began + gap).max(end_of_boarding(began, is_for_several));
        }
        if pulls.gone.load(Ordering::Acquire) {
            return;
        }
    }
}

/// Flushes once, or says why that does not work.
async fn flush(inbox: &mut FlushInbox, queue: &Queue) -> Result<(), String> {
    match inbox.flush(queue).await {
        Ok(true) => Ok(()),
        Ok(false) => Err("a pass of the inbox does not flush".to_owned()),
        Err(cause) => Err(cause.to_string()),
    }
}

/// When those are back whom the flush has answered that began at `began` and has just ended.
fn end_of_boarding(began: Instant, is_for_several: bool) -> Instant {
    let now = Instant::now();
    let boarding = now.duration_since(began) / BOARDING_PART;
    if is_for_several && boarding >= TIMER_TICK { now + boarding } else { now }
}

#[cfg(test)]
mod tests;

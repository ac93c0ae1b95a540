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
use tracing::warn;

pub(super) use self::inbox::FlushInbox;

mod inbox;

/// How long the lever is left alone after a failure.
const PAUSE: Duration = Duration::from_secs(1);

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
    /// Flushes `queue`, which was opened with `inbox`, whenever somebody waits. The queue can be closed: it is held
    /// during a flush only, and no flush is cut short.
    pub(super) fn new(queue: Weak<Queue>, inbox: FlushInbox) -> Self {
        let pulls = Arc::new(Pulls::default());
        tokio::spawn(flush_while_pulled(queue, inbox, pulls.clone()));
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

async fn flush_while_pulled(queue: Weak<Queue>, mut inbox: FlushInbox, pulls: Arc<Pulls>) {
    let mut failed = false;
    loop {
        pulls.wake.notified().await;
        while pulls.waiting.load(Ordering::Acquire) > 0 {
            // What was begun just now gets into the log first.
            tokio::task::yield_now().await;
            let Some(queue) = queue.upgrade() else { return };
            let flushed = inbox.flush(&queue).await;
            drop(queue);
            let problem = match flushed {
                Ok(true) => {
                    failed = false;
                    continue;
                }
                Ok(false) => "a pass of the inbox does not flush".to_owned(),
                Err(cause) => cause.to_string(),
            };
            if !failed {
                warn!(problem, "commits wait for the flush interval");
            }
            failed = true;
            tokio::time::sleep(PAUSE).await;
        }
        if pulls.gone.load(Ordering::Acquire) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;

//! The flush lever: makes what is in the log durable at once, instead of at the next tick of the flush interval.
//!
//! Taquba has no call that flushes, but a pass of its inbox that settles an entry ends with a flush. So the queue is
//! opened with an inbox in memory that nobody else knows, and one entry is sent to it again and again under the same
//! id: from the second time on it changes nothing. Where that stops working, commits are durable at the next tick.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::taquba::{CancelEntry, InboxOptions, InboxSender, Queue};
use object_store::memory::InMemory;
use tokio::sync::Notify;
use tracing::warn;

/// The one queue of the inbox, the one entry in it, and the job that the entry is about, which is not there.
const NOTHING: &str = "workflow-flush";
const INBOX_PATH: &str = "inbox";
/// How seldom the queue looks into the inbox by itself.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3_600);
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

/// The sender to the inbox.
pub(super) struct FlushInbox(InboxSender);

impl FlushInbox {
    /// An inbox, and what to open a queue with it.
    pub(super) fn new() -> (Self, InboxOptions) {
        let store = Arc::new(InMemory::new());
        let options = InboxOptions::new([NOTHING])
            .object_store(store.clone() as Arc<dyn object_store::ObjectStore>)
            .path(INBOX_PATH.to_owned())
            .interval(NEVER)
            .touch_poll_interval(None);
        (Self(InboxSender::new(store, INBOX_PATH)), options)
    }

    /// Flushes everything that `queue` has committed so far.
    async fn flush(&self, queue: &Queue) -> ::taquba::Result<()> {
        let entry = CancelEntry { job_id: NOTHING.to_owned() };
        self.0.send_with_id(NOTHING, NOTHING, entry).await?;
        queue.apply_inbox_now().await
    }
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

async fn flush_while_pulled(queue: Weak<Queue>, inbox: FlushInbox, pulls: Arc<Pulls>) {
    let mut failed = false;
    loop {
        pulls.wake.notified().await;
        while pulls.waiting.load(Ordering::Acquire) > 0 {
            // What was begun just now gets into the log first.
            tokio::task::yield_now().await;
            let Some(queue) = queue.upgrade() else { return };
            let flushed = inbox.flush(&queue).await;
            drop(queue);
            match flushed {
                Ok(()) => failed = false,
                Err(cause) => {
                    if !failed {
                        warn!(error = &cause as &dyn std::error::Error, "commits wait for the flush interval");
                    }
                    failed = true;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if pulls.gone.load(Ordering::Acquire) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;

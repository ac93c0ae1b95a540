//! Taquba's errors in the port's terms, and whether the queue can be used at all after one.

use std::time::Duration;

use ::slatedb::{CloseReason, ErrorKind};
use workflow_effects::Error;

use super::queue::{MARK_KEY, Shared};

/// Whoever waits looks this often whether the store has closed.
const LOOK: Duration = Duration::from_secs(5);
/// What SlateDB says when the system's clock is behind its last write. It has no kind of its own.
const CLOCK_BEHIND: &str = "invalid clock tick";

/// The system's clock is behind the last write of the store, which orders its writes by that clock.
#[derive(Debug, thiserror::Error)]
#[error("the system's clock is behind the last write of the store; it must catch up before anything can be written")]
pub(super) struct ClockBehind(#[source] pub(super) ::taquba::Error);

impl ClockBehind {
    /// Whether `cause` says so.
    pub(super) fn is_told_by(cause: &::taquba::Error) -> bool {
        matches!(cause, ::taquba::Error::Storage(storage) if storage.to_string().contains(CLOCK_BEHIND))
    }
}

impl Shared {
    /// What `cause` means to the caller. SlateDB answers its transient troubles by trying again, so an error of it
    /// mostly means that the engine has stopped for good; but only some kinds say so. Of the others, a read tells:
    /// a stopped engine refuses it at once.
    pub(super) async fn failure(&self, cause: ::taquba::Error) -> Error {
        let stopped = match &cause {
            ::taquba::Error::Storage(storage) => match storage.kind() {
                ErrorKind::Closed(_) => true,
                ErrorKind::Transaction => false,
                _ => self.queue.view().kv_get(MARK_KEY).await.is_err(),
            },
            _ => false,
        };
        if !stopped {
            return error(cause);
        }
        self.known.lose();
        self.watchers.wake_all();
        Error::Closed { reason: why_closed(&cause) }
    }

    /// Returns when the store has closed. One of all who call this looks, now and then; it wakes the others.
    pub(super) async fn closed(&self) -> Error {
        let _looking = self.looking.lock().await;
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(cause) = self.queue.view().kv_get(MARK_KEY).await {
                let error = self.failure(cause).await;
                if error.is_closed() {
                    return error;
                }
            }
        }
    }
}

/// Taquba's error, of which nothing more can be found out.
pub(super) fn error(cause: ::taquba::Error) -> Error {
    match &cause {
        ::taquba::Error::Storage(storage) if matches!(storage.kind(), ErrorKind::Closed(_)) => {
            Error::Closed { reason: why_closed(&cause) }
        }
        _ if ClockBehind::is_told_by(&cause) => Error::Unavailable(Box::new(ClockBehind(cause))),
        _ => Error::Unavailable(Box::new(cause)),
    }
}

/// A commit that the queue refuses, whenever it is tried.
pub(super) fn refusal(cause: &::taquba::Error) -> Error {
    Error::InvalidCommit { detail: format!("is refused by the queue: {cause}") }
}

fn why_closed(cause: &::taquba::Error) -> String {
    if ClockBehind::is_told_by(cause) {
        return "the system's clock went back behind the last write of the store".to_owned();
    }
    match cause {
        ::taquba::Error::Storage(storage) => match storage.kind() {
            ErrorKind::Closed(CloseReason::Fenced) => {
                "it was opened again, by another process or this one, which has taken it over".to_owned()
            }
            ErrorKind::Closed(CloseReason::Clean) => "it was closed".to_owned(),
            _ => format!("its storage engine stopped: {storage}"),
        },
        other => other.to_string(),
    }
}

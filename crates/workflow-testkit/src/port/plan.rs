//! The vocabulary of plans for a port.

use std::time::Duration;

use bytes::Bytes;
use workflow_runtime::port::Commit;

use crate::Plan;

/// What the calls of a [`FaultyPort`](crate::FaultyPort) meet.
pub type PortPlan = Plan<PortCalls, PortFault>;

/// Calls of a port. The commits of one call are calls of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortCalls {
    /// Every call that can meet a fault.
    Any,
    /// Reads of one key.
    Get,
    /// Reads of many keys.
    Scan,
    /// Commits.
    Commit,
    /// Commits that put or delete a key with this prefix.
    CommitWriting(Bytes),
    /// Commits that queue a job.
    CommitEnqueuing,
    /// Claims.
    Claim,
    /// Requests to make claims durable.
    PersistClaims,
    /// Extensions of a lease.
    Extend,
    /// Settlements.
    Settle,
    /// Waits for another value.
    WaitForChange,
    /// Questions where a job is.
    JobState,
    /// Questions whether an operator has put a job back.
    IsRequeued,
    /// Listings of dead jobs.
    DeadJobs,
}

/// What happens to a call of a port. A fault that means nothing to a call leaves it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortFault {
    /// The call begins so much later, even if its caller has given up by then. An extension never waits.
    Slow(Duration),
    /// The call does nothing. Its answer is that the queue is unavailable; for a commit, that its outcome is unknown;
    /// for an extension, that the claim is lost. A settlement that fails leaves its job to the end of its lease.
    Fails,
    /// Commits: it is not applied, and said to be invalid.
    Refused,
    /// The call is done, and answered as one that fails. Jobs that it claimed come back when their leases end.
    AnswerLost,
    /// Commits: as [`AnswerLost`](Self::AnswerLost), but answered only when others have written every key that the
    /// commit compared, and after so long at most.
    AnswerLostForLong(Duration),
    /// Claims: the lease ends after so long, whatever the holder does. It is told once the queue tells. Extensions:
    /// the claim is said to be lost, and its job comes back when its lease ends.
    LeaseLost(Duration),
    /// Claims: as [`LeaseLost`](Self::LeaseLost), but nobody tells the holder. The job comes back, and both execute it.
    Duplicated(Duration),
    /// Claims: what is claimed is kept back. The next claim hands it out, after what it claims itself, and newest
    /// first.
    Reordered,
    /// For so long the queue is [`Down`](crate::Health::Down), to this call already.
    Down(Duration),
    /// For so long the queue is [`Hung`](crate::Health::Hung), to this call already.
    Hung(Duration),
    /// Commits: so many of the commits that were handed over in one call become durable, then the process dies: no
    /// call returns any more, calls in progress included.
    DiesInBatch(usize),
}

/// A call as it is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'a> {
    Get,
    Scan,
    Commit(&'a Commit),
    Claim,
    PersistClaims,
    Extend,
    Settle,
    WaitForChange,
    JobState,
    IsRequeued,
    DeadJobs,
}

impl PortCalls {
    /// Whether `asked` is one of these.
    pub(super) fn include(&self, asked: Asked<'_>) -> bool {
        match (self, asked) {
            (Self::Any, _)
            | (Self::Get, Asked::Get)
            | (Self::Scan, Asked::Scan)
            | (Self::Commit, Asked::Commit(_))
            | (Self::Claim, Asked::Claim)
            | (Self::PersistClaims, Asked::PersistClaims)
            | (Self::Extend, Asked::Extend)
            | (Self::Settle, Asked::Settle)
            | (Self::WaitForChange, Asked::WaitForChange)
            | (Self::JobState, Asked::JobState)
            | (Self::IsRequeued, Asked::IsRequeued)
            | (Self::DeadJobs, Asked::DeadJobs) => true,
            (Self::CommitWriting(prefix), Asked::Commit(commit)) => {
                let mut written = commit.puts.iter().map(|(key, _)| key).chain(&commit.deletes);
                written.any(|key| key.starts_with(prefix))
            }
            (Self::CommitEnqueuing, Asked::Commit(commit)) => !commit.enqueues.is_empty(),
            _ => false,
        }
    }
}

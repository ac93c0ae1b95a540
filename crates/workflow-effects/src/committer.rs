//! The one way in which the layers above commit: hands a commit to the port and finds out what became of it when the
//! port does not know.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::port::{Commit, KvStore, Read, Rejected};

/// How often a commit is handed over that turns out not to have been applied.
const ATTEMPTS: usize = 3;

/// Commits through the port, and settles commits of unknown outcome.
///
/// An unknown outcome is settled by reading the compared keys again, durably. No two commits put equal bytes at a
/// compared key, so a key that holds what this commit put there proves that it was applied.
#[derive(Clone)]
pub struct Committer {
    kv: Arc<dyn KvStore>,
}

/// Why a commit did not go through.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// An expectation does not hold, and nothing was written: read again and decide again.
    #[error("the commit was decided on bytes that are no longer there")]
    Conflict,
    /// An expectation does not hold any more, after a try of unknown outcome: the commit was not applied, or it was
    /// and others have moved on from it. Read again and decide again, but keep whatever the commit names.
    #[error("the commit was overtaken, and may have been applied before")]
    Overtaken,
    /// The commit can never succeed. Nothing was written.
    #[error("the commit is invalid")]
    Invalid(#[source] Error),
    /// The commit failed, or its outcome could not be found out: it may have been applied. Read again later.
    #[error("the commit failed")]
    Failed(#[source] Error),
}

/// What became of a commit of unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Applied,
    NotApplied,
    Overtaken,
}

impl Committer {
    /// A committer over `kv`.
    pub fn new(kv: Arc<dyn KvStore>) -> Self {
        Self { kv }
    }

    /// The store it commits to.
    pub fn kv(&self) -> &Arc<dyn KvStore> {
        &self.kv
    }

    /// Applies `commit`; it is durable when this returns `Ok`.
    ///
    /// The commit is handed to the port when the future is first polled, with no wait before. From then on dropping
    /// the future abandons the answer, never the commit: the port runs it to its end.
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] or [`CommitError::Overtaken`] when an expectation does not hold, [`CommitError::Invalid`] when the commit can never
    /// succeed, [`CommitError::Failed`] otherwise.
    pub async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        self.settle(commit, |_, _| true).await
    }

    /// As [`commit`](Self::commit), for a commit after which others may make every compared key absent again, as it was
    /// before. Absence does not tell whether it was applied: after a try of unknown outcome it counts as overtaken,
    /// unless a value that it was to replace is still there.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    pub async fn commit_once(&self, commit: Commit) -> Result<(), CommitError> {
        let is_untouched = |commit: &Commit, found: &[Option<Bytes>]| {
            commit.expect.iter().zip(found).any(|((_, expected), found)| expected.is_some() && expected == found)
        };
        self.settle(commit, is_untouched).await
    }

    /// Commits; hands over again only what `may_repeat` by what is found at the compared keys.
    async fn settle(
        &self,
        commit: Commit,
        may_repeat: impl Fn(&Commit, &[Option<Bytes>]) -> bool,
    ) -> Result<(), CommitError> {
        let mut unknown = None;
        for _ in 0..ATTEMPTS {
            match self.hand_over(commit.clone()).await {
                Ok(()) => return Ok(()),
                Err(Rejected::Invalid(error)) => return Err(CommitError::Invalid(error)),
                // It may be this commit, handed over before, that is in the way.
                Err(Rejected::Conflict) if unknown.is_some() => {}
                Err(Rejected::Conflict) => return Err(CommitError::Conflict),
                Err(Rejected::Unknown(error)) if commit.expect.is_empty() || error.is_closed() => {
                    return Err(CommitError::Failed(error));
                }
                Err(Rejected::Unknown(error)) => unknown = Some(error),
            }
            let found = self.read_compared(&commit).await.map_err(CommitError::Failed)?;
            match judge(&commit, &found) {
                Verdict::Applied => return Ok(()),
                Verdict::Overtaken => return Err(CommitError::Overtaken),
                Verdict::NotApplied if may_repeat(&commit, &found) => {}
                Verdict::NotApplied => return Err(CommitError::Overtaken),
            }
        }
        Err(CommitError::Failed(unknown.unwrap_or_else(no_answer)))
    }

    async fn hand_over(&self, commit: Commit) -> Result<(), Rejected> {
        let answers = self.kv.commit(vec![commit]).await;
        answers.into_iter().next().unwrap_or_else(|| Err(Rejected::Unknown(no_answer())))
    }

    async fn read_compared(&self, commit: &Commit) -> Result<Vec<Option<Bytes>>> {
        let mut found = Vec::with_capacity(commit.expect.len());
        for (key, _) in &commit.expect {
            found.push(self.kv.get(key, Read::Durable).await?);
        }
        Ok(found)
    }
}

fn no_answer() -> Error {
    Error::Unavailable("the store gave no answer to a commit".into())
}

/// Judges by what is `found` at each expected key. A key that the commit leaves as it was says nothing about whether
/// it was applied.
fn judge(commit: &Commit, found: &[Option<Bytes>]) -> Verdict {
    let compared = || commit.expect.iter().zip(found);
    if compared().all(|((_, expected), found)| found == expected) {
        return Verdict::NotApplied;
    }
    let next = |key: &Bytes| commit.next(key).flatten();
    let proven =
        compared().any(|((key, expected), found)| found.is_some() && found.as_ref() == next(key) && found != expected);
    if proven || compared().all(|((key, _), found)| found.as_ref() == next(key)) {
        return Verdict::Applied;
    }
    Verdict::Overtaken
}

#[cfg(test)]
mod tests;

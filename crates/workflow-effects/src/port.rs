//! The port: what the layers above ask of a transactional key-value store, and nothing more.
//!
//! A commit names the bytes that it was decided on (`expect`) and writes each of those keys, so that of two commits
//! decided on the same bytes one is refused. That is the only means of coordination here: no locks, no leases.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_core::{JobId, Timestamp};

use crate::error::{Error, Result, key_text};

/// A transactional key-value store with durable commits.
///
/// Implementations keep this contract:
///
/// 1. A commit is applied as a whole or not at all, and it is durable when [`KvStore::commit`] returns it as `Ok`.
/// 2. The expectations of a commit hold at the moment it is applied. They are exact for keys that the commit writes,
///    which is every key it expects ([`Commit::check`]).
/// 3. Commits become visible in the order in which they become durable: what a [`Read::Latest`] has seen is durable
///    before any commit that was begun after that read.
/// 4. A commit that has been handed over runs to its end, whatever becomes of the future that waits for it.
///
/// The store may keep entries of its own under keys that begin with `workflow/.`.
#[async_trait]
pub trait KvStore: Send + Sync + 'static {
    /// The value at `key`.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] and [`Error::Closed`] when the store cannot answer.
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>>;

    /// The entries of `range` in its order, at most `range.limit` of them. It shows one moment: a commit whole or not at
    /// all.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] and [`Error::Closed`] when the store cannot answer.
    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage>;

    /// Applies commits, each on its own; the answers are in the order of `commits`. The store may group them, and apply
    /// them in any order: of two that write the same key, it is left to chance which one comes first.
    ///
    /// The commits are handed over when the future is first polled. From then on, dropping it abandons the answers,
    /// never the commits.
    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>>;
}

/// How fresh and how safe a read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The latest commit's state, which a crash may still undo. Waits for nothing. Enough for whoever reads in order to
    /// commit: the log's order makes a commit durable only after everything it has read.
    Latest,
    /// What no crash can undo any more: waits for the commits in flight on what is read, and for no others. Needed by
    /// whatever leaves the process: an answer, the start of a step, a value handed to the user.
    Durable,
}

/// Which entries a scan reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// What the keys begin with.
    pub prefix: Bytes,
    /// Only keys beyond this one in `order`. A whole key, prefix included; it need not exist.
    pub after: Option<Bytes>,
    /// The most entries to return. With 0 nothing is read, and [`ScanPage::more`] is false.
    pub limit: usize,
    /// From which end it reads.
    pub order: ScanOrder,
}

/// The order of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanOrder {
    /// From the first key to the last.
    #[default]
    Ascending,
    /// From the last key to the first.
    Descending,
}

impl ScanRange {
    /// The first entries whose keys begin with `prefix`, at most `limit`.
    pub fn first(prefix: impl Into<Bytes>, limit: usize) -> Self {
        Self { prefix: prefix.into(), after: None, limit, order: ScanOrder::Ascending }
    }

    /// What a scan of `entries` reads, for stores that keep theirs in memory.
    pub fn page_of(&self, entries: &BTreeMap<Bytes, Bytes>) -> ScanPage {
        match self.order {
            ScanOrder::Ascending => self.page(entries.range((self.start(), Bound::Unbounded))),
            ScanOrder::Descending => self.page(entries.range((Bound::Unbounded, self.end())).rev()),
        }
    }

    /// Whether a scan that found `page` has read `key`, or that there is none: for stores that know which keys are in
    /// flight.
    pub fn has_read(&self, page: &ScanPage, key: &[u8]) -> bool {
        let last = page.entries.last().filter(|_| page.more).map(|(last, _)| last);
        key.starts_with(&self.prefix)
            && self.after.as_ref().is_none_or(|after| self.order.is_beyond(key, after))
            && last.is_none_or(|last| !self.order.is_beyond(key, last))
    }

    /// The first of `entries`, which begin where the range does.
    fn page<'a>(&self, entries: impl Iterator<Item = (&'a Bytes, &'a Bytes)>) -> ScanPage {
        if self.limit == 0 {
            return ScanPage::default();
        }
        let mut found = entries.take_while(|(key, _)| key.starts_with(&self.prefix));
        let entries = found.by_ref().take(self.limit).map(|(key, value)| (key.clone(), value.clone())).collect();
        ScanPage { entries, more: found.next().is_some() }
    }

    /// Where an ascending range begins.
    fn start(&self) -> Bound<Bytes> {
        match &self.after {
            Some(after) if *after >= self.prefix => Bound::Excluded(after.clone()),
            _ => Bound::Included(self.prefix.clone()),
        }
    }

    /// Where a descending range begins.
    fn end(&self) -> Bound<Bytes> {
        match &self.after {
            Some(after) if *after <= self.prefix || after.starts_with(&self.prefix) => Bound::Excluded(after.clone()),
            _ => end_of(&self.prefix),
        }
    }
}

impl ScanOrder {
    fn is_beyond(self, key: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Ascending => key > other,
            Self::Descending => key < other,
        }
    }
}

/// Where the keys end that begin with `prefix`.
fn end_of(prefix: &[u8]) -> Bound<Bytes> {
    let Some(last) = prefix.iter().rposition(|byte| *byte < u8::MAX) else { return Bound::Unbounded };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Bound::Excluded(end.into())
}

/// What a scan read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPage {
    /// Keys and values, in the order of the range.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Whether the range holds entries beyond the last of these.
    pub more: bool,
}

/// Changes that are applied together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Keys with the bytes (or the absence) that the commit was decided on. Each is also put or deleted.
    ///
    /// No two commits may put equal bytes at a compared key: records carry revisions for that. It is what lets
    /// [`Committer`](crate::Committer) find out whether a commit of unknown outcome was applied.
    pub expect: Vec<(Bytes, Option<Bytes>)>,
    /// Keys and the values they get, of at most [`MAX_EFFECT_VALUE_LEN`](crate::MAX_EFFECT_VALUE_LEN) bytes. An empty
    /// value is a value.
    pub puts: Vec<(Bytes, Bytes)>,
    /// Keys that are gone afterwards. A key without a value may be deleted.
    pub deletes: Vec<Bytes>,
    /// Jobs that are queued.
    pub enqueues: Vec<Enqueue>,
}

/// A job that a commit queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueue {
    /// The queue.
    pub queue: String,
    /// The id, reserved beforehand. No job that is there has it: waiting, claimed or dead.
    pub job: JobId,
    /// What the job carries.
    pub payload: Bytes,
    /// When the job may be delivered, if not at once. A time that has passed is at once.
    pub due: Option<Timestamp>,
}

/// Why a commit was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    /// An expectation does not hold. Nothing was written; read again and decide again. So is a commit answered that was
    /// applied before, although its jobs are there already.
    #[error("the commit was decided on bytes that are no longer there")]
    Conflict,
    /// The commit can never succeed: it breaks a rule of [`Commit::check`], a value is too long, the id of a job is
    /// taken. Nothing was written.
    #[error("the commit is invalid")]
    Invalid(#[source] Error),
    /// The commit may or may not have been applied.
    #[error("the outcome of the commit is unknown")]
    Unknown(#[source] Error),
}

impl Commit {
    /// What the commit leaves at `key`: `Some(None)` when it deletes the key, `None` when it does not write it.
    pub fn next(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        let put = self.puts.iter().find(|(put, _)| put == key).map(|(_, value)| Some(value));
        put.or_else(|| self.deletes.iter().any(|delete| delete == key).then_some(None))
    }

    /// The keys that the commit puts or deletes.
    pub fn written(&self) -> impl Iterator<Item = &Bytes> {
        self.puts.iter().map(|(key, _)| key).chain(&self.deletes)
    }

    /// Checks the rules that every commit keeps. Implementations of the port call this first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidCommit`] when a key is written twice, is both put and deleted, is expected twice, or is
    /// expected and not written.
    pub fn check(&self) -> Result<(), Error> {
        let mut written = BTreeSet::new();
        for key in self.written() {
            if !written.insert(key) {
                return Err(invalid("writes the key more than once", key));
            }
        }
        let mut expected = BTreeMap::new();
        for (key, value) in &self.expect {
            if expected.insert(key, value).is_some() {
                return Err(invalid("expects the key more than once", key));
            }
            if !written.contains(key) {
                return Err(invalid("expects the key and does not write it", key));
            }
        }
        Ok(())
    }
}

fn invalid(problem: &str, key: &[u8]) -> Error {
    Error::InvalidCommit { detail: format!("{problem}: {}", key_text(key)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(commit: &Commit, expected: Result<(), &str>) {
        let found = commit.check().map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    fn put(key: &'static str) -> (Bytes, Bytes) {
        (key.into(), "value".into())
    }

    #[test]
    fn a_commit_writes_what_it_expects_and_each_key_once() {
        check(&Commit::default(), Ok(()));
        let commit = Commit {
            expect: vec![("a".into(), None), ("b".into(), Some("old".into()))],
            puts: vec![put("a"), put("c")],
            deletes: vec!["b".into(), "d".into()],
            ..Commit::default()
        };
        check(&commit, Ok(()));
        let mut wrong = commit.clone();
        wrong.expect.push(("e".into(), None));
        check(&wrong, Err("a commit expects the key and does not write it: \"e\""));
        let mut wrong = commit.clone();
        wrong.expect.push(("a".into(), None));
        check(&wrong, Err("a commit expects the key more than once: \"a\""));
        let mut wrong = commit.clone();
        wrong.deletes.push("a".into());
        check(&wrong, Err("a commit writes the key more than once: \"a\""));
        let mut wrong = commit;
        wrong.puts.push(put("a"));
        check(&wrong, Err("a commit writes the key more than once: \"a\""));
    }

    #[test]
    fn what_a_commit_leaves_at_a_key_is_told() {
        let commit = Commit { puts: vec![put("a")], deletes: vec!["b".into()], ..Commit::default() };
        assert_eq!(commit.next(b"a"), Some(Some(&Bytes::from("value"))));
        assert_eq!(commit.next(b"b"), Some(None));
        assert_eq!(commit.next(b"c"), None);
    }
}

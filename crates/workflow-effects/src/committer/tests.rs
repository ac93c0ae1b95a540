//! Commits of unknown outcome, over a store that does as it is told.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::memory::MemoryKv;
use crate::port::{Enqueue, ScanPage, ScanRange};

/// What happens at a commit.
enum Script {
    /// It is applied, then the rival's, and its outcome is unknown.
    Applied(Commit),
    /// It is not applied, but the rival's is, and its outcome is unknown.
    Lost(Commit),
    /// What was handed over before is applied at last, and is in the way.
    AppliedBefore,
    /// The store closes.
    Closes,
    /// The store answers nothing.
    Silent,
}

#[derive(Default)]
struct Scripted {
    inner: MemoryKv,
    script: Mutex<VecDeque<Script>>,
    commits: Mutex<u32>,
    reads_fail: bool,
}

#[async_trait]
impl KvStore for Scripted {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>> {
        assert_eq!(read, Read::Durable, "what is in flight may still be undone");
        if self.reads_fail {
            return Err(Error::Unavailable("reads fail".into()));
        }
        self.inner.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage> {
        self.inner.scan(range, read).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        *self.commits.lock().unwrap() += 1;
        let unknown = || vec![Err(Rejected::Unknown(Error::Unavailable("connection lost".into())))];
        let step = self.script.lock().unwrap().pop_front();
        match step {
            None => self.inner.commit(commits).await,
            Some(Script::Applied(rival)) => {
                self.inner.commit(commits).await;
                self.inner.commit(vec![rival]).await;
                unknown()
            }
            Some(Script::Lost(rival)) => {
                self.inner.commit(vec![rival]).await;
                unknown()
            }
            Some(Script::AppliedBefore) => {
                self.inner.commit(commits.clone()).await;
                self.inner.commit(commits).await
            }
            Some(Script::Closes) => vec![Err(Rejected::Unknown(Error::Closed { reason: "fenced".into() }))],
            Some(Script::Silent) => vec![],
        }
    }
}

fn put(key: &'static str, value: &'static str) -> Commit {
    Commit { puts: vec![(key.into(), value.into())], ..Commit::default() }
}

fn delete(key: &'static str) -> Commit {
    Commit { deletes: vec![key.into()], ..Commit::default() }
}

fn nobody() -> Commit {
    Commit::default()
}

/// Moves `record` from `1` to `2` and deletes `row`, which is there; `other` is written without being compared.
fn commit() -> Commit {
    Commit {
        expect: vec![("record".into(), Some("1".into())), ("row".into(), Some("here".into()))],
        puts: vec![("record".into(), "2".into()), ("other".into(), "x".into())],
        deletes: vec!["row".into()],
        ..Commit::default()
    }
}

/// What became of a commit, and how often the port had it.
async fn outcome(kv: Scripted, commit: Commit) -> (String, u32, Arc<Scripted>) {
    let kv = Arc::new(kv);
    let answer = text(Committer::new(kv.clone()).commit(commit).await);
    let commits = *kv.commits.lock().unwrap();
    (answer, commits, kv)
}

fn text(answer: Result<(), CommitError>) -> String {
    match answer {
        Ok(()) => "applied".to_owned(),
        Err(CommitError::Conflict) => "conflict".to_owned(),
        Err(CommitError::Overtaken) => "overtaken".to_owned(),
        Err(CommitError::Invalid(error)) => format!("invalid: {error}"),
        Err(CommitError::Failed(error)) => format!("failed: {error}"),
    }
}

fn scripted(script: impl IntoIterator<Item = Script>) -> Scripted {
    let inner = MemoryKv::with_entries([("record", "1"), ("row", "here")]);
    Scripted { inner, script: Mutex::new(script.into_iter().collect()), ..Scripted::default() }
}

async fn check(script: impl IntoIterator<Item = Script>, expected: (&str, u32)) {
    let (answer, commits, kv) = outcome(scripted(script), commit()).await;
    assert_eq!((answer.as_str(), commits), expected);
    if answer == "applied" {
        assert_eq!(kv.inner.get(b"other", Read::Latest).await.unwrap(), Some("x".into()));
    }
}

#[tokio::test]
async fn a_clear_answer_is_passed_on() {
    check([], ("applied", 1)).await;
    let (answer, ..) = outcome(Scripted::default(), commit()).await;
    assert_eq!(answer, "conflict");
    let broken = Commit { expect: vec![("a".into(), None)], ..Commit::default() };
    let (answer, ..) = outcome(Scripted::default(), broken).await;
    assert_eq!(answer, "invalid: a commit expects the key and does not write it: \"a\"");
    let job = Enqueue { queue: "q".into(), job: "j".into(), payload: Bytes::new(), due: None };
    let (answer, ..) = outcome(Scripted::default(), Commit { enqueues: vec![job], ..Commit::default() }).await;
    assert_eq!(answer, "invalid: there is no queue here");
}

#[tokio::test]
async fn an_applied_commit_is_recognized() {
    check([Script::Applied(nobody())], ("applied", 1)).await;
    check([Script::Applied(put("other", "x"))], ("applied", 1)).await;
}

#[tokio::test]
async fn an_applied_commit_is_recognized_by_the_bytes_that_only_it_writes() {
    check([Script::Applied(put("row", "another"))], ("applied", 1)).await;
}

#[tokio::test]
async fn a_commit_that_was_overtaken_is_decided_again() {
    check([Script::Applied(put("record", "3"))], ("overtaken", 1)).await;
    check([Script::Lost(put("record", "3"))], ("overtaken", 1)).await;
    check([Script::Lost(delete("record"))], ("overtaken", 1)).await;
    check([Script::Lost(delete("row"))], ("overtaken", 1)).await;
}

#[tokio::test]
async fn a_lost_commit_is_handed_over_again_a_few_times() {
    check([Script::Lost(nobody())], ("applied", 2)).await;
    check([Script::Lost(nobody()), Script::Silent], ("applied", 3)).await;
    check([Script::Lost(nobody()), Script::Applied(nobody())], ("applied", 2)).await;
    let lost = std::iter::repeat_with(|| Script::Lost(nobody())).take(3);
    check(lost, ("failed: the store is unavailable", 3)).await;
}

#[tokio::test]
async fn a_commit_that_is_in_its_own_way_was_applied() {
    check([Script::Lost(nobody()), Script::AppliedBefore], ("applied", 2)).await;
    check([Script::AppliedBefore], ("conflict", 1)).await;
}

#[tokio::test]
async fn a_deletion_alone_is_recognized() {
    let commit = Commit { expect: vec![("row".into(), Some("here".into()))], deletes: vec!["row".into()], ..nobody() };
    let (answer, commits, _) = outcome(scripted([Script::Applied(nobody())]), commit).await;
    assert_eq!((answer.as_str(), commits), ("applied", 1));
}

/// A commit that is to be applied once at most.
async fn check_once(script: Script, commit: Commit, expected: (&str, u32)) {
    let kv = Arc::new(scripted([script]));
    let answer = text(Committer::new(kv.clone()).commit_once(commit).await);
    let commits = *kv.commits.lock().unwrap();
    assert_eq!((answer.as_str(), commits), expected);
}

#[tokio::test]
async fn absence_does_not_tell_that_a_commit_was_not_applied() {
    let new = || Commit { expect: vec![("new".into(), None)], ..put("new", "1") };
    check_once(Script::Applied(nobody()), new(), ("applied", 1)).await;
    check_once(Script::Applied(delete("new")), new(), ("overtaken", 1)).await;
    check_once(Script::Lost(nobody()), new(), ("overtaken", 1)).await;
    check_once(Script::Lost(nobody()), commit(), ("applied", 2)).await;
    let both = Commit { expect: vec![("new".into(), None), ("row".into(), Some("here".into()))], ..put("row", "2") };
    let both = Commit { puts: [new().puts, both.puts].concat(), ..both };
    check_once(Script::Lost(nobody()), both, ("applied", 2)).await;
}

#[tokio::test]
async fn a_commit_that_compares_nothing_stays_unknown() {
    let (answer, commits, _) = outcome(scripted([Script::Applied(nobody())]), put("k", "v")).await;
    assert_eq!((answer.as_str(), commits), ("failed: the store is unavailable", 1));
}

#[tokio::test]
async fn a_closed_store_and_a_store_that_cannot_read_say_so() {
    check([Script::Closes], ("failed: the store is closed: fenced", 1)).await;
    let kv = Scripted { reads_fail: true, ..scripted([Script::Applied(nobody())]) };
    let (answer, commits, _) = outcome(kv, commit()).await;
    assert_eq!((answer.as_str(), commits), ("failed: the store is unavailable", 1));
}

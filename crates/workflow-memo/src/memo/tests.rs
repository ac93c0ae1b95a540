//! Every rule of the memo, over a store whose commits can be scripted and objects that are counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use tokio::sync::Notify;
use workflow_core::{ObjectRef, Timestamp};
use workflow_effects::{ObjectConfig, Rejected, ScanPage, ScanRange};

use super::*;

/// What happens at a commit, instead of or before it.
enum Script {
    /// It is applied and its outcome unknown.
    AppliedUnknown,
    /// It is not applied and its outcome unknown, each time.
    LostUnknown,
    /// A rival's commit comes first.
    Rival(Commit),
    /// The attempt ends while the commit is in flight.
    SealedMeanwhile(Seal),
    /// It waits for this.
    Held(Arc<Notify>),
}

#[derive(Default)]
struct ScriptedKv {
    inner: MemoryKv,
    script: Mutex<VecDeque<Script>>,
    commits: AtomicU64,
    /// Sealed by the next read that is for a commit.
    seal_at_read: Mutex<Option<Seal>>,
    /// A rival's commit that follows the next read.
    rival_after_read: Mutex<Option<Commit>>,
}

impl ScriptedKv {
    fn script(&self, steps: impl IntoIterator<Item = Script>) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).extend(steps);
    }

    fn next(&self) -> Option<Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

#[async_trait]
impl KvStore for ScriptedKv {
    async fn get(&self, key: &[u8], read: Read) -> workflow_effects::Result<Option<Bytes>> {
        if read == Read::Latest
            && let Some(seal) = self.seal_at_read.lock().unwrap().take()
        {
            seal.seal();
        }
        let found = self.inner.get(key, read).await;
        let rival = self.rival_after_read.lock().unwrap().take();
        self.inner.commit(Vec::from_iter(rival)).await;
        found
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> workflow_effects::Result<ScanPage> {
        self.inner.scan(range, read).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        let lost = || vec![Err(Rejected::Unknown(workflow_effects::Error::Unavailable("scripted".into())))];
        match self.next() {
            None => self.inner.commit(commits).await,
            Some(Script::AppliedUnknown) => {
                self.inner.commit(commits).await;
                lost()
            }
            Some(Script::LostUnknown) => lost(),
            Some(Script::Rival(commit)) => {
                self.inner.commit(vec![commit]).await;
                self.inner.commit(commits).await
            }
            Some(Script::SealedMeanwhile(seal)) => {
                seal.seal();
                self.inner.commit(commits).await
            }
            Some(Script::Held(until)) => {
                until.notified().await;
                self.inner.commit(commits).await
            }
        }
    }
}

/// One run's stores, from which the memos of its attempts are made.
struct Fixture {
    kv: Arc<ScriptedKv>,
    store: Arc<InMemory>,
    objects: Arc<ObjectValues>,
}

const LARGE: usize = 70 * 1024;

impl Fixture {
    fn new() -> Self {
        let kv = Arc::new(ScriptedKv::default());
        let store = Arc::new(InMemory::new());
        let drawn = AtomicU64::new(0);
        let objects = Arc::new(ObjectValues::new(ObjectConfig {
            kv: kv.clone(),
            store: store.clone(),
            keys: KeySpace::new("q"),
            prefix: "objects".to_owned(),
            inline_limit: 64 * 1024,
            max_value_size: 1024 * 1024,
            fresh: Box::new(move || u128::from(drawn.fetch_add(1, Ordering::Relaxed))),
            now: Box::new(|| Timestamp::from_millis(0)),
        }));
        Self { kv, store, objects }
    }

    fn context(&self, scope: MemoScope, revision: u64) -> MemoContext {
        MemoContext {
            committer: Committer::new(self.kv.clone()),
            objects: self.objects.clone(),
            keys: KeySpace::new("q"),
            run_id: RunId::parse("run").unwrap(),
            incarnation: Incarnation::new(1),
            scope,
            revision,
            seal: Seal::new(),
            spawn: Spawn::inline(),
        }
    }

    fn memo(&self, revision: u64) -> Memo {
        Memo::new(self.context(MemoScope::Step(0), revision))
    }

    fn script(&self, steps: impl IntoIterator<Item = Script>) {
        self.kv.script(steps);
    }

    fn commits(&self) -> u64 {
        self.kv.commits.load(Ordering::Relaxed)
    }

    /// A put of `value` under `key` by an attempt of `revision`.
    fn rival(&self, key: &str, revision: u64, value: Value) -> Commit {
        let key = self.memo(0).entry_key(key);
        let entry = encode_memo_entry(&MemoEntry { revision, value });
        Commit { puts: vec![(key, entry)], ..Commit::default() }
    }

    async fn object_paths(&self) -> Vec<String> {
        use object_store::ObjectStore;
        let mut found = Vec::new();
        let listed = self.store.list_with_delimiter(Some(&object_path())).await.unwrap();
        found.extend(listed.objects.into_iter().map(|object| object.location.to_string()));
        found
    }
}

fn object_path() -> object_store::path::Path {
    object_store::path::Path::from(format!("objects/run/{}", Incarnation::new(1)))
}

async fn check(memo: &Memo, key: &str, expected: Option<&[u8]>) {
    assert_eq!(memo.get(key).await.unwrap().as_deref(), expected, "{key:?}");
}

#[tokio::test]
async fn a_value_is_kept_and_replaced() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    check(&memo, "k", None).await;
    memo.put("k", b"one").await.unwrap();
    check(&memo, "k", Some(b"one")).await;
    memo.put("k", b"").await.unwrap();
    check(&memo, "k", Some(b"")).await;
    check(&fixture.memo(2), "k", Some(b"")).await;
}

#[tokio::test]
async fn look_alike_keys_are_kept_apart() {
    let memo = Fixture::new().memo(1);
    let keys = ["", "/", "\0", "a", "a/", "a\0", "a/b", "é", "e\u{301}", "A", " a", "content:"];
    for key in keys {
        memo.put(key, format!("value of {key}").as_bytes()).await.unwrap();
    }
    for key in keys {
        check(&memo, key, Some(format!("value of {key}").as_bytes())).await;
    }
}

#[tokio::test]
async fn scopes_and_incarnations_are_kept_apart() {
    let fixture = Fixture::new();
    let mut memos = vec![
        Memo::new(fixture.context(MemoScope::Run, 1)),
        Memo::new(fixture.context(MemoScope::Step(0), 1)),
        Memo::new(fixture.context(MemoScope::Step(1), 1)),
    ];
    memos.push(Memo::new(MemoContext { incarnation: Incarnation::new(2), ..fixture.context(MemoScope::Run, 1) }));
    for (index, memo) in memos.iter().enumerate() {
        check(memo, "k", None).await;
        memo.put("k", &[index as u8]).await.unwrap();
    }
    for (index, memo) in memos.iter().enumerate() {
        check(memo, "k", Some(&[index as u8])).await;
    }
}

#[tokio::test]
async fn a_key_has_at_most_1024_bytes() {
    let memo = Fixture::new().memo(1);
    let longest = "é".repeat(512);
    memo.put(&longest, b"v").await.unwrap();
    check(&memo, &longest, Some(b"v")).await;
    let long = "x".repeat(1025);
    assert!(matches!(memo.put(&long, b"v").await, Err(Error::KeyTooLong { len: 1025 })));
    let error = memo.get(&long).await.unwrap_err();
    assert!(matches!(error, Error::KeyTooLong { len: 1025 }) && error.is_permanent());
}

#[tokio::test]
async fn a_late_attempt_replaces_nothing_of_a_newer_one() {
    let fixture = Fixture::new();
    let (late, newer) = (fixture.memo(3), fixture.memo(4));
    late.put("k", b"old").await.unwrap();
    newer.put("k", b"new").await.unwrap();
    let error = late.put("k", b"late").await.unwrap_err();
    assert!(matches!(&error, Error::Late { key } if key == "k"), "{error}");
    assert!(error.is_permanent());
    check(&late, "k", Some(b"new")).await;
}

#[tokio::test]
async fn a_late_attempt_loses_a_race_too() {
    let fixture = Fixture::new();
    fixture.script([Script::Rival(fixture.rival("k", 9, Value::from("new")))]);
    let error = fixture.memo(3).put("k", b"late").await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }), "{error}");
    check(&fixture.memo(9), "k", Some(b"new")).await;
}

#[tokio::test]
async fn a_put_that_loses_a_race_within_its_attempt_replaces_the_winner() {
    let fixture = Fixture::new();
    fixture.script([Script::Rival(fixture.rival("k", 3, Value::from("first")))]);
    fixture.memo(3).put("k", b"second").await.unwrap();
    check(&fixture.memo(3), "k", Some(b"second")).await;
}

#[tokio::test]
async fn a_sealed_memo_reads_and_does_not_write() {
    let fixture = Fixture::new();
    let context = fixture.context(MemoScope::Run, 1);
    let seal = context.seal.clone();
    let memo = Memo::new(context);
    memo.put("k", b"v").await.unwrap();
    seal.seal();
    let commits = fixture.commits();
    let error = memo.put("k", b"w").await.unwrap_err();
    assert!(matches!(&error, Error::Sealed { key } if key == "k") && error.is_permanent());
    assert_eq!(fixture.commits(), commits);
    check(&memo, "k", Some(b"v")).await;
    let known: Result<String> = memo.memoized("typed", async { panic!("the value could not be stored") }).await;
    assert!(matches!(known, Err(Error::Sealed { .. })));
}

#[tokio::test]
async fn an_attempt_that_ends_before_the_commit_is_handed_over_writes_nothing() {
    let fixture = Fixture::new();
    let context = fixture.context(MemoScope::Run, 1);
    *fixture.kv.seal_at_read.lock().unwrap() = Some(context.seal.clone());
    let memo = Memo::new(context);
    let error = memo.put("k", &vec![7; LARGE]).await.unwrap_err();
    assert!(matches!(error, Error::Sealed { .. }), "{error}");
    check(&memo, "k", None).await;
    assert_eq!(fixture.object_paths().await, [""; 0]);
}

#[tokio::test]
async fn a_commit_in_flight_when_the_attempt_ends_is_acknowledged() {
    let fixture = Fixture::new();
    let context = fixture.context(MemoScope::Run, 1);
    fixture.script([Script::SealedMeanwhile(context.seal.clone())]);
    let memo = Memo::new(context);
    memo.put("k", b"v").await.unwrap();
    check(&memo, "k", Some(b"v")).await;
}

#[tokio::test]
async fn equal_bytes_are_not_committed_again() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    memo.put("k", b"v").await.unwrap();
    memo.put("k", b"v").await.unwrap();
    assert_eq!(fixture.commits(), 1);
    fixture.memo(2).put("k", b"v").await.unwrap();
    assert_eq!(fixture.commits(), 2, "a newer attempt's entry differs");
}

#[tokio::test]
async fn a_put_of_unknown_outcome_is_settled() {
    let fixture = Fixture::new();
    fixture.script([Script::AppliedUnknown]);
    fixture.memo(1).put("k", b"v").await.unwrap();
    assert_eq!(fixture.commits(), 1);
    fixture.script([Script::LostUnknown]);
    fixture.memo(1).put("k", b"w").await.unwrap();
    check(&fixture.memo(1), "k", Some(b"w")).await;
}

#[tokio::test]
async fn a_put_that_stays_unknown_fails_and_keeps_its_object() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    memo.put("other", &vec![1; LARGE]).await.unwrap();
    fixture.script(std::iter::repeat_with(|| Script::LostUnknown).take(3));
    let error = memo.put("k", &vec![2; LARGE]).await.unwrap_err();
    assert!(!error.is_permanent(), "{error}");
    assert_eq!(fixture.object_paths().await.len(), 2, "an entry may name the object");
}

#[tokio::test]
async fn large_values_are_objects_and_superseded_ones_are_deleted() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    memo.put("k", &vec![1; LARGE]).await.unwrap();
    let first = fixture.object_paths().await;
    assert_eq!(first.len(), 1);
    check(&memo, "k", Some(&vec![1; LARGE])).await;

    memo.put("k", &vec![1; LARGE]).await.unwrap();
    let second = fixture.object_paths().await;
    assert_eq!(second.len(), 1);
    assert_ne!(first, second, "each object has a path of its own");

    memo.put("k", b"small").await.unwrap();
    assert_eq!(fixture.object_paths().await, [""; 0]);
    check(&memo, "k", Some(b"small")).await;
}

#[tokio::test]
async fn a_refused_large_value_leaves_no_object() {
    let fixture = Fixture::new();
    fixture.memo(4).put("k", &vec![4; LARGE]).await.unwrap();
    let kept = fixture.object_paths().await;
    assert!(matches!(fixture.memo(3).put("k", &vec![3; LARGE]).await, Err(Error::Late { .. })));
    assert_eq!(fixture.object_paths().await, kept);
    check(&fixture.memo(4), "k", Some(&vec![4; LARGE])).await;
}

#[tokio::test]
async fn a_large_value_that_loses_a_race_is_written_anew() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    memo.put("row", &vec![0; LARGE]).await.unwrap();
    fixture.script([Script::Rival(fixture.rival("k", 1, Value::from("first")))]);
    memo.put("k", &vec![2; LARGE]).await.unwrap();
    check(&memo, "k", Some(&vec![2; LARGE])).await;
    assert_eq!(fixture.object_paths().await.len(), 2);
}

#[tokio::test]
async fn a_value_over_the_limit_is_refused() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    memo.put("k", &vec![1; 1024 * 1024]).await.unwrap();
    let error = memo.put("k", &vec![1; 1024 * 1024 + 1]).await.unwrap_err();
    assert!(matches!(error, Error::Effects(workflow_effects::Error::ValueTooLarge { .. })), "{error}");
    assert!(error.is_permanent());
}

#[tokio::test]
async fn a_missing_object_is_corruption_that_names_it() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    memo.put("k", &vec![1; LARGE]).await.unwrap();
    let paths = fixture.object_paths().await;
    fixture.store.delete(&object_store::path::Path::parse(&paths[0]).unwrap()).await.unwrap();
    let error = memo.get("k").await.unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains(&paths[0]), "{error}");
}

#[tokio::test]
async fn a_value_that_is_replaced_while_it_is_read_is_read_again() {
    let fixture = Fixture::new();
    let missing = Value::Object(ObjectRef { path: "objects/replaced".to_owned(), len: 9 });
    fixture.kv.commit(vec![fixture.rival("k", 1, missing)]).await;
    *fixture.kv.rival_after_read.lock().unwrap() = Some(fixture.rival("k", 1, Value::from("new")));
    check(&fixture.memo(1), "k", Some(b"new")).await;
}

#[tokio::test]
async fn a_corrupt_entry_names_run_and_key() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    let commit = Commit { puts: vec![(memo.entry_key("k"), Bytes::from_static(b"\xff"))], ..Commit::default() };
    memo.context.committer.commit(commit).await.unwrap();
    for error in [memo.get("k").await.unwrap_err(), memo.put("k", b"v").await.unwrap_err()] {
        assert!(error.is_permanent());
        assert!(error.to_string().starts_with("memo \"k\" of run run is corrupt"), "{error}");
    }
}

#[tokio::test]
async fn detached_memos_are_empty_apart_and_take_large_values() {
    let (memo, other) = (Memo::detached(), Memo::detached());
    check(&memo, "k", None).await;
    memo.put("k", &vec![1; 1024 * 1024]).await.unwrap();
    check(&memo.clone(), "k", Some(&vec![1; 1024 * 1024])).await;
    check(&other, "k", None).await;
}

#[tokio::test]
async fn debug_shows_no_value() {
    let memo = Memo::detached();
    memo.put("k", b"secret").await.unwrap();
    let shown = format!("{memo:?}");
    assert!(shown.contains("detached") && !shown.contains("secret"), "{shown}");
}

mod in_flight;
mod typed;

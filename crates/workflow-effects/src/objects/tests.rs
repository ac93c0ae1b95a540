//! Values and their objects, over stores that count requests and can be told to fail.

use std::sync::Mutex;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions, PutPayload,
    PutResult,
};

use workflow_core::{Incarnation, RunId, SignalId};

use super::*;
use crate::memory::MemoryKv;
use crate::port::{Commit, Read, Rejected, ScanPage, ScanRange};
use crate::stored::*;

mod delete;
mod rows;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

type StoreResult<T> = object_store::Result<T>;

/// Counts requests; the row must be there when an object is written.
#[derive(Debug)]
struct Counting {
    inner: Arc<InMemory>,
    kv: Arc<Rows>,
    requests: Arc<AtomicU64>,
    /// Objects whose paths end so cannot be deleted.
    undeletable: Mutex<Option<String>>,
}

impl Counting {
    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counting")
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.count();
        assert_eq!(options.mode, PutMode::Create);
        assert!(!self.kv.inner.entries().is_empty(), "the row precedes the object");
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        _path: &Path,
        _options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        unreachable!("an object is written by one request")
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.count();
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        let undeletable = self.undeletable.lock().unwrap().clone();
        let refuse = move |path: Path| match &undeletable {
            Some(name) if path.as_ref().ends_with(name) => {
                Err(object_store::Error::Generic { store: "counting", source: "busy".into() })
            }
            _ => Ok(path),
        };
        let (requests, inner) = (self.requests.clone(), self.inner.clone());
        let deletions = paths.map(move |path| {
            requests.fetch_add(1, Ordering::Relaxed);
            path.and_then(&refuse)
        });
        inner.delete_stream(deletions.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.count();
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> StoreResult<ListResult> {
        unreachable!("nothing is listed by folder")
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> StoreResult<()> {
        unreachable!("nothing is copied")
    }
}

/// What a commit of the row does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RowCommit {
    Unknown,
    AppliedUnknown,
    AfterRival,
}

/// Counts requests; commits can be told what to do.
#[derive(Debug, Default)]
struct Rows {
    inner: MemoryKv,
    requests: AtomicU64,
    reads: Mutex<Vec<Read>>,
    script: Mutex<Vec<RowCommit>>,
}

#[async_trait]
impl KvStore for Rows {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.reads.lock().unwrap().push(read);
        self.inner.get(key, read).await
    }

    async fn scan(&self, _range: &ScanRange, _read: Read) -> Result<ScanPage> {
        unreachable!("nothing is scanned")
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let unknown = || vec![Err(Rejected::Unknown(Error::Unavailable("lost".into())))];
        let step = self.script.lock().unwrap().pop();
        if matches!(step, Some(RowCommit::AppliedUnknown | RowCommit::AfterRival)) {
            self.inner.commit(commits.clone()).await;
        }
        match step {
            None | Some(RowCommit::AfterRival) => self.inner.commit(commits).await,
            Some(RowCommit::Unknown | RowCommit::AppliedUnknown) => unknown(),
        }
    }
}

struct Fixture {
    kv: Arc<Rows>,
    store: Arc<Counting>,
    values: ObjectValues,
}

fn fixture_drawing(prefix: &str, fresh: impl Fn() -> u128 + Send + Sync + 'static) -> Fixture {
    let kv = Arc::new(Rows::default());
    let store = Arc::new(Counting {
        inner: Arc::default(),
        kv: kv.clone(),
        requests: Arc::default(),
        undeletable: Mutex::default(),
    });
    let values = ObjectValues::new(ObjectConfig {
        kv: kv.clone(),
        store: store.clone(),
        keys: KeySpace::new("q"),
        prefix: prefix.to_owned(),
        inline_limit: 8,
        max_value_size: 100,
        fresh: Box::new(fresh),
        now: Box::new(|| NOW),
    });
    Fixture { kv, store, values }
}

fn fixture() -> Fixture {
    let drawn = AtomicU64::new(0);
    fixture_drawing("some/prefix", move || u128::from(drawn.fetch_add(1, Ordering::Relaxed)))
}

fn run(id: &str, incarnation: u128) -> ObjectOwner {
    ObjectOwner::Run { run_id: RunId::parse(id).unwrap(), incarnation: Incarnation::new(incarnation) }
}

fn owner() -> ObjectOwner {
    run("r", 15)
}

fn signal() -> ObjectOwner {
    ObjectOwner::Signal(SignalId::new(15))
}

/// The row of the objects of a run, under the prefix of [`fixture`].
fn row(state: ObjectsState) -> Bytes {
    encode_objects_row(&ObjectsRow { since: NOW, prefix: "some/prefix".to_owned(), state })
}

/// The same of a signal.
fn signal_row(state: SignalObjectsState) -> Bytes {
    encode_signal_objects_row(&SignalObjectsRow { since: NOW, prefix: "some/prefix".to_owned(), state })
}

impl Fixture {
    async fn put(&self, len: usize) -> Result<Value> {
        self.values.put(&owner(), vec![7; len].into()).await
    }

    async fn paths(&self) -> Vec<String> {
        self.store.inner.list(None).map_ok(|object| object.location.into()).try_collect().await.unwrap()
    }

    /// Writes the owner's row.
    async fn write_row(&self, owner: &ObjectOwner, row: Bytes) {
        let commit = Commit { puts: vec![(owner.row(&KeySpace::new("q")), row)], ..Commit::default() };
        self.kv.inner.commit(vec![commit]).await;
    }

    fn row_of(&self, owner: &ObjectOwner) -> Option<Bytes> {
        let key = owner.row(&KeySpace::new("q"));
        self.kv.inner.entries().into_iter().find_map(|(found, row)| (found == key).then_some(row))
    }

    fn requests(&self) -> (u64, u64) {
        (self.kv.requests.load(Ordering::Relaxed), self.store.requests.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn small_values_cost_no_request_and_no_row() {
    let fixture = fixture();
    for len in [0, 1, 8] {
        let value = fixture.put(len).await.unwrap();
        assert_eq!(value, Value::from(vec![7; len]));
        assert_eq!(fixture.values.get(&value).await.unwrap(), vec![7; len]);
        fixture.values.discard(&value).await;
    }
    assert_eq!(fixture.requests(), (0, 0));
}

#[tokio::test]
async fn a_large_value_is_an_object_below_its_owner() {
    let fixture = fixture();
    let value = fixture.put(9).await.unwrap();
    let incarnation = "0000000000000000000000000000000f";
    let path = format!("some/prefix/r/{incarnation}/00000000000000000000000000000000");
    assert_eq!(value, Value::Object(ObjectRef { path: path.clone(), len: 9 }));
    assert_eq!(fixture.paths().await, [path]);
    assert_eq!(fixture.values.get(&value).await.unwrap(), vec![7; 9]);
    fixture.values.discard(&value).await;
    assert!(fixture.paths().await.is_empty());
}

#[tokio::test]
async fn a_large_signal_is_an_object_of_its_own_in_no_runs_folder() {
    let fixture = fixture();
    let value = fixture.values.put(&signal(), vec![7; 9].into()).await.unwrap();
    let id = "0000000000000000000000000000000f";
    let path = format!("some/prefix/signals./{id}/00000000000000000000000000000000");
    assert_eq!(fixture.paths().await, [path]);
    let key = signal().row(&KeySpace::new("q"));
    assert_eq!(fixture.kv.inner.entries(), [(key, signal_row(SignalObjectsState::Fresh))]);
    assert_eq!(fixture.values.get(&value).await.unwrap(), vec![7; 9]);
    assert!(RunId::parse("signals.").is_err(), "a run could have the folder of the signals");
    fixture.values.discard(&value).await;
    assert!(fixture.paths().await.is_empty());
}

#[tokio::test]
async fn a_small_signal_costs_no_request_and_no_row() {
    let fixture = fixture();
    let value = fixture.values.put(&signal(), vec![7; 8].into()).await.unwrap();
    assert_eq!(value, Value::from(vec![7; 8]));
    assert_eq!(fixture.requests(), (0, 0));
}

#[tokio::test]
async fn an_odd_prefix_is_a_path_all_the_same() {
    for prefix in ["", "/", "a//b/", "..", "ä b", "a%2Fb"] {
        let fixture = fixture_drawing(prefix, || 1);
        let value = fixture.put(9).await.unwrap();
        assert_eq!(fixture.values.get(&value).await.unwrap(), vec![7; 9], "{prefix:?}");
        assert_eq!(fixture.paths().await, [value.object().unwrap().path.clone()]);
    }
}

#[tokio::test]
async fn the_row_is_written_once() {
    let fixture = fixture();
    for _ in 0..3 {
        fixture.put(9).await.unwrap();
    }
    let key = owner().row(&KeySpace::new("q"));
    assert_eq!(fixture.kv.inner.entries(), [(key, row(ObjectsState::Fresh))]);
    assert_eq!(fixture.requests(), (4, 3), "one commit and a read before each object");
    assert_eq!(*fixture.kv.reads.lock().unwrap(), [Read::Durable; 3]);
}

#[tokio::test]
async fn a_row_of_unknown_outcome_or_of_a_rival_is_settled() {
    for script in [
        vec![RowCommit::AppliedUnknown],
        vec![RowCommit::Unknown],
        vec![RowCommit::AfterRival],
        vec![RowCommit::AfterRival, RowCommit::Unknown],
    ] {
        let fixture = fixture();
        *fixture.kv.script.lock().unwrap() = script;
        fixture.put(9).await.unwrap();
        assert_eq!(fixture.paths().await.len(), 1);
    }
}

#[tokio::test]
async fn without_a_row_no_object_is_written() {
    let fixture = fixture();
    *fixture.kv.script.lock().unwrap() = vec![RowCommit::Unknown; 3];
    let error = fixture.put(9).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)) && !error.is_permanent(), "{error}");
    assert!(fixture.paths().await.is_empty());
}

#[tokio::test]
async fn a_value_over_the_limit_is_refused_at_no_cost() {
    let fixture = fixture();
    fixture.put(100).await.unwrap();
    let before = fixture.requests();
    let error = fixture.put(101).await.unwrap_err();
    assert_eq!(error.to_string(), "the value of run r has 101 bytes and may have 100");
    assert!(error.is_permanent());
    let error = fixture.values.put(&signal(), vec![7; 101].into()).await.unwrap_err();
    assert_eq!(error.to_string(), "the value of a signal has 101 bytes and may have 100");
    assert_eq!(fixture.requests(), before);
}

#[tokio::test]
async fn an_object_is_never_overwritten() {
    let drawn = AtomicU64::new(0);
    let fixture = fixture_drawing("p", move || u128::from(drawn.fetch_add(1, Ordering::Relaxed) / 2));
    let (first, second) = (fixture.put(9).await.unwrap(), fixture.put(10).await.unwrap());
    assert_ne!(first, second);
    assert_eq!(fixture.values.get(&first).await.unwrap().len(), 9);

    let fixture = fixture_drawing("p", || 1);
    fixture.put(9).await.unwrap();
    let error = fixture.put(10).await.unwrap_err();
    assert!(matches!(error, Error::Store(object_store::Error::AlreadyExists { .. })), "{error}");
}

#[tokio::test]
async fn a_missing_object_and_one_of_another_length_are_corrupt() {
    let fixture = fixture();
    let check = async |value: Value, expected: &str| {
        for error in [fixture.values.get(&value).await.unwrap_err(), fixture.values.check(&value).await.unwrap_err()] {
            assert_eq!(error.to_string(), expected);
            assert!(error.is_permanent());
        }
    };
    let object = |path: &str, len| Value::Object(ObjectRef { path: path.to_owned(), len });
    check(object("p/gone", 9), "object p/gone is corrupt: it is missing").await;
    check(object("p//x", 9), "object p//x is corrupt: its path is none").await;
    fixture.values.discard(&object("p//x", 9)).await;
    let path = fixture.put(9).await.unwrap().object().unwrap().path.clone();
    let expected = format!("object {path} is corrupt: it has 9 bytes and should have 10");
    check(object(&path, 10), &expected).await;
}

#[tokio::test]
async fn whether_an_object_is_there_is_asked_without_reading_it() {
    let fixture = fixture();
    let (small, large) = (fixture.put(8).await.unwrap(), fixture.put(9).await.unwrap());
    let before = fixture.requests();
    fixture.values.check(&small).await.unwrap();
    assert_eq!(fixture.requests(), before);
    fixture.values.check(&large).await.unwrap();
    assert_eq!(fixture.requests(), (before.0, before.1 + 1));
}

#[tokio::test]
async fn detached_values_may_be_large() {
    let values = ObjectValues::detached(Arc::new(MemoryKv::new()));
    let large = vec![1; 1024 * 1024];
    let value = values.put(&owner(), large.clone().into()).await.unwrap();
    assert!(value.object().is_some());
    assert_eq!(values.get(&value).await.unwrap(), large);
}

#[test]
fn no_record_holds_more_than_the_largest_inline_limit() {
    let fixture = fixture();
    let config = ObjectConfig { inline_limit: usize::MAX, ..fixture.values.config };
    assert_eq!(ObjectValues::new(config).config.inline_limit, MAX_INLINE_LIMIT);
}

//! Pipelines over a store whose commits end when they are told to.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use workflow_core::Timestamp;
use workflow_effects::{MemoryKv, Rejected, ScanOrder, ScanPage, ScanRange};

use super::*;

/// Applies a commit once it may land. Its answer is lost as often as asked.
struct Held {
    rows: MemoryKv,
    may_land: Semaphore,
    lost_answers: Mutex<VecDeque<()>>,
    failing_reads: Mutex<VecDeque<()>>,
    /// How many keys each commit wrote.
    handed: Mutex<Vec<usize>>,
}

#[async_trait]
impl KvStore for Held {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>> {
        if self.failing_reads.lock().unwrap().pop_front().is_some() {
            return Err(Error::Unavailable("the store is down".into()));
        }
        self.rows.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage> {
        self.rows.scan(range, read).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        self.handed.lock().unwrap().extend(commits.iter().map(|commit| commit.written().count()));
        self.may_land.acquire().await.unwrap().forget();
        let answers = self.rows.commit(commits).await;
        match self.lost_answers.lock().unwrap().pop_front() {
            Some(()) => vec![Err(Rejected::Unknown(Error::Unavailable("the answer was lost".into())))],
            None => answers,
        }
    }
}

impl Held {
    fn new() -> Arc<Self> {
        let rows = MemoryKv::with_entries([("record", "0"), ("app/a", "old"), ("app/b", "old"), ("app/c", "old")]);
        let (lost_answers, failing_reads, handed) = Default::default();
        Arc::new(Self { rows, may_land: Semaphore::new(0), lost_answers, failing_reads, handed })
    }

    /// Lets `count` commits land, and gives others a turn.
    async fn land(&self, count: usize) {
        self.may_land.add_permits(count);
        for _ in 0..20 {
            yield_now().await;
        }
    }

    fn handed(&self) -> Vec<usize> {
        self.handed.lock().unwrap().clone()
    }

    fn value(&self, key: &str) -> Option<Bytes> {
        self.rows.entries().into_iter().find_map(|(found, value)| (found == key).then_some(value))
    }
}

/// Time stands still, and nobody waits.
struct NoTime;

#[async_trait]
impl Clock for NoTime {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    async fn sleep(&self, _: Duration) {
        yield_now().await;
    }
}

fn pipeline(store: &Arc<Held>) -> Pipeline {
    let (lease_lost, aborting) = (CancellationToken::new(), CancellationToken::new());
    let committer = Committer::new(store.clone() as Arc<dyn KvStore>);
    Pipeline::new(committer, Guards { clock: Arc::new(NoTime), lease_lost, aborting })
}

/// What the step with this number commits: the record, and a key of its own.
fn step(number: u32) -> Commit {
    let revision = |number: u32| Bytes::from(number.to_string());
    Commit {
        expect: vec![("record".into(), Some(revision(number)))],
        puts: vec![("record".into(), revision(number + 1)), (format!("app/{number}").into(), "new".into())],
        ..Commit::default()
    }
}

/// What a step came to that nobody looks at.
fn returned() -> Returned {
    let (outcome, now) = (Outcome::Fail { reason: String::new() }, Timestamp::from_millis(0));
    Returned { step: 0, outcome, staged: StagedEffects::default(), now, inline: true, started_at: None }
}

async fn take_in(pipeline: &Pipeline, commit: Commit) {
    pipeline.take_in(commit, returned).now_or_never().expect("there is room").unwrap();
    for _ in 0..20 {
        yield_now().await;
    }
}

#[tokio::test]
async fn what_comes_during_a_flight_commits_as_one() {
    let store = Held::new();
    let pipeline = pipeline(&store);
    for number in 0..5 {
        take_in(&pipeline, step(number)).await;
    }
    assert_eq!(store.handed(), [2]);
    assert!(pipeline.landed().now_or_never().is_none());
    store.land(1).await;
    assert_eq!(store.handed(), [2, 5], "the record, and four keys");
    assert_eq!(store.value("record").unwrap(), "1");
    assert!(pipeline.landed().now_or_never().is_none());
    store.land(1).await;
    assert!(pipeline.landed().now_or_never().unwrap().is_ok());
    assert_eq!(store.value("record").unwrap(), "5");
    take_in(&pipeline, step(5)).await;
    store.land(1).await;
    assert_eq!(store.value("record").unwrap(), "6");
}

#[tokio::test]
async fn a_step_reads_what_the_steps_before_it_have_committed() {
    let store = Held::new();
    let pipeline = pipeline(&store);
    let writes = |number, put: Option<&'static str>, deleted: &'static str| {
        let mut commit = Commit { deletes: vec![deleted.into()], ..step(number) };
        commit.puts.extend(put.map(|key| (key.into(), "new".into())));
        commit
    };
    take_in(&pipeline, writes(0, Some("app/a"), "app/b")).await;
    take_in(&pipeline, writes(1, Some("app/b"), "app/a")).await;
    take_in(&pipeline, writes(2, None, "app/c")).await;
    let check = async |moment: &str| {
        let branch = pipeline.branch();
        let read = async |key: &str| branch.get(key.as_bytes(), Read::Durable).await.unwrap();
        assert_eq!(read("app/a").await, None, "{moment}");
        assert_eq!(read("app/b").await.unwrap(), "new", "{moment}");
        assert_eq!(read("app/c").await, None, "{moment}");
        for (order, limit) in [(ScanOrder::Ascending, 9), (ScanOrder::Ascending, 1), (ScanOrder::Descending, 2)] {
            let range = ScanRange { order, ..ScanRange::first("app/", limit) };
            let mut keys = keys_of(branch.clone(), range).await;
            if order == ScanOrder::Descending {
                keys.reverse();
            }
            assert_eq!(keys, ["app/0", "app/1", "app/2", "app/b"], "{moment}, {order:?}, {limit} a page");
        }
    };
    check("one in flight, two waiting").await;
    store.land(1).await;
    check("two in flight").await;
    store.land(1).await;
    check("all landed").await;
    assert_eq!(pipeline.branch().get(b"app/other", Read::Durable).await.unwrap(), None);
}

async fn keys_of(store: Arc<dyn KvStore>, range: ScanRange) -> Vec<Bytes> {
    let mut pages = workflow_effects::Pages::new(store, range, Read::Durable);
    let mut keys = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        keys.extend(page.into_iter().map(|(key, _)| key));
    }
    keys
}

#[tokio::test]
async fn a_refused_flight_undoes_everything_after_it() {
    let store = Held::new();
    let pipeline = pipeline(&store);
    let (branch, barrier) = (pipeline.branch(), pipeline.barrier());
    take_in(&pipeline, step(0)).await;
    take_in(&pipeline, step(1)).await;
    let mut undone = Box::pin(pipeline.undone());
    assert!(undone.as_mut().now_or_never().is_none());
    let cancel = Commit { puts: vec![("record".into(), "cancelled".into())], ..Commit::default() };
    store.rows.commit(vec![cancel]).await.remove(0).unwrap();
    store.land(1).await;
    assert!(undone.now_or_never().is_some());
    assert_eq!(store.handed(), [2], "what waited goes nowhere");
    assert!(pipeline.refused().is_some());
    assert_eq!(store.value("app/0"), None);
    assert!(pipeline.take_in(step(2), returned).await.is_err() && pipeline.landed().await.is_err());
    assert!(barrier.wait().await.is_err());
    let memo = Commit { puts: vec![("memo".into(), "value".into())], ..Commit::default() };
    let refused = branch.commit(vec![memo]).await.remove(0);
    assert!(matches!(refused, Err(Rejected::Invalid(Error::Undone))), "{refused:?}");
    assert_eq!(branch.get(b"app/a", Read::Durable).await.unwrap().unwrap(), "old");
}

#[tokio::test]
async fn a_commit_of_a_step_waits_for_the_steps_before_it() {
    let store = Held::new();
    let pipeline = pipeline(&store);
    let (branch, barrier) = (pipeline.branch(), pipeline.barrier());
    assert!(barrier.wait().now_or_never().unwrap().is_ok(), "there is nothing to wait for");
    take_in(&pipeline, step(0)).await;
    let memo = Commit { puts: vec![("memo".into(), "value".into())], ..Commit::default() };
    let mut put = branch.commit(vec![memo]);
    assert!(put.as_mut().now_or_never().is_none() && barrier.wait().now_or_never().is_none());
    assert_eq!(store.handed(), [2]);
    store.land(1).await;
    assert!(barrier.wait().now_or_never().unwrap().is_ok());
    assert!(put.as_mut().now_or_never().is_none());
    assert_eq!(store.handed(), [2, 1]);
    store.land(1).await;
    assert!(put.await.remove(0).is_ok());
}

#[tokio::test]
async fn too_much_waits_for_its_turn() {
    let store = Held::new();
    let pipeline = pipeline(&store);
    take_in(&pipeline, step(0)).await;
    let mut taken = 1;
    let large = Bytes::from(vec![b'x'; 1 << 20]);
    let mut waiting = loop {
        let mut commit = step(taken);
        commit.puts.push((format!("large/{taken}").into(), large.clone()));
        let mut taking = Box::pin(pipeline.take_in(commit, returned));
        if taking.as_mut().now_or_never().is_none() {
            break taking;
        }
        taken += 1;
    };
    assert_eq!(taken, 5, "four of a mebibyte wait");
    store.land(1).await;
    assert!(waiting.as_mut().now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_found_however_long_the_store_is_down() {
    for failing_reads in 0..3 {
        let store = Held::new();
        let pipeline = pipeline(&store);
        store.lost_answers.lock().unwrap().push_back(());
        store.failing_reads.lock().unwrap().extend(vec![(); failing_reads]);
        take_in(&pipeline, step(0)).await;
        store.land(9).await;
        assert!(pipeline.landed().now_or_never().unwrap().is_ok(), "{failing_reads}");
        assert_eq!(store.value("record").unwrap(), "1");
    }
}

#[tokio::test]
async fn a_pipeline_that_is_dropped_lets_nothing_more_take_off() {
    let store = Held::new();
    let pipeline = pipeline(&store);
    let barrier = pipeline.barrier();
    take_in(&pipeline, step(0)).await;
    take_in(&pipeline, step(1)).await;
    drop(pipeline);
    store.land(9).await;
    assert_eq!(store.handed(), [2]);
    assert!(barrier.wait().await.is_err());
}

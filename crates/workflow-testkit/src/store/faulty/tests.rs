//! Each fault, on the kinds of requests that can meet it.

use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;
use crate::When;

fn at(path: &str) -> Path {
    Path::from(path)
}

fn store(plan: StorePlan) -> (FaultyStore, Arc<InMemory>) {
    let disk = Arc::new(InMemory::new());
    (FaultyStore::new(disk.clone(), plan), disk)
}

/// Whether `answer` failed as a fault fails, and of what.
fn fault<T>(answer: Result<T>) -> Option<io::ErrorKind> {
    match answer {
        Err(Error::Generic { source, .. }) => Some(source.downcast_ref::<io::Error>()?.kind()),
        _ => None,
    }
}

const TIMED_OUT: Option<io::ErrorKind> = Some(io::ErrorKind::TimedOut);
const STORAGE_FULL: Option<io::ErrorKind> = Some(io::ErrorKind::StorageFull);

/// Makes one request of each kind; gives the names of those that failed, and leaves `a` there.
async fn failed_of_each_kind(store: &FaultyStore, disk: &InMemory) -> Vec<&'static str> {
    for path in ["a", "old", "moved"] {
        disk.put(&at(path), "1".into()).await.unwrap();
    }
    let upload = async {
        let mut upload = store.put_multipart(&at("big")).await?;
        upload.put_part("1".into()).await?;
        upload.complete().await
    };
    let answers = [
        ("put", store.put(&at("b"), "1".into()).await.err()),
        ("upload", upload.await.err()),
        ("copy", store.copy(&at("a"), &at("c")).await.err()),
        ("rename", store.rename(&at("moved"), &at("d")).await.err()),
        ("delete", store.delete(&at("old")).await.err()),
        ("get", store.get(&at("a")).await.err()),
        ("head", store.head(&at("a")).await.err()),
        ("ranges", store.get_ranges(&at("a"), &[0..1, 0..1]).await.err()),
        ("list", store.list(None).try_collect::<Vec<_>>().await.err()),
        ("listing", store.list_with_delimiter(None).await.err()),
    ];
    answers.into_iter().filter(|(_, error)| error.is_some()).map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_plan_is_about_the_requests_it_names() {
    for (calls, expected) in [
        (
            StoreCalls::Any,
            &["put", "upload", "copy", "rename", "delete", "get", "head", "ranges", "list", "listing"][..],
        ),
        (StoreCalls::Writes, &["put", "upload", "copy", "rename", "delete"]),
        (StoreCalls::Reads, &["get", "head", "ranges", "list", "listing"]),
        (StoreCalls::Put, &["put"]),
        (StoreCalls::Multipart, &["upload"]),
        (StoreCalls::Copy, &["copy"]),
        (StoreCalls::Rename, &["rename"]),
        (StoreCalls::Delete, &["delete"]),
        (StoreCalls::Get, &["get", "head", "ranges"]),
        (StoreCalls::List, &["list", "listing"]),
    ] {
        for fault in [StoreFault::Fails, StoreFault::AnswerLost] {
            let (store, disk) = store(Plan::of(calls, When::Always, fault));
            assert_eq!(failed_of_each_kind(&store, &disk).await, expected, "{calls:?} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_fails_does_not_reach_the_store() {
    let (store, disk) = store(Plan::of(StoreCalls::Writes, When::First(2), StoreFault::Fails));
    disk.put(&at("a"), "1".into()).await.unwrap();
    assert_eq!(fault(store.put(&at("a"), "2".into()).await), TIMED_OUT);
    assert_eq!(fault(store.delete(&at("a")).await), TIMED_OUT);
    assert_eq!(store.get(&at("a")).await.unwrap().bytes().await.unwrap(), "1");
    store.put(&at("a"), "2".into()).await.unwrap();
    assert_eq!(store.met().rules.len(), 2);
}

#[tokio::test]
async fn a_request_whose_answer_is_lost_is_carried_out() {
    let (store, disk) = store(Plan::of(StoreCalls::Writes, When::Always, StoreFault::AnswerLost));
    assert_eq!(fault(store.put(&at("a"), "1".into()).await), TIMED_OUT);
    assert_eq!(disk.get(&at("a")).await.unwrap().bytes().await.unwrap(), "1");
    assert_eq!(fault(store.delete(&at("a")).await), TIMED_OUT);
    assert!(disk.get(&at("a")).await.is_err());
}

#[tokio::test]
async fn of_several_deletes_each_meets_its_own_fault() {
    let plan = Plan::of(StoreCalls::Delete, When::Nth(2), StoreFault::AnswerLost).and(
        StoreCalls::Delete,
        When::Nth(3),
        StoreFault::Fails,
    );
    let (store, disk) = store(plan);
    let paths = ["a", "b", "c", "d"];
    for path in paths {
        disk.put(&at(path), "1".into()).await.unwrap();
    }
    let locations = stream::iter(paths.map(|path| Ok(at(path)))).boxed();
    let answers: Vec<_> = store.delete_stream(locations).map(|answer| answer.is_ok()).collect().await;
    assert_eq!(answers, [true, false, false, true]);
    assert_eq!(disk.list(None).map_ok(|object| object.location).try_collect::<Vec<_>>().await.unwrap(), [at("c")]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_takes_its_time() {
    const HOUR: Duration = Duration::from_secs(3600);
    let (store, disk) = store(Plan::of(StoreCalls::Put, When::Nth(1), StoreFault::Slow(HOUR)));
    let given_up = tokio::time::timeout(HOUR / 2, store.put(&at("a"), "1".into())).await;
    assert!(given_up.is_err() && disk.get(&at("a")).await.is_err());
    store.follow(Plan::of(StoreCalls::Put, When::Nth(1), StoreFault::Slow(HOUR)));
    let begun = tokio::time::Instant::now();
    store.put(&at("a"), "1".into()).await.unwrap();
    assert_eq!(begun.elapsed(), HOUR);
}

#[tokio::test]
async fn a_full_store_takes_nothing_and_gives_room_again() {
    let (store, _) = store(Plan::none());
    store.put(&at("a"), "12345".into()).await.unwrap();
    store.set_capacity(8);
    assert_eq!(fault(store.put(&at("b"), "1234".into()).await), STORAGE_FULL);
    let mut upload = store.put_multipart(&at("b")).await.unwrap();
    assert_eq!(fault(upload.put_part("1234".into()).await), STORAGE_FULL);
    store.put(&at("b"), "123".into()).await.unwrap();
    assert_eq!(store.get(&at("a")).await.unwrap().bytes().await.unwrap(), "12345");
    store.delete(&at("a")).await.unwrap();
    store.put(&at("c"), "1234".into()).await.unwrap();
    store.set_capacity(None);
    store.put(&at("d"), "12345678".into()).await.unwrap();
}

#[tokio::test]
async fn a_plan_can_fill_the_store_for_a_while() {
    let (store, disk) = store(Plan::of(StoreCalls::Any, When::Always, StoreFault::Full));
    assert_eq!(failed_of_each_kind(&store, &disk).await, ["put", "upload", "copy"]);
    assert_eq!(fault(store.put(&at("b"), "1".into()).await), STORAGE_FULL);
    store.follow(Plan::none());
    store.put(&at("b"), "1".into()).await.unwrap();
    assert_eq!(store.to_string(), "FaultyStore(InMemory)");
}

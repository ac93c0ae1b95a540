//! Every kind of write counts; after the cut no kind of call returns.

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;

fn at(path: &str) -> Path {
    Path::from(path)
}

async fn names(store: &InMemory) -> Vec<String> {
    let mut names: Vec<_> = store.list(None).map_ok(|found| found.location.to_string()).try_collect().await.unwrap();
    names.sort();
    names
}

#[tokio::test]
async fn writes_of_every_kind_count_and_reads_do_not() {
    let disk = Arc::new(InMemory::new());
    let store = PowerCut::after(usize::MAX, disk.clone());
    store.put(&at("a"), "1".into()).await.unwrap();
    store.copy(&at("a"), &at("b")).await.unwrap();
    store.rename(&at("b"), &at("c")).await.unwrap();
    assert_eq!(store.writes(), 3);
    store.get(&at("a")).await.unwrap().bytes().await.unwrap();
    store.head(&at("a")).await.unwrap();
    store.list(None).try_collect::<Vec<_>>().await.unwrap();
    store.list_with_delimiter(None).await.unwrap();
    assert_eq!(store.writes(), 3);
    store.delete_stream(stream::iter([Ok(at("a")), Ok(at("c"))]).boxed()).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(store.writes(), 5);
    let mut upload = store.put_multipart(&at("d")).await.unwrap();
    upload.put_part("1".into()).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(store.writes(), 8);
    assert_eq!(names(&disk).await, ["d"]);
    assert!(!store.is_cut());
}

#[tokio::test]
async fn after_the_cut_nothing_reaches_the_store_and_no_call_returns() {
    let disk = Arc::new(InMemory::new());
    let store = PowerCut::after(2, disk.clone());
    store.put(&at("a"), "1".into()).await.unwrap();
    let found = store.get(&at("a")).await.unwrap();
    let mut listing = store.list(None);
    let mut upload = store.put_multipart(&at("b")).await.unwrap();
    assert!(!store.is_cut() && store.cut().now_or_never().is_none());

    assert!(store.put(&at("c"), "1".into()).now_or_never().is_none());
    assert!(store.is_cut() && store.cut().now_or_never().is_some());
    assert_eq!(store.writes(), 2);
    assert!(found.bytes().now_or_never().is_none());
    assert!(listing.next().now_or_never().is_none());
    assert!(upload.put_part("1".into()).now_or_never().is_none());
    assert!(upload.complete().now_or_never().is_none());
    assert!(upload.abort().now_or_never().is_none());
    assert!(store.get(&at("a")).now_or_never().is_none());
    assert!(store.get_ranges(&at("a"), &[0..1, 0..1]).now_or_never().is_none());
    assert!(store.head(&at("a")).now_or_never().is_none());
    assert!(store.delete(&at("a")).now_or_never().is_none());
    assert!(store.copy(&at("a"), &at("d")).now_or_never().is_none());
    assert!(store.rename(&at("a"), &at("d")).now_or_never().is_none());
    assert!(store.list(None).next().now_or_never().is_none());
    assert!(store.list_with_offset(None, &at("z")).next().now_or_never().is_none());
    assert!(store.list_with_delimiter(None).now_or_never().is_none());
    assert_eq!(store.writes(), 2);
    assert_eq!(names(&disk).await, ["a"]);
}

#[tokio::test]
async fn a_call_in_flight_does_not_return_either() {
    let disk = Arc::new(InMemory::new());
    let gate = crate::Gate::new(disk.clone());
    let store = PowerCut::after(1, Arc::new(gate.clone()));
    gate.close();
    let (first, second) = (at("a"), at("b"));
    let mut in_flight = Box::pin(store.put(&first, "1".into()));
    assert!(in_flight.as_mut().now_or_never().is_none());
    assert!(store.put(&second, "1".into()).now_or_never().is_none());
    gate.open();
    assert!(in_flight.now_or_never().is_none());
    assert_eq!(names(&disk).await, ["a"]);
}

#[tokio::test]
async fn the_power_can_be_cut_at_any_time() {
    let disk = Arc::new(InMemory::new());
    let store = PowerCut::after(usize::MAX, disk.clone());
    store.put(&at("a"), "1".into()).await.unwrap();
    store.cut_now();
    assert!(store.get(&at("a")).now_or_never().is_none());
    assert!(store.put(&at("b"), "1".into()).now_or_never().is_none());
    assert_eq!((names(&disk).await, store.is_cut()), (vec!["a".to_owned()], true));
}

#[tokio::test]
async fn without_writes_there_is_no_power_cut() {
    let store = PowerCut::after(0, Arc::new(InMemory::new()));
    assert!(store.get(&at("a")).await.is_err());
    assert!(store.put(&at("a"), "1".into()).now_or_never().is_none());
    assert!(store.is_cut());
    assert_eq!(store.to_string(), "PowerCut(InMemory)");
}

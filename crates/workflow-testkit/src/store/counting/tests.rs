//! Requests are counted by kind, and their answers are the wrapped store's.

use futures::{StreamExt, TryStreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::*;

fn at(path: &str) -> Path {
    Path::from(path)
}

#[tokio::test]
async fn requests_are_counted_by_kind() {
    let store = Counting::new(Arc::new(InMemory::new()));
    store.put(&at("a"), "1".into()).await.unwrap();
    let mut upload = store.put_multipart(&at("b")).await.unwrap();
    upload.put_part("2".into()).await.unwrap();
    upload.complete().await.unwrap();
    store.put_multipart(&at("x")).await.unwrap().abort().await.unwrap();
    store.copy(&at("a"), &at("c")).await.unwrap();
    store.rename(&at("c"), &at("d")).await.unwrap();
    store.get(&at("a")).await.unwrap();
    store.head(&at("a")).await.unwrap();
    store.get_ranges(&at("a"), &[0..1, 0..1]).await.unwrap();
    store.list(None).try_collect::<Vec<_>>().await.unwrap();
    store.list_with_offset(None, &at("a")).try_collect::<Vec<_>>().await.unwrap();
    store.list_with_delimiter(None).await.unwrap();
    store.delete_stream(stream::iter([Ok(at("a")), Ok(at("b"))]).boxed()).try_collect::<Vec<_>>().await.unwrap();
    store.delete(&at("d")).await.unwrap();
    let expected = Requests { puts: 1, multiparts: 5, gets: 3, lists: 3, deletes: 3, copies: 1, renames: 1 };
    let counted = store.requests();
    assert_eq!(counted, expected);
    assert_eq!((counted.writes(), counted.total()), (11, 17));
    assert_eq!(counted.since(expected), Requests::default());
    assert_eq!(store.to_string(), "Counting(InMemory)");
}

#[tokio::test]
async fn answers_are_those_of_the_wrapped_store() {
    let store = Counting::new(Arc::new(InMemory::new()));
    let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(&at("a"), "0123456789".into(), create.clone()).await.unwrap();
    let taken = store.put_opts(&at("a"), "1".into(), create).await;
    assert!(matches!(taken, Err(object_store::Error::AlreadyExists { .. })));
    let options = GetOptions { range: Some(GetRange::Bounded(2..4)), ..GetOptions::default() };
    let found = store.get_opts(&at("a"), options).await.unwrap();
    assert_eq!((found.range.clone(), found.meta.size), (2..4, 10));
    assert_eq!(found.bytes().await.unwrap(), "23");
    let deleted = store.delete_stream(stream::iter([Ok(at("a"))]).boxed()).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(deleted, [at("a")]);
    let missing = store.get(&at("a")).await;
    assert!(matches!(missing, Err(object_store::Error::NotFound { .. })));
}

//! Reads: what is seen, in how many requests, and what never is.

use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::keys::KeySpace;
use crate::port::{Commit, Rejected, ScanPage};

/// Notes each request.
struct Noting {
    inner: MemoryKv,
    scans: Mutex<Vec<ScanRange>>,
}

#[async_trait]
impl KvStore for Noting {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>> {
        assert_eq!(read, Read::Durable);
        self.inner.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage> {
        assert_eq!(read, Read::Durable);
        self.scans.lock().unwrap().push(range.clone());
        self.inner.scan(range, read).await
    }

    async fn commit(&self, _commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        unreachable!("reads commit nothing")
    }
}

fn noting(keys: impl IntoIterator<Item = Bytes>) -> Arc<Noting> {
    let entries = keys.into_iter().map(|key| (key, "v"));
    Arc::new(Noting { inner: MemoryKv::with_entries(entries), scans: Mutex::default() })
}

/// Scans `prefix` in `kv`: the keys found, and the number of requests.
async fn scan(kv: &Arc<Noting>, prefix: &[u8]) -> (Vec<Bytes>, usize) {
    kv.scans.lock().unwrap().clear();
    let entries: Vec<_> = KvReadHandle::new(kv.clone()).scan(prefix).try_collect().await.unwrap();
    (entries.into_iter().map(|(key, _)| key).collect(), kv.scans.lock().unwrap().len())
}

fn numbered(prefix: &str, count: usize) -> Vec<Bytes> {
    (0..count).map(|index| format!("{prefix}{index:05}").into()).collect()
}

/// A thousand keys of the runtime's, among them the greatest of all.
fn reserved() -> Vec<Bytes> {
    let mut keys = vec![KeySpace::new("").priority(0), KeySpace::new(&"\u{10ffff}".repeat(9)).priority(0)];
    keys.extend((0..998).map(|index| KeySpace::new(&format!("q{index}")).priority(0)));
    keys
}

#[tokio::test]
async fn a_scan_gives_its_prefix_page_by_page() {
    for (count, requests) in [(0, 1), (1, 1), (256, 1), (257, 2), (512, 2), (700, 3)] {
        let expected = numbered("p/", count);
        let kv = noting(expected.iter().cloned().chain(["a".into(), "p".into(), "p0".into()]));
        assert_eq!(scan(&kv, b"p/").await, (expected, requests), "{count}");
    }
}

#[tokio::test]
async fn a_scan_hops_over_the_reserved_range() {
    let before = numbered("a", 300);
    let after: Vec<Bytes> = ["workflow0", "x"].map(Bytes::from).into();
    let kv = noting(before.iter().chain(&after).cloned().chain(reserved()));
    let expected: Vec<Bytes> = before.into_iter().chain(after).collect();
    assert_eq!(scan(&kv, b"").await, (expected, 3));
}

#[tokio::test]
async fn a_scan_that_begins_within_the_reserved_range_is_empty_and_costs_nothing() {
    let kv = noting(reserved());
    for prefix in ["workflow/", "workflow/q1/"] {
        assert_eq!(scan(&kv, prefix.as_bytes()).await, (vec![], 0));
    }
    assert_eq!(scan(&kv, b"workflow").await, (vec![], 2));
}

#[tokio::test]
async fn a_few_reserved_entries_inside_a_page_cost_no_hop() {
    let kv = noting(["a".into(), KeySpace::new("q").priority(0), "z".into()]);
    assert_eq!(scan(&kv, b"").await, (vec!["a".into(), "z".into()], 1));
}

#[tokio::test]
async fn a_scan_does_not_borrow_its_prefix() {
    let kv = KvReadHandle::detached_with([("p/1", "v")]);
    let mut found = kv.scan(&String::from("p/").into_bytes());
    drop(kv);
    assert_eq!(found.next().await.unwrap().unwrap(), ("p/1".into(), "v".into()));
    assert!(found.next().await.is_none());
}

#[tokio::test]
async fn a_key_that_no_application_has_is_an_error() {
    let kv = KvReadHandle::new(noting(["k".into()]));
    assert_eq!(kv.get(b"k").await.unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(kv.get(b"absent").await.unwrap(), None);
    let error = kv.get(b"workflow/q/run/r").await.unwrap_err();
    assert!(matches!(error, Error::ReservedKey { .. }) && error.is_permanent());
    assert!(matches!(kv.get(b"").await, Err(Error::KeyLength { len: 0 })));
    assert!(matches!(kv.get(&[0; 1025]).await, Err(Error::KeyLength { len: 1025 })));
}

#[tokio::test]
async fn a_detached_handle_is_empty() {
    assert_eq!(KvReadHandle::detached().get(b"k").await.unwrap(), None);
}

//! Commits and scans of the store in memory.

use workflow_core::JobId;

use super::*;
use crate::port::{Enqueue, ScanOrder};

fn pairs(entries: &[(Bytes, Bytes)]) -> Vec<(&str, &str)> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    entries.iter().map(|(key, value)| (text(key), text(value))).collect()
}

async fn commit(kv: &MemoryKv, commit: Commit) -> Result<(), Rejected> {
    kv.commit(vec![commit]).await.remove(0)
}

#[tokio::test]
async fn a_commit_applies_as_a_whole_or_not_at_all() {
    let kv = MemoryKv::with_entries([("a", "1"), ("b", "2")]);
    let good = Commit {
        expect: vec![("a".into(), Some("1".into())), ("c".into(), None)],
        puts: vec![("a".into(), "3".into()), ("c".into(), "4".into())],
        deletes: vec!["b".into(), "absent".into()],
        ..Commit::default()
    };
    assert!(commit(&kv, good.clone()).await.is_ok());
    assert_eq!(pairs(&kv.entries()), [("a", "3"), ("c", "4")]);
    assert!(matches!(commit(&kv, good).await, Err(Rejected::Conflict)));
    assert_eq!(pairs(&kv.entries()), [("a", "3"), ("c", "4")]);
}

#[tokio::test]
async fn each_commit_of_a_group_stands_alone() {
    let kv = MemoryKv::new();
    let first = Commit { expect: vec![("a".into(), None)], puts: vec![("a".into(), "1".into())], ..Commit::default() };
    let answers = kv.commit(vec![first.clone(), first]).await;
    assert!(matches!(answers[..], [Ok(()), Err(Rejected::Conflict)]), "{answers:?}");
}

#[tokio::test]
async fn jobs_and_broken_rules_are_invalid() {
    let kv = MemoryKv::new();
    let job = Enqueue { queue: "q".into(), job: JobId::from("j"), payload: Bytes::new(), due: None };
    let enqueue = Commit { puts: vec![("a".into(), "1".into())], enqueues: vec![job], ..Commit::default() };
    assert!(matches!(commit(&kv, enqueue).await, Err(Rejected::Invalid(Error::NoQueue))));
    let broken = Commit { expect: vec![("a".into(), None)], ..Commit::default() };
    assert!(matches!(commit(&kv, broken).await, Err(Rejected::Invalid(Error::InvalidCommit { .. }))));
    assert!(kv.entries().is_empty());
}

#[tokio::test]
async fn a_scan_is_cut_into_pages() {
    let kv = MemoryKv::with_entries([("a", "0"), ("p/1", "1"), ("p/2", "2"), ("p/3", "3"), ("q", "4")]);
    let scan = async |after: Option<&'static str>, limit| {
        let range = ScanRange { after: after.map(Into::into), ..ScanRange::first("p/", limit) };
        let page = kv.scan(&range, Read::Latest).await.unwrap();
        (pairs(&page.entries).into_iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(scan(None, 2).await, (vec!["p/1".into(), "p/2".into()], true));
    assert_eq!(scan(Some("p/2"), 2).await, (vec!["p/3".into()], false));
    assert_eq!(scan(Some("p/3"), 2).await, (vec![], false));
    assert_eq!(scan(Some("a"), 3).await, (vec!["p/1".into(), "p/2".into(), "p/3".into()], false));
    assert_eq!(scan(Some("q"), 3).await, (vec![], false));
}

#[tokio::test]
async fn a_descending_scan_begins_at_the_last_key_of_its_prefix() {
    let keys: [&[u8]; 6] = [b"a", b"p\xff", b"p\xff\x01", b"p\xff\xff", b"q", b"\xff\xff"];
    let kv = MemoryKv::with_entries(keys.map(|key| (key, "")));
    let check = async |prefix: &'static [u8], after: Option<&'static [u8]>, limit, found: &[&[u8]], more| {
        let range = ScanRange { after: after.map(Into::into), ..ScanRange::first(prefix, limit) };
        let range = ScanRange { order: ScanOrder::Descending, ..range };
        let page = kv.scan(&range, Read::Latest).await.unwrap();
        let keys: Vec<_> = page.entries.iter().map(|(key, _)| key.as_ref()).collect();
        assert_eq!((keys.as_slice(), page.more), (found, more), "{range:?}");
    };
    check(b"p\xff", None, 2, &[b"p\xff\xff", b"p\xff\x01"], true).await;
    check(b"p\xff", Some(b"p\xff\x01"), 2, &[b"p\xff"], false).await;
    check(b"p\xff", Some(b"p\xff"), 2, &[], false).await;
    check(b"p\xff", Some(b"b"), 2, &[], false).await;
    check(b"p\xff", Some(b"q"), 1, &[b"p\xff\xff"], true).await;
    check(b"\xff", None, 2, &[b"\xff\xff"], false).await;
    check(b"", None, 2, &[b"\xff\xff", b"q"], true).await;
    check(b"q", None, 0, &[], false).await;
}

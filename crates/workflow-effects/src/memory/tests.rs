//! Commits and scans of the store in memory.

use workflow_core::JobId;

use super::*;
use crate::port::Enqueue;

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
        let range = ScanRange { prefix: "p/".into(), after: after.map(Into::into), limit };
        let page = kv.scan(&range, Read::Latest).await.unwrap();
        (pairs(&page.entries).into_iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(scan(None, 2).await, (vec!["p/1".into(), "p/2".into()], true));
    assert_eq!(scan(Some("p/2"), 2).await, (vec!["p/3".into()], false));
    assert_eq!(scan(Some("p/3"), 2).await, (vec![], false));
    assert_eq!(scan(Some("a"), 3).await, (vec!["p/1".into(), "p/2".into(), "p/3".into()], false));
    assert_eq!(scan(Some("q"), 3).await, (vec![], false));
}

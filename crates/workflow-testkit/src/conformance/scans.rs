//! Scans.

use std::collections::BTreeMap;

use bytes::Bytes;
use workflow_effects::Pages;
use workflow_runtime::port::{Commit, Read, ScanOrder, ScanRange};

use super::Subject;
use super::world::{World, descending, range};

const KEYS: &[&str] =
    &["k/", "k/\0", "k/\0/1", "k/a", "k/a/", "k/a/1", "k/a/2", "k/a0", "k/b/1", "k/\u{7f}", "k/\u{10ffff}", "l/1"];

async fn filled<S: Subject>() -> (World<S>, BTreeMap<Bytes, Bytes>) {
    let world = World::<S>::new().await;
    let entries: BTreeMap<Bytes, Bytes> =
        KEYS.iter().map(|key| (Bytes::from(*key), format!("at {key}").into())).collect();
    let puts = entries.iter().rev().map(|(key, value)| (key.clone(), value.clone())).collect();
    world.commit(Commit { puts, ..Commit::default() }).await.expect("puts without expectations are applied");
    // What was there once is not found.
    world.put("k/a/3", "gone").await;
    let commit = Commit { deletes: vec!["k/a/3".into()], ..Commit::default() };
    world.commit(commit).await.expect("a delete without an expectation is applied");
    (world, entries)
}

/// "The entries of `range` in its order, at most `range.limit` of them", for every prefix, start and limit, in and out
/// of what is there.
pub async fn a_scan_shows_what_its_range_says<S: Subject>() {
    let (world, entries) = filled::<S>().await;
    let starts = KEYS.iter().copied().chain(["", "a", "k", "k/a/0", "k/a/9", "k/zzz", "zzz"]).map(Some).chain([None]);
    for after in starts {
        for prefix in ["k/", "k/a", "k/a/", "k/a/1", "k/nothing/", "k/\0"] {
            for limit in [0, 1, 2, 3, 99] {
                for range in [range(prefix, after, limit), descending(prefix, after, limit)] {
                    for read in [Read::Latest, Read::Durable] {
                        let page = world.port.scan(&range, read).await.expect("an open store answers a scan");
                        assert_eq!(page, range.page_of(&entries), "{range:?}");
                    }
                }
            }
        }
    }
}

/// "Whether the range holds entries beyond the last of these."
pub async fn pages_follow_each_other_without_a_gap<S: Subject>() {
    let (world, entries) = filled::<S>().await;
    let mut all: Vec<_> = entries.into_iter().filter(|(key, _)| key.starts_with(b"k/")).collect();
    for order in [ScanOrder::Ascending, ScanOrder::Descending] {
        for limit in 1..=all.len() + 1 {
            assert_eq!(in_pages(&world, order, limit).await, all, "{order:?}, in pages of {limit}");
        }
        all.reverse();
    }
}

/// Everything below `k/`, read a page after the other.
async fn in_pages<S: Subject>(world: &World<S>, order: ScanOrder, limit: usize) -> Vec<(Bytes, Bytes)> {
    let range = ScanRange { order, ..ScanRange::first("k/", limit) };
    let (mut found, mut pages) = (Vec::new(), Pages::new(world.port.clone(), range, Read::Latest));
    while let Some(entries) = pages.next().await.expect("an open store answers a scan") {
        found.extend(entries);
    }
    found
}

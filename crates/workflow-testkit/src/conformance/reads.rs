//! The two kinds of read.

use workflow_runtime::port::{Commit, Read, ScanRange};

use super::Subject;
use super::world::{World, assert_waits, at_once, descending, putting, range, soon};

/// A commit in flight that puts `p/new` and deletes `p/old`, which was there.
async fn in_flight<S: Subject>(world: &World<S>) -> tokio::task::JoinHandle<()> {
    world.put("p/old", "old").await;
    world.subject.hold();
    let commit = Commit { deletes: vec!["p/old".into()], ..putting("p/new", "new") };
    let begun = world.begin(commit).await;
    assert!(!begun.is_finished(), "nothing is durable while the store is held");
    tokio::spawn(async move { begun.await.expect("the task does not panic").expect("the commit is applied") })
}

/// "The latest commit's state, which a crash may still undo."
pub async fn a_latest_read_waits_for_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    let flight = in_flight(&world).await;
    let new = at_once(world.latest("p/new")).await.expect("it waits for nothing");
    let old = at_once(world.latest("p/old")).await.expect("it waits for nothing");
    assert_ne!(new.is_some(), old.is_some(), "a commit is seen whole or not at all");
    let keys = at_once(world.keys(&range("p/", None, 9), Read::Latest)).await.expect("it waits for nothing");
    assert_eq!(keys, if new.is_some() { ["p/new"] } else { ["p/old"] });
    world.subject.release();
    soon(flight).await.expect("the commit is applied");
    assert_eq!(world.latest("p/old").await, None);
    assert_eq!(world.latest("p/new").await.as_deref(), Some(&b"new"[..]));
}

/// "Waits for the commits in flight on what is read. Needed by whatever leaves the process."
pub async fn what_a_durable_read_answers_survives_a_crash<S: Subject>() {
    // Answered while the store is held, or not at all.
    let world = World::<S>::new().await;
    drop(in_flight(&world).await);
    let (page, tail) = (range("p/", None, 9), range("p/", Some("p/n"), 9));
    let (back, back_tail) = (descending("p/", None, 9), descending("p/", Some("p/p"), 9));
    let put = at_once(world.get("p/new", Read::Durable)).await;
    let deleted = at_once(world.get("p/old", Read::Durable)).await;
    let mut scanned = Vec::new();
    for range in [&page, &tail, &back, &back_tail] {
        scanned.push(at_once(world.keys(range, Read::Durable)).await);
    }
    let world = world.crash().await;
    assert!(put.is_none_or(|value| value.is_none()), "it was never durable");
    assert!(deleted.is_none_or(|value| value.is_some()), "it is there still");
    for keys in scanned {
        assert!(keys.is_none_or(|keys| keys == ["p/old"]));
    }
    assert_eq!(world.keys(&page, Read::Latest).await, ["p/old"]);

    // Answered when the store is released.
    let world = World::<S>::new().await;
    let flight = in_flight(&world).await;
    let is_visible = world.latest("p/new").await.is_some();
    {
        let mut reads = Box::pin(async {
            let (put, deleted) = (world.get("p/new", Read::Durable).await, world.get("p/old", Read::Durable).await);
            (put, deleted, world.keys(&page, Read::Durable).await, world.keys(&back, Read::Durable).await)
        });
        if is_visible {
            assert_waits(&mut reads).await;
            world.subject.release();
            let (put, deleted, keys, back_keys) = soon(reads).await;
            assert_eq!((put.as_deref(), deleted), (Some(&b"new"[..]), None));
            assert_eq!((keys.as_slice(), back_keys.as_slice()), (&["p/new".into()][..], &["p/new".into()][..]));
        }
    }
    world.subject.release();
    soon(flight).await.expect("the commit is applied");
    let world = world.crash().await;
    assert_eq!(world.keys(&page, Read::Durable).await, ["p/new"]);
}

/// "Waits for the commits in flight on what is read", and for no others.
pub async fn a_durable_read_waits_for_nothing_but_what_it_reads<S: Subject>() {
    let world = World::<S>::new().await;
    for key in ["p/1", "p/2", "p/3"] {
        world.put(key, "old").await;
    }
    world.subject.hold();
    let flight = world.begin(putting("p/3", "new")).await;
    assert!(at_once(world.get("p/2", Read::Durable)).await.expect("it waits for nothing").is_some());
    assert!(at_once(world.get("q", Read::Durable)).await.expect("it waits for nothing").is_none());
    assert_waits_for_nothing(
        &world,
        &[
            (range("p/", None, 2), &["p/1", "p/2"]),
            (range("p/", Some("p/1"), 1), &["p/2"]),
            (range("p/", Some("p/3"), 9), &[]),
            (range("q/", None, 9), &[]),
            (descending("p/", Some("p/3"), 9), &["p/2", "p/1"]),
            (descending("q/", None, 9), &[]),
        ],
    )
    .await;
    world.subject.release();
    soon(flight).await.expect("the task does not panic").expect("the commit is applied");

    world.subject.hold();
    let flight = world.begin(putting("p/1", "new")).await;
    assert_waits_for_nothing(
        &world,
        &[
            (range("p/", Some("p/1"), 9), &["p/2", "p/3"]),
            (descending("p/", None, 2), &["p/3", "p/2"]),
            (descending("p/", Some("p/3"), 1), &["p/2"]),
            (descending("p/", Some("p/1"), 9), &[]),
        ],
    )
    .await;
    world.subject.release();
    soon(flight).await.expect("the task does not panic").expect("the commit is applied");
}

async fn assert_waits_for_nothing<S: Subject>(world: &World<S>, scans: &[(ScanRange, &[&str])]) {
    for (range, found) in scans {
        let keys = at_once(world.keys(range, Read::Durable)).await;
        assert_eq!(keys.expect("it waits for nothing"), *found, "{range:?}");
    }
}

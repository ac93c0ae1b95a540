//! One damage at a time, and exactly what is told of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use workflow_effects::{BellTarget, decode_doorbell, decode_signal_expiry};
use workflow_runtime::ViolationKind::{self, Corrupt, Lost, Orphan, Stuck, Untold};
use workflow_runtime::port::{Commit, JobId, KvStore};

use super::store::{fill, is_clean, world};
use crate::scripted::World;

/// Where keys begin; the rest is written with a `*` for what is not of interest.
const BASE: &[u8] = b"workflow/workflow-steps/";

/// What somebody does to a store.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// Deletes a row.
    Delete(&'static str),
    /// Writes something else into a row.
    Write(&'static str, &'static [u8]),
    /// Writes a row that nobody has written.
    Add(&'static str, &'static [u8]),
    /// Writes the row of one key under another, in which one text takes the place of another.
    Copy(&'static str, &'static str, &'static str),
    /// Removes the doorbell of a run.
    Doorbell(&'static str),
    /// Removes the job of a run's notification.
    Notification(&'static str),
    /// Deletes the object of so many bytes.
    Object(u64),
    /// Cuts it.
    Cut(u64),
}

/// What is told: the kind, the run, and the keys.
type Told<'a> = (ViolationKind, Option<&'a str>, &'a [&'a str]);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expected(ViolationKind, Option<String>, Vec<Bytes>);

async fn check(damage: Damage, told: &[Told<'_>]) {
    let world = world();
    let runtime = fill(&world).await;
    is_clean(&runtime, "before the damage").await;
    let mut rows: BTreeMap<Bytes, Bytes> = world.disk.entries().into_iter().collect();
    inflict(&world, damage).await;
    for (key, row) in world.disk.entries() {
        rows.entry(key).or_insert(row);
    }
    let found = runtime.check().await.unwrap();
    let text = found.iter().map(|violation| format!("{violation}\n")).collect::<String>();
    let found: Vec<_> = found.into_iter().map(|found| Expected(found.kind, found.run_id, found.keys)).collect();
    let find_all = |keys: &[&str]| keys.iter().map(|pattern| find(&rows, pattern)).collect();
    let expected = told.iter().map(|(kind, run, keys)| Expected(*kind, run.map(str::to_owned), find_all(keys)));
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(found, expected, "{damage:?}:\n{text}");
}

/// The one key that looks like `pattern`. Expiries, whose keys are all alike, are told by the number of their signal.
fn find(rows: &BTreeMap<Bytes, Bytes>, pattern: &str) -> Bytes {
    let (pattern, number) = match pattern.split_once(" of ") {
        Some((pattern, number)) => (pattern, Some(number.parse().unwrap())),
        None => (pattern, None),
    };
    let is_of = |row: &Bytes| decode_signal_expiry(row).is_ok_and(|expiry| expiry.number == number);
    let matches = |(key, row): &(&Bytes, &Bytes)| {
        let key = key.strip_prefix(BASE);
        key.is_some_and(|key| is_like(key, pattern.as_bytes())) && (number.is_none() || is_of(row))
    };
    let found: Vec<&Bytes> = rows.iter().filter(matches).map(|(key, _)| key).collect();
    assert_eq!(found.len(), 1, "keys that look like {pattern}: {found:?}");
    found[0].clone()
}

/// Whether `key` is `pattern`, in which a `*` is anything.
fn is_like(key: &[u8], pattern: &[u8]) -> bool {
    match (key, pattern) {
        (_, [b'*', rest @ ..]) => (0..=key.len()).any(|skipped| is_like(&key[skipped..], rest)),
        ([first, key @ ..], [same, pattern @ ..]) => first == same && is_like(key, pattern),
        (key, pattern) => key.is_empty() && pattern.is_empty(),
    }
}

async fn inflict(world: &World, damage: Damage) {
    let rows: BTreeMap<Bytes, Bytes> = world.disk.entries().into_iter().collect();
    let put = async |key: Bytes, value: Bytes| {
        commit(world, Commit { puts: vec![(key, value)], ..Commit::default() }).await;
    };
    match damage {
        Damage::Delete(key) => {
            commit(world, Commit { deletes: vec![find(&rows, key)], ..Commit::default() }).await;
        }
        Damage::Write(key, value) => put(find(&rows, key), Bytes::from_static(value)).await,
        Damage::Add(key, value) => put([BASE, key.as_bytes()].concat().into(), Bytes::from_static(value)).await,
        Damage::Copy(key, text, by) => {
            let from = find(&rows, key);
            put(replaced(&from, text, by), rows[&from].clone()).await;
        }
        Damage::Doorbell(run) => remove_job(world, run, |target| target == BellTarget::Step),
        Damage::Notification(run) => {
            remove_job(world, run, |target| matches!(target, BellTarget::Notification { .. }));
        }
        Damage::Object(len) => world.objects.delete(&object_of(world, len).await).await.unwrap(),
        Damage::Cut(len) => {
            let path = object_of(world, len).await;
            world.objects.put(&path, vec![1; 7].into()).await.unwrap();
        }
    }
}

async fn commit(world: &World, commit: Commit) {
    let answers = world.queue.commit(vec![commit]).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

fn replaced(key: &Bytes, text: &str, by: &str) -> Bytes {
    let at = key.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
    [&key[..at], by.as_bytes(), &key[at + text.len()..]].concat().into()
}

fn remove_job(world: &World, run: &str, is_it: impl Fn(BellTarget) -> bool) {
    let jobs = world.disk.jobs();
    let of_run =
        |payload: &[u8]| decode_doorbell(payload).is_ok_and(|bell| bell.run_id.as_str() == run && is_it(bell.target));
    let found: Vec<&JobId> = jobs.iter().filter(|(_, job)| of_run(&job.payload)).map(|(id, _)| id).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(world.disk.remove_job(found[0]));
}

async fn object_of(world: &World, len: u64) -> object_store::path::Path {
    let objects: Vec<_> = world.objects.list(None).try_collect().await.unwrap();
    let mut found = objects.into_iter().filter(|object| object.size == len);
    let path = found.next().unwrap().location;
    assert!(found.next().is_none(), "two objects of {len} bytes");
    path
}

#[tokio::test(start_paused = true)]
async fn records() {
    let left: Vec<&[&str]> =
        vec![&["of/delayed/*/spec"], &["listed/active/*delayed/*"], &["submitted/*delayed/*"], &["header/*delayed/*"]];
    let left: Vec<Told<'_>> = left.into_iter().map(|keys| (Orphan, Some("delayed"), keys)).collect();
    check(Damage::Delete("run/delayed"), &left).await;
    let slot = (Orphan, Some("waiting"), &["signal/k"][..]);
    let other_slot = (Orphan, Some("waiting"), &["signal/l"][..]);
    let rows = &["of/waiting/*/history/*", "of/waiting/*/outcome", "of/waiting/*/spec"][..];
    let place = (Orphan, Some("waiting"), &["listed/waiting/*waiting/*"][..]);
    let submitted = (Orphan, Some("waiting"), &["submitted/*waiting/*"][..]);
    let rows = (Orphan, Some("waiting"), rows);
    check(Damage::Delete("run/waiting"), &[slot, other_slot, place, submitted, rows]).await;
    // Its place among those that have ended makes the sweep remove what is left, but for that by its submission, which
    // goes with the record.
    let submitted = (Orphan, Some("cancelled"), &["submitted/*cancelled/*"][..]);
    check(Damage::Delete("run/cancelled"), &[submitted]).await;
    for run in ["delayed", "waiting", "paused", "done", "failed"] {
        let key: &'static str = ["run/", run].concat().leak();
        check(Damage::Write(key, b"\xff"), &[(Corrupt, Some(run), &[key])]).await;
    }
    check(Damage::Add("run/a.b", b""), &[(Corrupt, None, &["run/a.b"])]).await;
    check(Damage::Add("something", b""), &[(Corrupt, None, &["something"])]).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_run_was_submitted_with() {
    for run in ["delayed", "done"] {
        let key: &'static str = format!("of/{run}/*/spec").leak();
        check(Damage::Delete(key), &[(Lost, Some(run), &[key])]).await;
        check(Damage::Write(key, b"\0"), &[(Corrupt, Some(run), &[key])]).await;
    }
    let mark = "priority/*";
    check(Damage::Delete(mark), &[(Stuck, Some("delayed"), &[mark])]).await;
}

#[tokio::test(start_paused = true)]
async fn jobs() {
    for run in ["delayed", "timed"] {
        let key = format!("run/{run}");
        check(Damage::Doorbell(run), &[(Stuck, Some(run), &[&key])]).await;
    }
    let told = &[(Untold, Some("cancelled"), &["of/cancelled/*/notification/*"][..])];
    check(Damage::Notification("cancelled"), told).await;
    // The doorbell of a run that is paused is rung when it is resumed, and a dead job is an operator's.
    check(Damage::Doorbell("paused"), &[]).await;
    check(Damage::Doorbell("failed"), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn places_in_indexes() {
    for (place, run, kind) in [
        ("listed/active/*delayed/*", "delayed", Stuck),
        ("listed/waiting/*waiting/*", "waiting", Stuck),
        ("listed/paused/*paused/*", "paused", Stuck),
        ("listed/succeeded/*done/*", "done", Orphan),
        ("listed/failed/*failed/*", "failed", Orphan),
        ("submitted/*delayed/*", "delayed", Lost),
        ("submitted/*done/*", "done", Lost),
        ("header/*delayed/*", "delayed", Lost),
    ] {
        check(Damage::Delete(place), &[(kind, Some(run), &[place])]).await;
    }
    let place = "listed/failed/*failed/*";
    check(Damage::Write(place, b""), &[(Orphan, Some("failed"), &[place])]).await;
    check(
        Damage::Write("listed/active/*delayed/*", b"job"),
        &[(Orphan, Some("delayed"), &["listed/active/*delayed/*"])],
    )
    .await;
    for (place, text, by, run, added) in [
        ("listed/active/*delayed/*", "listed/active", "listed/waiting", "delayed", "listed/waiting/*delayed/*"),
        ("listed/active/*delayed/*", "listed/active", "listed/failed", "delayed", "listed/failed/*delayed/*"),
        ("listed/succeeded/*done/*", "listed/succeeded", "listed/failed", "done", "listed/failed/*done/*"),
        ("listed/succeeded/*done/*", "listed/succeeded", "listed/active", "done", "listed/active/*done/*"),
        ("listed/active/*delayed/*", "delayed", "nobody", "nobody", "listed/active/*nobody/*"),
        ("submitted/*delayed/*", "delayed", "nobody", "nobody", "submitted/*nobody/*"),
        ("header/*delayed/*", "delayed", "nobody", "nobody", "header/*nobody/*"),
        // A run without headers.
        ("header/*delayed/*", "delayed", "done", "done", "header/*done/*"),
    ] {
        check(Damage::Copy(place, text, by), &[(Orphan, Some(run), &[added])]).await;
    }
    // Nothing else is left of this one: the sweep removes its place.
    check(Damage::Copy("listed/succeeded/*done/*", "done", "nobody"), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn rows_of_submissions() {
    for (row, run) in [
        ("of/done/*/memo/r/large", "done"),
        ("of/done/*/memo/s*/small", "done"),
        ("of/done/*/history/*\0", "done"),
        ("of/done/*/outcome", "done"),
        ("of/failed/*/history/*\u{1}", "failed"),
        ("of/cancelled/*/notification/*", "cancelled"),
    ] {
        check(Damage::Write(row, b"\0"), &[(Corrupt, Some(run), &[row])]).await;
        let added: &'static str = row.replace(run, "nobody").leak();
        check(Damage::Copy(row, run, "nobody"), &[(Orphan, Some("nobody"), &[added])]).await;
    }
    let odd = "of/nobody/abcdefghijklmnop/odd";
    check(Damage::Add(odd, b""), &[(Corrupt, None, &[odd])]).await;
}

#[tokio::test(start_paused = true)]
async fn slots() {
    for slot in ["signal/k", "signal/l", "signal/t"] {
        let run = if slot == "signal/t" { "timed" } else { "waiting" };
        check(Damage::Delete(slot), &[(Stuck, Some(run), &[slot])]).await;
        check(Damage::Write(slot, b"\xff"), &[(Corrupt, None, &[slot])]).await;
    }
    check(Damage::Copy("signal/k", "signal/k", "signal/z"), &[(Orphan, Some("waiting"), &["signal/z"])]).await;
    // Somebody else waits for what a run waits for.
    let usurped: &[Told<'_>] = &[(Orphan, Some("nobody"), &["signal/k"]), (Stuck, Some("waiting"), &["signal/k"])];
    check(Damage::Write("signal/k", b"\0\x01\x01\x06nobody\x01\x02\0\0\0"), usurped).await;
    check(Damage::Write("signal/b", b"\xff"), &[(Corrupt, None, &["signal/b"])]).await;
    let items = ["signal-item/*b*\0", "signal-item/*b*\u{1}", "signal-item/*b*\u{2}"];
    let orphans = [(Orphan, None, &items[..1]), (Orphan, None, &items[1..2]), (Orphan, None, &items[2..])];
    check(Damage::Delete("signal/b"), &orphans).await;
    // Its buffer: from 1 to 5, and from 0 to 0.
    check(Damage::Write("signal/b", b"\0\x04\0\x01\x03\0"), &orphans[..1]).await;
    let nothing = [orphans[0], orphans[1], orphans[2], (Orphan, None, &["signal/b"][..])];
    check(Damage::Write("signal/b", b"\0\x04\0\0\0\0"), &nothing).await;
    check(Damage::Add("signal/", b""), &[(Corrupt, None, &["signal/"])]).await;
}

#[tokio::test(start_paused = true)]
async fn buffered_signals() {
    for item in ["signal-item/*b*\0", "signal-item/*b*\u{1}", "signal-item/*b*\u{2}"] {
        check(Damage::Delete(item), &[(Lost, None, &[item])]).await;
        check(Damage::Write(item, b"\xff"), &[(Corrupt, None, &[item])]).await;
    }
    let beyond = &[(Orphan, None, &["signal-item/*b*\u{9}"][..])];
    check(Damage::Copy("signal-item/*b*\u{2}", "\u{2}", "\u{9}"), beyond).await;
}

#[tokio::test(start_paused = true)]
async fn idempotency_ids() {
    let id = "signal-id/*b*i";
    check(Damage::Delete(id), &[(Lost, None, &[id])]).await;
    check(Damage::Write(id, b"\xff"), &[(Corrupt, None, &[id])]).await;
    check(Damage::Write(id, b"\0\x07"), &[(Lost, None, &[id]), (Orphan, None, &[id])]).await;
    check(Damage::Copy(id, "bi", "bj"), &[(Orphan, None, &["signal-id/*bj"])]).await;
}

#[tokio::test(start_paused = true)]
async fn expiries() {
    let expiries = ["signal-expiry/* of 0", "signal-expiry/* of 1", "signal-expiry/* of 2"];
    for expiry in [expiries[0], expiries[2]] {
        check(Damage::Delete(expiry), &[(Orphan, None, &[expiry])]).await;
        check(Damage::Write(expiry, b"\xff"), &[(Corrupt, None, &[expiry])]).await;
        // Of another signal.
        check(Damage::Write(expiry, b"\0\x07\x01b\0\0"), &[(Corrupt, None, &[expiry])]).await;
    }
    let id = "signal-id/*b*i";
    check(Damage::Delete(expiries[1]), &[(Orphan, None, &[id])]).await;
    check(Damage::Write(expiries[1], b"\xff"), &[(Orphan, None, &[id]), (Corrupt, None, &[expiries[1]])]).await;
    let gone = "signal-expiry/\0\0\0\0\0\0\0\x010123456789abcde\0";
    let of_none = b"\0\xfe\0edcba9876543210\x01b\0\0";
    check(Damage::Add(gone, of_none), &[(Orphan, None, &[gone])]).await;
}

#[tokio::test(start_paused = true)]
async fn objects() {
    for (len, named_by) in [
        (101, &[(Lost, Some("done"), &["run/done"][..])][..]),
        (104, &[(Lost, Some("done"), &["of/done/*/memo/r/large"])]),
        (105, &[(Lost, Some("done"), &["of/done/*/history/*\u{1}"])]),
        (103, &[(Lost, Some("failed"), &["run/failed"]), (Lost, Some("failed"), &["of/failed/*/history/*\u{1}"])]),
        (106, &[(Lost, None, &["signal-item/*b*\0"])]),
    ] {
        check(Damage::Object(len), named_by).await;
        check(Damage::Cut(len), named_by).await;
    }
}

#[tokio::test(start_paused = true)]
async fn marks_of_objects() {
    let mark = "objects/done/*";
    check(Damage::Delete(mark), &[(Orphan, Some("done"), &[mark])]).await;
    check(Damage::Write(mark, b"\xff"), &[(Corrupt, Some("done"), &[mark])]).await;
    // From the beginning of time on, below a prefix `p`, given up.
    check(Damage::Write(mark, b"\0\0\x01p\x02"), &[(Lost, Some("done"), &[mark])]).await;
    check(Damage::Copy(mark, "done", "nobody"), &[]).await;
    let old = "objects/nobody/abcdefghijklmnop";
    check(Damage::Add(old, b"\0\0\x01p\0"), &[(Orphan, Some("nobody"), &[old])]).await;
}

#[tokio::test(start_paused = true)]
async fn marks_of_the_objects_of_signals() {
    let mark = "objects-signal/abcdefghijklmnop";
    check(Damage::Write("objects-signal/*", b"\xff"), &[(Corrupt, None, &["objects-signal/*"])]).await;
    check(Damage::Add(mark, b"\0\0\x01p\x01\x01b"), &[]).await;
    let orphans: [&[u8]; 4] = [b"\0\0\x01p\0", b"\0\0\x01p\x01\x01z", b"\0\0\x01p\x02\x06nobody\x01", b"\0\0\x01p\x03"];
    for orphan in orphans {
        check(Damage::Add(mark, orphan), &[(Orphan, None, &[mark])]).await;
    }
}

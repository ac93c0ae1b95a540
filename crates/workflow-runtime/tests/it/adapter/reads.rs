//! Reads: what leaves the process is durable.

use bytes::Bytes;
use workflow_effects::{Commit, KvStore, Read, ScanRange};
use workflow_runtime::QueuePort;

use super::{World, assert_waits, commit_on, eventually, putting, ringing};

fn range(prefix: &'static str, after: Option<&'static str>) -> ScanRange {
    ScanRange { prefix: prefix.into(), after: after.map(Bytes::from), limit: 9 }
}

async fn keys(world: &World, prefix: &'static str, read: Read) -> Vec<Bytes> {
    let page = world.port.scan(&range(prefix, None), read).await.unwrap();
    page.entries.into_iter().map(|(key, _)| key).collect()
}

#[tokio::test]
async fn a_durable_read_waits_for_the_commit_in_flight_and_a_latest_read_does_not() {
    let world = World::new().await;
    world.commit(putting("p/gone", "old")).await.unwrap();
    world.gate.close();
    let commit = Commit { deletes: vec!["p/gone".into()], ..putting("p/new", "new") };
    let port = world.port.clone();
    let flight = tokio::spawn(async move { commit_on(&port, commit).await });
    eventually(async || world.latest("p/new").await).await;
    assert_eq!(world.latest("p/gone").await, None);
    assert_eq!(keys(&world, "p/", Read::Latest).await, ["p/new"]);

    let mut put = Box::pin(world.port.get(b"p/new", Read::Durable));
    let mut deleted = Box::pin(world.port.get(b"p/gone", Read::Durable));
    let mut scan = Box::pin(keys(&world, "p/", Read::Durable));
    let tail = range("p/", Some("p/g"));
    let mut tail = Box::pin(world.port.scan(&tail, Read::Durable));
    assert_waits(&mut put).await;
    assert_waits(&mut deleted).await;
    assert_waits(&mut scan).await;
    assert_waits(&mut tail).await;
    assert_eq!(world.port.get(b"q", Read::Durable).await.unwrap(), None, "another key has nothing to wait for");
    assert!(keys(&world, "q/", Read::Durable).await.is_empty());
    assert!(world.port.scan(&range("p/", Some("p/new")), Read::Durable).await.unwrap().entries.is_empty());
    assert!(!flight.is_finished());

    world.gate.open();
    assert_eq!(put.await.unwrap().unwrap(), "new");
    assert_eq!(deleted.await.unwrap(), None);
    assert_eq!(scan.await, ["p/new"]);
    assert_eq!(tail.await.unwrap().entries.len(), 1);
    flight.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_commit_is_answered_once_it_is_durable() {
    let world = World::new().await;
    world.gate.close();
    let mut commit = Box::pin(world.commit(putting("slot", "new")));
    assert_waits(&mut commit).await;
    world.gate.open();
    commit.await.unwrap();
    let world = world.crash().await;
    assert_eq!(world.latest("slot").await.unwrap(), "new");
}

#[tokio::test]
async fn a_doorbell_can_be_claimed_before_its_commit_is_durable() {
    let world = World::new().await;
    world.gate.close();
    let job = world.port.next_job_id();
    let commit = Commit { puts: putting("slot", "new").puts, ..ringing(&job, None) };
    let port = world.port.clone();
    let flight = tokio::spawn(async move { commit_on(&port, commit).await });
    eventually(async || world.latest("slot").await).await;
    assert_eq!(world.claim_one().await.job, job);
    assert!(!flight.is_finished());
    world.gate.open();
    flight.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_wait_for_a_change_tells_it_once_it_is_durable() {
    let world = World::new().await;
    world.commit(putting("slot", "old")).await.unwrap();
    assert_eq!(world.port.wait_for_change(b"slot", None).await.unwrap().unwrap(), "old");

    let seen = Bytes::from_static(b"old");
    let mut change = Box::pin(world.port.wait_for_change(b"slot", Some(&seen)));
    assert_waits(&mut change).await;
    world.gate.close();
    let mut commit = Box::pin(world.commit(putting("slot", "new")));
    assert_waits(&mut commit).await;
    assert_waits(&mut change).await;
    world.gate.open();
    commit.await.unwrap();
    assert_eq!(change.await.unwrap().unwrap(), "new");
}

#[tokio::test]
async fn a_page_of_a_scan_waits_for_its_own_keys_only() {
    let world = World::new().await;
    for key in ["p/1", "p/2", "p/3"] {
        world.commit(putting(key, "old")).await.unwrap();
    }
    world.gate.close();
    let mut flight = Box::pin(world.commit(putting("p/3", "new")));
    assert_waits(&mut flight).await;
    let first = ScanRange { limit: 2, ..range("p/", None) };
    let page = world.port.scan(&first, Read::Durable).await.unwrap();
    assert!(page.more && page.entries.len() == 2);
    let rest = range("p/", Some("p/2"));
    let mut rest = Box::pin(world.port.scan(&rest, Read::Durable));
    assert_waits(&mut rest).await;
    world.gate.open();
    assert_eq!(rest.await.unwrap().entries, [(Bytes::from("p/3"), Bytes::from("new"))]);
    flight.await.unwrap();
}

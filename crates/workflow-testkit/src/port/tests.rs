//! Each fault over an in-memory queue.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use tokio::task::yield_now;
use tokio::time::Instant;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{ClaimedJob, Commit, Enqueue, Error, KvStore, Read, Rejected, ScanRange, Settlement};

use super::plan::Asked;
use crate::{FaultyPort, Health, MemoryDisk, Plan, PortCalls, PortFault, PortPlan, When};

const LEASE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);

fn port(plan: PortPlan) -> (FaultyPort, MemoryDisk) {
    let disk = MemoryDisk::default();
    (FaultyPort::new(Arc::new(disk.open()), plan), disk)
}

fn once(calls: PortCalls, fault: PortFault) -> PortPlan {
    Plan::of(calls, When::Nth(1), fault)
}

fn put(key: &'static str, before: Option<&'static str>, value: &'static str) -> Commit {
    Commit {
        expect: vec![(key.into(), before.map(Bytes::from))],
        puts: vec![(key.into(), value.into())],
        ..Commit::default()
    }
}

fn job(port: &FaultyPort, payload: &'static str) -> Commit {
    let job = Enqueue { queue: "q".to_owned(), job: port.next_job_id(), payload: payload.into(), due: None };
    Commit { enqueues: vec![job], ..Commit::default() }
}

async fn commit(port: &FaultyPort, commit: Commit) -> Result<(), Rejected> {
    port.commit(vec![commit]).await.remove(0)
}

async fn claim(port: &FaultyPort, max: usize) -> Vec<ClaimedJob> {
    port.claim("q", max, LEASE).await.unwrap()
}

fn payloads(jobs: &[ClaimedJob]) -> Vec<&str> {
    jobs.iter().map(|job| std::str::from_utf8(&job.payload).unwrap()).collect()
}

async fn value(disk: &FaultyPort, key: &str) -> Option<Bytes> {
    disk.get(key.as_bytes(), Read::Latest).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn without_a_plan_it_is_the_queue_and_counts() {
    let (port, disk) = port(Plan::none());
    commit(&port, put("a", None, "1")).await.unwrap();
    commit(&port, job(&port, "x")).await.unwrap();
    assert!(matches!(commit(&port, put("a", None, "2")).await, Err(Rejected::Conflict)));
    assert!(port.may_have_ready_job("q"));
    let claimed = claim(&port, 5).await.remove(0);
    port.persist_claims().await.unwrap();
    port.extend(&claimed.claim, LEASE).unwrap();
    port.settle(Settlement::Dead(claimed.claim, "no reason".to_owned())).await.unwrap();
    assert_eq!(port.dead_jobs("q", 5).await.unwrap(), [claimed.job]);
    let range = ScanRange::first("a", 5);
    assert_eq!(port.scan(&range, Read::Durable).await.unwrap().entries.len(), 1);
    assert_eq!(disk.entries().len(), 1);
    let counts = port.counts();
    assert_eq!((counts.commits, counts.conflicts, counts.enqueues), (3, 1, 1));
    assert_eq!((counts.claims, counts.claimed), (1, 1));
    assert_eq!((counts.persists, counts.extensions, counts.settlements), (1, 1, 1));
    assert_eq!((counts.gets, counts.scans), (0, 1));
    assert_eq!(port.met(), Plan::none());
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_fails_is_not_applied_and_one_whose_answer_is_lost_is() {
    for (fault, applied) in [(PortFault::Fails, false), (PortFault::AnswerLost, true)] {
        let (port, _disk) = port(once(PortCalls::Commit, fault));
        assert!(matches!(commit(&port, put("a", None, "1")).await, Err(Rejected::Unknown(_))));
        assert_eq!(value(&port, "a").await.is_some(), applied, "{fault:?}");
        assert_eq!(commit(&port, put("a", None, "1")).await.is_ok(), !applied);
    }
    let (port, _disk) = port(once(PortCalls::Commit, PortFault::Refused));
    assert!(matches!(commit(&port, put("a", None, "1")).await, Err(Rejected::Invalid(_))));
    assert_eq!(value(&port, "a").await, None);
}

#[tokio::test(start_paused = true)]
async fn the_commits_of_one_call_meet_their_own_faults() {
    let plan = Plan::of(PortCalls::CommitWriting("b".into()), When::Always, PortFault::Refused).and(
        PortCalls::CommitEnqueuing,
        When::Always,
        PortFault::AnswerLost,
    );
    let (port, _disk) = port(plan);
    let commits = vec![put("a", None, "1"), put("bb", None, "1"), job(&port, "x"), put("c", None, "1")];
    let answers = port.commit(commits).await;
    assert!(matches!(answers[..], [Ok(()), Err(Rejected::Invalid(_)), Err(Rejected::Unknown(_)), Ok(())]));
    assert_eq!(payloads(&claim(&port, 5).await), ["x"]);
    assert!(!PortCalls::CommitWriting("b".into()).include(Asked::Commit(&put("a", None, "1"))));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_lost_until_others_have_moved_on() {
    let (port, _disk) = port(Plan::of(PortCalls::Commit, When::Nth(1), PortFault::AnswerLostForLong(HOUR)));
    let begun = Instant::now();
    let (first, ()) = tokio::join!(commit(&port, put("a", None, "1")), async {
        while value(&port, "a").await.is_none() {
            yield_now().await;
        }
        commit(&port, put("a", Some("1"), "2")).await.unwrap();
    });
    assert!(matches!(first, Err(Rejected::Unknown(_))));
    assert!(begun.elapsed() < HOUR);
    port.follow(Plan::of(PortCalls::Commit, When::Nth(1), PortFault::AnswerLostForLong(HOUR)));
    assert!(matches!(commit(&port, put("b", None, "1")).await, Err(Rejected::Unknown(_))));
    assert!(begun.elapsed() >= HOUR);
}

#[tokio::test(start_paused = true)]
async fn a_slow_commit_happens_though_its_caller_gives_up() {
    let (port, _disk) = port(once(PortCalls::Commit, PortFault::Slow(HOUR)));
    let given_up = tokio::time::timeout(HOUR / 2, commit(&port, put("a", None, "1"))).await;
    assert!(given_up.is_err());
    assert_eq!(value(&port, "a").await, None);
    tokio::time::sleep(HOUR).await;
    assert!(value(&port, "a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn reads_can_be_slow_and_fail() {
    let plan = Plan::of(PortCalls::Any, When::Every(2), PortFault::Fails).and(
        PortCalls::Any,
        When::Always,
        PortFault::Slow(HOUR),
    );
    let (port, _disk) = port(plan);
    let range = ScanRange::first("a", 5);
    let begun = Instant::now();
    assert!(port.get(b"a", Read::Latest).await.is_ok());
    assert!(port.get(b"a", Read::Latest).await.is_err());
    assert!(port.scan(&range, Read::Latest).await.is_ok());
    assert!(port.scan(&range, Read::Latest).await.is_err());
    assert!(port.dead_jobs("q", 1).await.is_ok());
    assert!(port.persist_claims().await.is_err());
    assert!(port.wait_for_change(b"a", Some(&"1".into())).await.is_ok());
    assert!(matches!(port.wait_for_change(b"a", None).await, Err(Error::Unavailable(_))));
    assert!((4 * HOUR..5 * HOUR).contains(&begun.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_claim_whose_answer_is_lost_come_back_when_the_lease_ends() {
    let (port, _disk) = port(once(PortCalls::Claim, PortFault::AnswerLost));
    commit(&port, job(&port, "x")).await.unwrap();
    assert!(port.claim("q", 5, LEASE).await.is_err());
    assert_eq!(claim(&port, 5).await.len(), 0);
    tokio::time::sleep(LEASE).await;
    let again = claim(&port, 5).await;
    assert_eq!((payloads(&again), again[0].deliveries), (vec!["x"], 2));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_brings_the_job_back_and_the_holder_is_told() {
    let (port, _disk) = port(once(PortCalls::Claim, PortFault::LeaseLost(LEASE / 3)));
    commit(&port, job(&port, "x")).await.unwrap();
    let first = claim(&port, 5).await.remove(0);
    port.extend(&first.claim, LEASE).unwrap();
    tokio::time::sleep(LEASE / 2).await;
    assert!(first.lost.is_cancelled());
    let second = claim(&port, 5).await.remove(0);
    assert_eq!((second.job, second.deliveries), (first.job, 2));
    port.settle(Settlement::Ack(first.claim)).await.unwrap();
    port.extend(&second.claim, LEASE).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_job_has_two_holders_and_one_does_not_know() {
    let (port, disk) = port(once(PortCalls::Claim, PortFault::Duplicated(Duration::ZERO)));
    commit(&port, job(&port, "x")).await.unwrap();
    let first = claim(&port, 5).await.remove(0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let second = claim(&port, 5).await.remove(0);
    assert_eq!((&second.job, second.deliveries), (&first.job, 2));
    port.extend(&first.claim, LEASE).unwrap();
    assert!(!first.lost.is_cancelled());
    port.settle(Settlement::Ack(first.claim)).await.unwrap();
    assert_eq!(disk.jobs().len(), 1);
    port.settle(Settlement::Ack(second.claim)).await.unwrap();
    assert_eq!(disk.jobs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_extension_can_be_refused() {
    let (port, _disk) = port(once(PortCalls::Extend, PortFault::Fails));
    commit(&port, job(&port, "x")).await.unwrap();
    let claimed = claim(&port, 5).await.remove(0);
    port.extend(&claimed.claim, LEASE).unwrap_err();
    port.extend(&claimed.claim, LEASE).unwrap();
}

#[tokio::test(start_paused = true)]
async fn jobs_that_are_kept_back_are_handed_out_after_later_ones() {
    let (port, _disk) = port(Plan::of(PortCalls::Claim, When::First(2), PortFault::Reordered));
    for payload in ["a", "b", "c", "d", "e"] {
        commit(&port, job(&port, payload)).await.unwrap();
    }
    assert_eq!(payloads(&claim(&port, 2).await), Vec::<&str>::new());
    // There is work, though the queue below has none.
    assert!(port.may_have_ready_job("q"));
    port.wait_for_work(&["q".to_owned()], HOUR).now_or_never().unwrap();
    assert_eq!(payloads(&claim(&port, 3).await), ["b", "a"]);
    assert_eq!(payloads(&claim(&port, 2).await), ["d", "c"]);
    assert_eq!(payloads(&claim(&port, 2).await), ["e"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_kept_back_beyond_its_lease_is_handed_out_once() {
    let (port, _disk) = port(Plan::of(PortCalls::Claim, When::First(1), PortFault::Reordered));
    commit(&port, job(&port, "x")).await.unwrap();
    assert_eq!(claim(&port, 5).await.len(), 0);
    tokio::time::sleep(2 * LEASE).await;
    let claimed = claim(&port, 5).await;
    assert_eq!((claimed.len(), claimed[0].deliveries), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_fails_is_made_by_the_next_holder() {
    for fault in [PortFault::Fails, PortFault::AnswerLost] {
        let (port, disk) = port(once(PortCalls::Settle, fault));
        commit(&port, job(&port, "x")).await.unwrap();
        let first = claim(&port, 5).await.remove(0);
        port.settle(Settlement::Ack(first.claim)).await.unwrap_err();
        assert_eq!(disk.jobs().len(), usize::from(fault == PortFault::Fails));
        tokio::time::sleep(LEASE).await;
        for job in claim(&port, 5).await {
            port.settle(Settlement::Ack(job.claim)).await.unwrap();
        }
        assert_eq!(disk.jobs().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_down_fails_and_is_well_again() {
    let (port, disk) = port(Plan::none());
    commit(&port, job(&port, "x")).await.unwrap();
    let first = claim(&port, 5).await.remove(0);
    port.follow(once(PortCalls::Get, PortFault::Down(HOUR)));
    assert!(port.get(b"a", Read::Latest).await.is_err());
    assert_eq!(port.health(), Health::Down);
    assert!(matches!(commit(&port, put("a", None, "1")).await, Err(Rejected::Unknown(_))));
    assert!(port.claim("q", 5, LEASE).await.is_err());
    port.extend(&first.claim, HOUR).unwrap();
    let begun = Instant::now();
    port.settle(Settlement::Ack(first.claim)).await.unwrap();
    assert!(begun.elapsed() >= HOUR && port.health() == Health::Well);
    // The extension was lost with the queue, and the settlement came too late.
    assert_eq!(disk.jobs().len(), 1);
    assert_eq!(value(&port, "a").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_hangs_answers_later() {
    let (port, _disk) = port(once(PortCalls::Commit, PortFault::Hung(HOUR)));
    let begun = Instant::now();
    commit(&port, put("a", None, "1")).await.unwrap();
    assert!(begun.elapsed() >= HOUR);
    port.set_health(Health::Hung);
    assert!(port.get(b"a", Read::Latest).now_or_never().is_none());
    assert!(tokio::time::timeout(HOUR, commit(&port, put("b", None, "1"))).await.is_err());
    port.set_health(Health::Well);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(value(&port, "b").await.is_some(), "the commit was begun");
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_the_first_commits_survive_the_death_and_nothing_returns() {
    let (port, disk) = port(Plan::of(PortCalls::Commit, When::Nth(4), PortFault::DiesInBatch(1)));
    commit(&port, job(&port, "x")).await.unwrap();
    let claimed = claim(&port, 1).await.remove(0);
    let commits = vec![put("a", None, "1"), put("b", None, "1"), put("c", None, "1")];
    let dying = port.clone();
    let died = async {
        tokio::select! {
            _ = dying.commit(commits) => panic!("nothing returns"),
            () = dying.died() => {}
        }
    };
    died.await;
    assert!(port.is_dead());
    assert!(tokio::time::timeout(HOUR, port.get(b"a", Read::Latest)).await.is_err());
    assert!(tokio::time::timeout(HOUR, port.claim("q", 1, LEASE)).await.is_err());
    assert!(tokio::time::timeout(HOUR, port.settle(Settlement::Ack(claimed.claim.clone()))).await.is_err());
    assert!(tokio::time::timeout(HOUR, port.wait_for_work(&["q".to_owned()], LEASE)).await.is_err());
    port.extend(&claimed.claim, LEASE).unwrap();

    let reopened = FaultyPort::new(Arc::new(disk.open()), Plan::none());
    assert!(value(&reopened, "a").await.is_some() && value(&reopened, "b").await.is_none());
    assert_eq!(claim(&reopened, 1).await[0].deliveries, 2);
}

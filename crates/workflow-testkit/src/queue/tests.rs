//! The contract of the port on the in-memory queue, and what it does beyond it.

use std::time::Duration;

use futures::future::join_all;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    ClaimedJob, Commit, Enqueue, Error, JobId, JobState, KvStore, Read, Rejected, Settlement,
};

use crate::{ClockStep, MemoryDisk, MemoryQueue};

const LEASE: Duration = Duration::from_secs(60);
const QUEUE: &str = "bells";

mod conformance {
    crate::conformance!(crate::MemoryDisk);
}

fn putting(key: &'static str) -> Commit {
    Commit { puts: vec![(key.into(), "value".into())], ..Commit::default() }
}

/// Queues a job.
async fn ring(queue: &MemoryQueue) -> JobId {
    let job = queue.next_job_id();
    let enqueue = Enqueue { queue: QUEUE.to_owned(), job: job.clone(), payload: "ding".into(), due: None };
    queue.commit(vec![Commit { enqueues: vec![enqueue], ..Commit::default() }]).await.remove(0).unwrap();
    job
}

async fn claim(queue: &MemoryQueue) -> Vec<ClaimedJob> {
    queue.claim(QUEUE, 9, LEASE).await.unwrap()
}

async fn kept(queue: &MemoryQueue, key: &str) -> bool {
    queue.get(key.as_bytes(), Read::Latest).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn the_journal_tells_of_what_no_crash_undoes() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    queue.commit(vec![putting("before")]).await.remove(0).unwrap();
    assert_eq!(disk.journal(), Vec::<Vec<_>>::new(), "it begins with the first call");
    ring(&queue).await;
    let (deletion, put) = (Commit { deletes: vec!["before".into()], ..putting("first") }, putting("second"));
    queue.commit(vec![deletion, put]).await.remove(0).unwrap();
    let value = || Some("value".into());
    let told = [vec![("before".into(), None), ("first".into(), value())], vec![("second".into(), value())]];
    assert_eq!(disk.journal(), told);
    disk.hold();
    assert!(tokio::time::timeout(LEASE, queue.commit(vec![putting("lost")])).await.is_err());
    let queue = disk.open();
    queue.commit(vec![putting("third")]).await.remove(0).unwrap();
    assert_eq!(disk.journal(), [vec![("third".into(), value())]]);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_visible_until_the_next_process_finds_it_gone() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    disk.hold();
    let before = disk.operations();
    assert!(tokio::time::timeout(LEASE, queue.commit(vec![putting("slot")])).await.is_err());
    assert!(kept(&queue, "slot").await);
    assert_eq!((disk.operations(), disk.entries().len()), (before, 1));
    disk.release();
    assert_eq!(queue.get(b"slot", Read::Durable).await.unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(disk.operations(), before + 1);

    disk.hold();
    assert!(tokio::time::timeout(LEASE, queue.commit(vec![putting("other")])).await.is_err());
    let queue = disk.open();
    assert!(kept(&queue, "slot").await && !kept(&queue, "other").await);
    queue.commit(vec![putting("other")]).await.remove(0).expect("the next process is not held");
}

#[tokio::test(start_paused = true)]
async fn the_power_can_be_cut_between_the_commits_of_one_call() {
    for operations in 0..=3 {
        let disk = MemoryDisk::default();
        let queue = disk.open();
        disk.cut_power_after(operations);
        let commits = ["a", "b", "c"].map(putting).to_vec();
        let answers = tokio::select! {
            biased;
            () = disk.cut() => None,
            answers = queue.commit(commits) => Some(answers),
        };
        assert_eq!(answers.is_some(), operations == 3);
        let call = queue.get(b"a", Read::Latest);
        assert_eq!(tokio::time::timeout(LEASE, call).await.is_err(), operations < 3, "no call returns after the cut");
        assert_eq!(disk.operations(), operations);
        let queue = disk.open();
        for (number, key) in (0..).zip(["a", "b", "c"]) {
            assert_eq!(kept(&queue, key).await, number < operations, "{key} after {operations} operations");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn leases_end_when_the_test_says_so() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    let job = ring(&queue).await;
    let lapsed = claim(&queue).await.remove(0);
    assert_eq!(disk.end_leases(), 1);
    assert_eq!(disk.end_leases(), 0);
    assert!(lapsed.lost.is_cancelled());
    assert!(queue.extend(&lapsed.claim, LEASE).is_err());
    let again = claim(&queue).await.remove(0);
    assert_eq!((&again.job, again.deliveries), (&job, 2));
    queue.settle(Settlement::Ack(lapsed.claim)).await.unwrap();
    assert_eq!(disk.jobs()[0].1.state, JobState::Claimed);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_ends_no_lease_early() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    ring(&queue).await;
    let claimed = claim(&queue).await.remove(0);
    disk.clock().set(ClockStep::Forwards(100 * LEASE));
    tokio::time::sleep(LEASE / 2).await;
    assert!(claim(&queue).await.is_empty());
    disk.clock().set(ClockStep::Back(200 * LEASE));
    queue.extend(&claimed.claim, LEASE).unwrap();
    let now = queue.clock().now();
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    assert_eq!(queue.clock().now(), now, "it has to catch up");
    assert_eq!(claim(&queue).await.len(), 1, "the lease was as long as it was asked for");
}

#[tokio::test(start_paused = true)]
async fn a_dead_job_that_is_requeued_begins_anew() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    let job = ring(&queue).await;
    assert!(!disk.requeue_dead_job(&job), "it is not dead");
    let claimed = claim(&queue).await.remove(0);
    queue.settle(Settlement::Dead(claimed.claim, "because".to_owned())).await.unwrap();
    assert_eq!(disk.jobs()[0].1.reason.as_deref(), Some("because"));
    assert!(disk.requeue_dead_job(&job));
    assert!(queue.dead_jobs(QUEUE, 9).await.unwrap().is_empty());
    let again = claim(&queue).await.remove(0);
    assert_eq!((again.job, again.deliveries), (job, 1));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_removed_takes_its_claim_with_it() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    let job = ring(&queue).await;
    let claimed = claim(&queue).await.remove(0);
    assert!(disk.remove_job(&job));
    assert!(!disk.remove_job(&job));
    assert!(claimed.lost.is_cancelled());
    queue.settle(Settlement::Dead(claimed.claim, "late".to_owned())).await.unwrap();
    assert!(disk.jobs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_closed_has_kept_everything_and_says_why_it_refuses() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    let writer = queue.clone();
    let commit = tokio::spawn(async move { writer.commit(vec![putting("slot")]).await.remove(0) });
    tokio::task::yield_now().await;
    queue.close().await.unwrap();
    commit.await.unwrap().expect("it was begun before");
    let Err(Error::Closed { reason }) = queue.get(b"slot", Read::Latest).await else { panic!("it is closed") };
    assert_eq!(reason, "it was closed");
    assert!(matches!(queue.commit(vec![putting("late")]).await.remove(0), Err(Rejected::Unknown(_))));
    let next = disk.open();
    assert!(kept(&next, "slot").await && !kept(&next, "late").await);
    let _takeover = disk.open();
    let Err(Error::Closed { reason }) = next.close().await else { panic!("it was taken over") };
    assert_eq!(reason, "it was opened again, which has taken it over");
}

#[tokio::test(start_paused = true)]
async fn a_queue_shows_how_much_it_holds() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    ring(&queue).await;
    queue.commit(vec![putting("slot")]).await.remove(0).unwrap();
    assert_eq!(format!("{disk:?}"), "MemoryDisk { entries: 1, jobs: 1, openings: 1, .. }");
    assert_eq!(format!("{queue:?}"), "MemoryQueue(opening 1 of MemoryDisk { entries: 1, jobs: 1, openings: 1, .. })");
}

/// How many jobs pass; `JOBS=1000000` lets a million.
fn jobs() -> usize {
    std::env::var("JOBS").map_or(50_000, |jobs| jobs.parse().expect("JOBS is a number"))
}

#[tokio::test(start_paused = true)]
async fn any_number_of_jobs_leaves_nothing_behind() {
    const ROUND: usize = 200;
    let disk = MemoryDisk::default();
    let queue = disk.open();
    for _ in 0..jobs() / ROUND {
        let job = |_| Enqueue { queue: QUEUE.to_owned(), job: queue.next_job_id(), payload: "ding".into(), due: None };
        let commit = Commit { enqueues: (0..ROUND).map(job).collect(), ..putting("slot") };
        queue.commit(vec![commit]).await.remove(0).unwrap();
        let claimed = queue.claim(QUEUE, ROUND, LEASE).await.unwrap();
        assert_eq!(claimed.len(), ROUND);
        let settled = claimed.into_iter().map(|job| queue.settle(Settlement::Ack(job.claim)));
        assert!(join_all(settled).await.into_iter().all(|settled| settled.is_ok()));
        assert_eq!(disk.lock().model.len(), 1, "the slot is all that is kept");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_work_looks_again_when_the_clock_is_set() {
    let disk = MemoryDisk::default();
    let queue = disk.open();
    let (job, due) = (queue.next_job_id(), queue.clock().now().after(Duration::from_secs(3_600)));
    let enqueue = Enqueue { queue: QUEUE.to_owned(), job, payload: "ding".into(), due: Some(due) };
    queue.commit(vec![Commit { enqueues: vec![enqueue], ..Commit::default() }]).await.remove(0).unwrap();
    let start = tokio::time::Instant::now();
    let set = async {
        tokio::time::sleep(LEASE).await;
        disk.clock().set(ClockStep::Forwards(Duration::from_secs(3_600)));
    };
    let queues = [QUEUE.to_owned()];
    tokio::join!(set, queue.wait_for_work(&queues, Duration::from_secs(24 * 3_600)));
    assert_eq!(start.elapsed(), LEASE);
}

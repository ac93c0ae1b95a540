//! Claims and their ends.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use workflow_core::Timestamp;
use workflow_effects::{Commit, KvStore};
use workflow_runtime::QueuePort;
use workflow_runtime::port::Settlement;

use super::{LEASE, QUEUE, World, assert_waits, eventually, ringing};

#[tokio::test]
async fn a_job_is_delivered_until_it_is_settled_and_every_delivery_counts() {
    let world = World::new().await;
    let job = world.ring().await;
    // Far beyond any limit of the queue's own.
    for delivery in 1..=120 {
        let claimed = world.port.claim(QUEUE, 9, Duration::ZERO).await.unwrap();
        assert_eq!(claimed.len(), 1, "delivery {delivery}");
        assert_eq!((&claimed[0].job, claimed[0].deliveries), (&job, delivery));
        world.queue.reap_now().await.unwrap();
    }
    assert!(world.port.dead_jobs(QUEUE, 9).await.unwrap().is_empty());
    let last = world.claim_one().await;
    world.port.settle(Settlement::Ack(last.claim)).await.unwrap();
    world.queue.reap_now().await.unwrap();
    assert!(world.claim(9).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_of_due_and_of_ready_jobs_destroy_none_of_each_others_leases() {
    const JOBS: usize = 64;
    for _ in 0..8 {
        let world = World::new().await;
        let mut commit = Commit::default();
        for _ in 0..JOBS {
            // Due already: our timer has them, and a claim of ready jobs finds them too.
            commit.enqueues.extend(ringing(&world.port.next_job_id(), Some(Timestamp::from_millis(1))).enqueues);
        }
        world.commit(commit).await.unwrap();
        let claimers = (0..16).map(|_| {
            let port = world.port.clone();
            tokio::spawn(async move { port.claim(QUEUE, JOBS / 8, LEASE).await.unwrap() })
        });
        let claimed: Vec<_> = join_all(claimers).await.into_iter().flat_map(Result::unwrap).collect();
        let jobs: BTreeSet<_> = claimed.iter().map(|claimed| claimed.job.to_string()).collect();
        assert_eq!((claimed.len(), jobs.len()), (JOBS, JOBS));
        for claimed in &claimed {
            world.port.extend(&claimed.claim, LEASE).unwrap();
        }
    }
}

#[tokio::test]
async fn a_claim_takes_no_more_than_it_asks_for() {
    let world = World::new().await;
    let mut commit = Commit::default();
    for due in [Some(Timestamp::from_millis(1)), Some(Timestamp::from_millis(2)), None, None] {
        commit.enqueues.extend(ringing(&world.port.next_job_id(), due).enqueues);
    }
    world.commit(commit).await.unwrap();
    assert_eq!(world.claim(0).await.len(), 0);
    for left in [3, 1] {
        assert_eq!(world.claim(3).await.len(), left);
    }
    assert_eq!(world.claim(3).await.len(), 0);
}

#[tokio::test]
async fn a_settlement_is_harmless_once_the_claim_is_gone() {
    let world = World::new().await;
    let job = world.ring().await;
    let lapsed = world.port.claim(QUEUE, 1, Duration::ZERO).await.unwrap().remove(0);
    world.queue.reap_now().await.unwrap();
    world.port.settle(Settlement::Ack(lapsed.claim.clone())).await.unwrap();
    world.port.settle(Settlement::Dead(lapsed.claim.clone(), "late".to_owned())).await.unwrap();
    assert!(world.port.extend(&lapsed.claim, LEASE).is_err());

    let next = world.claim_one().await;
    assert_eq!((&next.job, next.deliveries), (&job, 2));
    world.port.settle(Settlement::Ack(lapsed.claim)).await.unwrap();
    world.port.extend(&next.claim, LEASE).expect("the late settlement did not touch the next claim");
    world.port.settle(Settlement::Ack(next.claim.clone())).await.unwrap();
    world.port.settle(Settlement::Dead(next.claim, "again".to_owned())).await.unwrap();
    assert!(world.port.dead_jobs(QUEUE, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_dead_job_is_kept_and_not_delivered() {
    let world = World::new().await;
    let job = world.ring().await;
    let claimed = world.claim_one().await;
    world.port.settle(Settlement::Dead(claimed.claim, "because".to_owned())).await.unwrap();
    assert_eq!(world.port.dead_jobs(QUEUE, 9).await.unwrap(), std::slice::from_ref(&job));
    let world = world.crash().await;
    assert_eq!(world.port.dead_jobs(QUEUE, 9).await.unwrap(), [job]);
    assert!(world.port.dead_jobs(QUEUE, 0).await.unwrap().is_empty());
    assert!(world.claim(9).await.is_empty());
}

#[tokio::test]
async fn a_settlement_whose_caller_gives_up_goes_on() {
    let world = World::new().await;
    let job = world.ring().await;
    let claimed = world.claim_one().await;
    world.gate.close();
    let mut settled = Box::pin(world.port.settle(Settlement::Dead(claimed.claim, "because".to_owned())));
    assert_waits(&mut settled).await;
    drop(settled);
    world.gate.open();
    // Its lease is let go last, after the end of the claim is durable.
    eventually(async || world.queue.lease_expiry(QUEUE, job.as_str()).is_none().then_some(())).await;
    assert_eq!(world.port.dead_jobs(QUEUE, 9).await.unwrap(), [job]);
}

#[tokio::test]
async fn the_hint_knows_of_what_a_claim_left_and_of_what_came_since() {
    let world = World::new().await;
    assert!(world.port.may_have_ready_job(QUEUE), "nobody has looked yet");
    assert!(world.claim(1).await.is_empty());
    assert!(!world.port.may_have_ready_job(QUEUE));
    world.ring().await;
    assert!(world.port.may_have_ready_job(QUEUE));
    world.ring().await;
    assert_eq!(world.claim(1).await.len(), 1);
    assert!(world.port.may_have_ready_job(QUEUE), "the claim left one");
    let second = world.port.claim(QUEUE, 9, Duration::ZERO).await.unwrap().remove(0);
    assert!(!world.port.may_have_ready_job(QUEUE));
    world.queue.reap_now().await.unwrap();
    assert!(world.port.extend(&second.claim, LEASE).is_err());
    assert!(world.port.may_have_ready_job(QUEUE), "a job whose lease was lost is back");
    assert_eq!(world.claim(9).await.len(), 1);

    world.commit(ringing(&world.port.next_job_id(), Some(Timestamp::from_millis(1)))).await.unwrap();
    assert!(world.port.may_have_ready_job(QUEUE), "it is due");
    assert_eq!(world.claim(9).await.len(), 1);
    world.commit(ringing(&world.port.next_job_id(), Some(Timestamp::NEVER))).await.unwrap();
    assert!(!world.port.may_have_ready_job(QUEUE));
}

#[tokio::test]
async fn job_ids_are_all_different() {
    let (one, two) = (World::new().await, World::new().await);
    let ids: BTreeSet<_> = (0..1_000).flat_map(|_| [one.port.next_job_id(), two.port.next_job_id()]).collect();
    assert_eq!(ids.len(), 2_000);
    assert_eq!(one.port.commit(Vec::new()).await.len(), 0);
}

//! Claims: their turns, and the estimate of what they leave.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use workflow_core::Timestamp;
use workflow_effects::Commit;
use workflow_runtime::QueuePort;

use super::{LEASE, QUEUE, World, ringing};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_of_due_and_of_ready_jobs_destroy_none_of_each_others_leases() {
    const JOBS: usize = 64;
    for _ in 0..8 {
        let world = World::new().await;
        // Our timer has read the store, and holds what comes from now on.
        assert!(world.port.claim(QUEUE, 1, LEASE).await.unwrap().is_empty());
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
async fn the_hint_knows_of_nothing_before_the_first_claim_and_of_a_lost_lease_when_it_is_told() {
    let world = World::new().await;
    assert!(world.port.may_have_ready_job(QUEUE), "nobody has looked yet");
    world.ring().await;
    let lapsed = world.port.claim(QUEUE, 9, Duration::ZERO).await.unwrap().remove(0);
    assert!(!world.port.may_have_ready_job(QUEUE));
    world.queue.reap_now().await.unwrap();
    assert!(world.port.extend(&lapsed.claim, LEASE).is_err());
    assert!(world.port.may_have_ready_job(QUEUE), "a job whose lease was lost is back");
}

//! Claims: which jobs they take, how often, and for whom.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use workflow_runtime::port::{Commit, Timestamp};

use super::Subject;
use super::world::{LEASE, QUEUE, SECONDS, World, eventually, give_up_after, ids, ringing, ringing_in};

const LONG_AGO: Timestamp = Timestamp::from_millis(1);

/// "It is delivered once its time has come, to one claim at a time, again and again until it is settled."
pub async fn a_job_is_delivered_to_one_claim_at_a_time_until_it_is_settled<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    for delivery in 1..=3 {
        let claimed = world.next().await;
        assert_eq!((&claimed.job, claimed.deliveries), (&job, delivery));
        world.assert_no_job().await;
        if delivery == 3 {
            world.ack(&claimed.claim).await;
        }
        tokio::time::sleep(LEASE + SECONDS).await;
    }
    world.assert_no_job().await;
}

/// "Deliveries are counted per job." Nothing but a settlement ends them.
pub async fn every_delivery_counts_and_no_limit_ends_them<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    for delivery in 1..=120 {
        let claimed = eventually(async || world.claim_for(9, Duration::ZERO).await.pop()).await;
        assert_eq!((&claimed.job, claimed.deliveries), (&job, delivery));
    }
    assert!(world.dead().await.is_empty());
}

/// "To one claim at a time": ready jobs and due ones, claimed by many at the same time.
pub async fn claims_at_the_same_time_share_no_job<S: Subject>() {
    const JOBS: usize = 64;
    let world = World::<S>::new().await;
    let mut commit = Commit::default();
    for number in 0..JOBS {
        let due = (number % 2 == 0).then_some(LONG_AGO);
        commit.enqueues.extend(ringing(&world.port.next_job_id(), due).enqueues);
    }
    world.commit(commit).await.expect("jobs with fresh ids are queued");
    let claims = (0..16).map(|_| {
        let port = world.port.clone();
        tokio::spawn(async move { port.claim(QUEUE, JOBS / 8, LEASE).await })
    });
    let answers = join_all(claims).await.into_iter().map(|joined| joined.expect("the task does not panic"));
    let mut claimed: Vec<_> = answers.flat_map(|answer| answer.expect("an open queue answers a claim")).collect();
    claimed.extend(world.claim(JOBS).await);
    let jobs: BTreeSet<_> = claimed.iter().map(|claimed| claimed.job.clone()).collect();
    assert_eq!((claimed.len(), jobs.len()), (JOBS, JOBS));
    for claimed in &claimed {
        world.port.extend(&claimed.claim, LEASE).expect("none has destroyed the lease of another");
    }
}

/// "Claims up to `max` jobs of `queue` that are ready or due. Empty when there are none."
pub async fn a_claim_takes_no_more_than_it_asks_for<S: Subject>() {
    let world = World::<S>::new().await;
    world.assert_no_job().await;
    let mut jobs = Vec::new();
    for due in [Some(LONG_AGO), Some(Timestamp::from_millis(2)), None, None] {
        jobs.push(world.ring(due).await);
    }
    assert!(world.claim(0).await.is_empty());
    let mut claimed = Vec::new();
    for left in [3, 1, 0] {
        let more = world.claim(3).await;
        assert_eq!(more.len(), left);
        claimed.extend(more);
    }
    assert_eq!(ids(&claimed), jobs);
}

/// "Claims up to `max` jobs of `queue`", and of no other, however its name begins.
pub async fn a_claim_takes_jobs_of_its_queue_only<S: Subject>() {
    let world = World::<S>::new().await;
    let queues = ["bell", "bells", "bells.2", "other"];
    for queue in queues {
        let claimed = world.port.claim(queue, 9, LEASE).await.expect("an open queue answers a claim");
        assert!(claimed.is_empty(), "nothing was ever queued in {queue}");
    }
    let mut queued = Vec::new();
    for queue in queues {
        let job = world.port.next_job_id();
        world.commit(ringing_in(queue, &job, None)).await.expect("a job with a fresh id is queued");
        queued.push((queue, job));
    }
    for (queue, job) in queued {
        let claimed = world.port.claim(queue, 9, LEASE).await.expect("an open queue answers a claim");
        assert_eq!(ids(&claimed), [job], "{queue}");
    }
}

/// A delivery is of the job that was queued, with its payload; "at least 1" delivery.
pub async fn a_delivery_carries_what_was_queued<S: Subject>() {
    let world = World::<S>::new().await;
    for payload in [Vec::new(), b"ding\0dong".to_vec(), vec![7; 100_000]] {
        let job = world.port.next_job_id();
        let mut commit = ringing(&job, None);
        commit.enqueues[0].payload = payload.clone().into();
        world.commit(commit).await.expect("a job with a fresh id is queued");
        let claimed = world.claim_one().await;
        assert_eq!((&claimed.job, claimed.deliveries), (&job, 1));
        assert_eq!(claimed.payload, payload);
        assert!(!claimed.lost.is_cancelled());
    }
}

/// "Jobs that are claimed for a caller who has dropped the future come back when their leases end."
pub async fn a_claim_whose_caller_gives_up_after_any_poll_comes_back<S: Subject>() {
    const SHORT: Duration = Duration::from_secs(10);
    for (is_due_later, polls) in [false, true].into_iter().flat_map(|later| (0..5).map(move |polls| (later, polls))) {
        let world = World::<S>::new().await;
        let due = is_due_later.then(|| world.after(SHORT));
        let jobs = [world.ring(due).await, world.ring(due).await];
        if is_due_later {
            world.assert_no_job().await;
            tokio::time::sleep(SHORT).await;
        }
        give_up_after(polls, world.port.claim(QUEUE, 2, SHORT)).await;
        tokio::time::sleep(SHORT).await;
        let again = [world.next().await, world.next().await];
        assert_eq!(ids(&again), jobs, "given up after {polls} polls");
        assert!(again.iter().all(|claimed| claimed.deliveries <= 2));
        world.assert_no_job().await;
    }
}

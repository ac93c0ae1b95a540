//! Jobs with a due time.

use std::collections::BTreeSet;
use std::time::Duration;

use workflow_runtime::port::{ClaimedJob, Commit, Timestamp};

use super::Subject;
use super::world::{QUEUE, SECONDS, World, ids, ringing};

const MINUTE: Duration = Duration::from_secs(60);

/// What the loop does: claim, and wait for work when there is none.
async fn next_delivery<S: Subject>(world: &World<S>, at_most: Duration) -> Option<ClaimedJob> {
    let deadline = world.after(at_most);
    loop {
        if let Some(claimed) = world.claim(1).await.pop() {
            return Some(claimed);
        }
        let left = deadline.since(world.now());
        if left.is_zero() {
            return None;
        }
        world.port.wait_for_work(&[QUEUE.to_owned()], left).await;
    }
}

/// "It is delivered once its time has come."
pub async fn a_job_is_delivered_when_it_is_due_and_not_before<S: Subject>() {
    let world = World::<S>::new().await;
    let never = world.ring(Some(Timestamp::NEVER)).await;
    let later = (world.after(3 * MINUTE), world.ring(Some(world.after(3 * MINUTE))).await);
    let first = (world.after(MINUTE), world.ring(Some(world.after(MINUTE))).await);
    for (due, job) in [first, later] {
        let claimed = next_delivery(&world, 5 * MINUTE).await.expect("it comes due");
        assert_eq!((&claimed.job, claimed.deliveries), (&job, 1));
        world.ack(&claimed.claim).await;
        assert!(world.now() >= due, "{:?} is before {due:?}", world.now());
        assert!(world.now().since(due) < SECONDS, "{:?} is long after {due:?}", world.now());
    }
    assert!(next_delivery(&world, MINUTE).await.is_none(), "{never} is not due");
}

/// A due time that has passed is no due time.
pub async fn a_job_that_is_due_already_is_ready<S: Subject>() {
    let world = World::<S>::new().await;
    let mut jobs = Vec::new();
    for due in [Timestamp::from_millis(0), Timestamp::from_millis(1), world.now()] {
        jobs.push(world.ring(Some(due)).await);
    }
    assert_eq!(ids(&world.claim(9).await), jobs);
}

/// Due times outlive the process, however many there are.
pub async fn jobs_stay_due_when_the_queue_is_opened_again<S: Subject>() {
    const JOBS: usize = 300;
    let world = World::<S>::new().await;
    let due = world.after(MINUTE);
    let mut commit = Commit::default();
    for _ in 0..JOBS {
        commit.enqueues.extend(ringing(&world.port.next_job_id(), Some(due)).enqueues);
    }
    world.commit(commit).await.expect("jobs with fresh ids are queued");
    let world = world.crash().await;
    let mut delivered = BTreeSet::new();
    while delivered.len() < JOBS {
        let claimed = next_delivery(&world, 5 * MINUTE).await.expect("it comes due");
        delivered.insert(claimed.job);
        assert!(world.now() >= due);
    }
    assert!(world.now().since(due) < SECONDS);
}

/// Time passes while nobody has the queue open.
pub async fn a_job_that_was_due_while_nobody_had_the_queue_open_is_delivered_at_once<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(Some(world.after(MINUTE))).await;
    world.subject.hold();
    tokio::time::sleep(2 * MINUTE).await;
    let world = world.crash().await;
    assert_eq!(world.claim_one().await.job, job);
}

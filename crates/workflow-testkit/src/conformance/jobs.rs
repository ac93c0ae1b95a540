//! What a queue tells of its jobs.

use std::time::Duration;

use workflow_runtime::port::JobState;

use super::Subject;
use super::world::{LEASE, World, eventually, ringing};

/// "Where `job` is, if there is such a job."
pub async fn every_job_is_where_the_queue_says<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.port.next_job_id();
    assert_eq!(world.state(&job).await, None, "it was never queued");
    let (job, late) = (world.ring(None).await, world.ring(Some(world.after(LEASE))).await);
    assert_eq!(world.state(&job).await, Some(JobState::Waiting));
    assert_eq!(world.state(&late).await, Some(JobState::Waiting));
    let claimed = world.claim_one().await;
    assert_eq!(world.state(&job).await, Some(JobState::Claimed));
    world.ack(&claimed.claim).await;
    assert_eq!(world.state(&job).await, None);

    let (held, dead) = (world.ring(None).await, world.ring(None).await);
    for claimed in world.claim(9).await.iter().filter(|claimed| claimed.job == dead) {
        world.bury(&claimed.claim).await;
    }
    let states = async |world: &World<S>| (world.state(&held).await, world.state(&dead).await);
    assert_eq!(states(&world).await, (Some(JobState::Claimed), Some(JobState::Dead)));
    let world = world.crash().await;
    assert_eq!(states(&world).await, (Some(JobState::Waiting), Some(JobState::Dead)));
    assert_eq!(world.state(&late).await, Some(JobState::Waiting));
}

/// A lease that ends lets its job wait again, within seconds.
pub async fn a_job_that_comes_back_waits_again<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    assert_eq!(world.claim_for(1, Duration::ZERO).await.len(), 1);
    eventually(async || (world.state(&job).await == Some(JobState::Waiting)).then_some(())).await;
}

/// "Whether an operator has put `job` back among the waiting ones after it was dead, and it has not been dead since",
/// "whatever becomes of its deliveries."
pub async fn a_job_that_an_operator_has_put_back_is_known_until_it_is_dead_again<S: Subject>() {
    let world = World::<S>::new().await;
    assert!(!world.is_requeued(&world.port.next_job_id()).await, "it was never queued");
    let job = world.ring(None).await;
    assert!(!world.requeue(&job).await, "it is not dead");
    world.claim_one().await;
    let world = world.crash().await;
    assert!(!world.is_requeued(&job).await, "it is back, which is not the operator's doing");

    world.bury(&world.claim_one().await.claim).await;
    assert!(!world.is_requeued(&job).await);
    assert!(world.requeue(&job).await && !world.requeue(&job).await);
    assert!(world.is_requeued(&job).await);
    let again = world.claim_one().await;
    assert_eq!((&again.job, again.deliveries), (&job, 1), "it begins anew");
    let world = world.crash().await;
    assert!(world.is_requeued(&job).await, "its process died");
    assert_eq!(world.claim_for(1, Duration::ZERO).await.len(), 1);
    let again = world.next().await;
    assert!(world.is_requeued(&job).await, "its lease has ended");

    world.bury(&again.claim).await;
    assert!(!world.is_requeued(&job).await);
    assert!(world.requeue(&job).await);
    assert!(world.is_requeued(&job).await);
    world.ack(&world.claim_one().await.claim).await;
    assert!(!world.is_requeued(&job).await, "it is gone");
    assert!(!world.requeue(&job).await);
    world.commit(ringing(&job, None)).await.expect("the id is free again");
    assert!(!world.is_requeued(&job).await, "it is another job");
}

//! What a crash leaves of claims.

use workflow_runtime::QueuePort;
use workflow_runtime::port::Settlement;

use super::{QUEUE, World, assert_waits};

#[tokio::test]
async fn a_persisted_claim_is_counted_after_a_crash() {
    let mut world = World::new().await;
    let job = world.ring().await;
    for delivery in 1..=3 {
        let claimed = world.claim_one().await;
        assert_eq!((&claimed.job, claimed.deliveries), (&job, delivery));
        world.port.persist_claims().await.unwrap();
        world = world.crash().await;
    }
}

#[tokio::test]
async fn a_claim_that_is_not_persisted_may_be_lost_in_a_crash() {
    let world = World::new().await;
    let job = world.ring().await;
    world.gate.close();
    assert_eq!(world.claim_one().await.deliveries, 1);
    let mut persisted = Box::pin(world.port.persist_claims());
    assert_waits(&mut persisted).await;
    drop(persisted);
    let world = world.crash().await;
    let again = world.claim_one().await;
    assert_eq!((again.job, again.deliveries), (job, 1));
}

#[tokio::test]
async fn a_settled_job_stays_settled() {
    let world = World::new().await;
    world.ring().await;
    let claimed = world.claim_one().await;
    world.port.settle(Settlement::Ack(claimed.claim)).await.unwrap();
    let world = world.crash().await;
    assert!(world.claim(9).await.is_empty());
    assert!(world.port.dead_jobs(QUEUE, 9).await.unwrap().is_empty());
}

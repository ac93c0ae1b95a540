//! Leases: as long as they are asked for, within what the queue can add up.

use std::time::Duration;

use workflow_runtime::QueuePort;
use workflow_runtime::port::Settlement;

use super::{LEASE, QUEUE, World};

const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;

#[tokio::test]
async fn the_longest_lease_is_long_and_breaks_nothing() {
    let world = World::new().await;
    let job = world.ring().await;
    let expiry = || world.queue.lease_expiry(QUEUE, job.as_str()).expect("it is claimed");
    let year_from_now = || world.port.clock().now().as_millis() + YEAR_MS;

    let claimed = world.port.claim(QUEUE, 1, LEASE).await.unwrap().remove(0);
    assert!(expiry() < year_from_now());
    world.port.extend(&claimed.claim, Duration::MAX).unwrap();
    assert!(expiry() >= year_from_now());
    world.port.extend(&claimed.claim, LEASE).unwrap();
    assert!(expiry() >= year_from_now() - YEAR_MS / 2, "an extension never shortens");
    world.queue.reap_now().await.unwrap();
    world.port.settle(Settlement::Ack(claimed.claim)).await.unwrap();
    assert!(world.claim(9).await.is_empty());
}

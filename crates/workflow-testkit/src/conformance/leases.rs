//! Leases: how long a claim lasts, and what becomes of one that is lost.

use std::time::Duration;

use super::Subject;
use super::world::{LEASE, MOMENT, SECONDS, World, soon};

const MINUTE: Duration = Duration::from_secs(60);

/// "Under a lease of `lease`": the job comes back when it has ended, within seconds.
pub async fn a_job_comes_back_when_its_lease_ends_and_not_before<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    let started = world.now();
    world.claim_for(1, MINUTE).await;
    tokio::time::sleep(MINUTE - MOMENT).await;
    world.assert_no_job().await;
    let again = world.next().await;
    assert_eq!((&again.job, again.deliveries), (&job, 2));
    assert!(world.now().since(started) >= MINUTE);
}

/// "Makes the lease of `claim` last at least `lease` from now. Never shortens it."
pub async fn an_extension_counts_from_now_and_never_shortens<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(None).await;
    let claimed = world.claim_for(1, MINUTE).await.remove(0);
    for _ in 0..3 {
        tokio::time::sleep(MINUTE / 2).await;
        world.port.extend(&claimed.claim, MINUTE).expect("the claim is held");
        world.port.extend(&claimed.claim, Duration::ZERO).expect("the claim is held");
        world.port.extend(&claimed.claim, MINUTE / 3).expect("the claim is held");
    }
    tokio::time::sleep(MINUTE - MOMENT).await;
    world.assert_no_job().await;
    assert!(!claimed.lost.is_cancelled());
    assert_eq!(world.next().await.deliveries, 2);
}

/// No lease is too long to be asked for.
pub async fn the_longest_lease_breaks_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(None).await;
    world.ring(None).await;
    let longest = world.claim_for(1, Duration::MAX).await.remove(0);
    let extended = world.claim_for(1, MINUTE).await.remove(0);
    world.port.extend(&extended.claim, Duration::MAX).expect("the claim is held");
    world.port.extend(&extended.claim, MINUTE).expect("the claim is held");
    tokio::time::sleep(10 * MINUTE).await;
    world.assert_no_job().await;
    for claimed in [longest, extended] {
        world.port.extend(&claimed.claim, LEASE).expect("the claim is held");
        world.ack(&claimed.claim).await;
    }
}

/// "Any other error when the claim is known to be lost." `lost` "fires when the claim is lost".
pub async fn a_lost_claim_is_told<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(None).await;
    let lapsed = world.claim_for(1, MINUTE).await.remove(0);
    tokio::time::sleep(MINUTE).await;
    let next = world.next().await;
    assert!(world.port.extend(&lapsed.claim, LEASE).is_err(), "the job is another's");
    soon(lapsed.lost.cancelled()).await;
    assert!(!next.lost.is_cancelled());
    world.port.extend(&next.claim, LEASE).expect("the claim is held");
    world.ack(&next.claim).await;
    assert!(world.port.extend(&next.claim, LEASE).is_err(), "the claim is settled");
}

/// "Repeats itself until the settlement is durable or the claim is gone."
pub async fn a_settlement_of_a_lost_claim_changes_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    let lapsed = world.claim_for(1, MINUTE).await.remove(0);
    tokio::time::sleep(MINUTE + SECONDS).await;
    world.ack(&lapsed.claim).await;
    world.bury(&lapsed.claim).await;
    let next = world.claim_one().await;
    assert_eq!((&next.job, next.deliveries), (&job, 2));
    world.ack(&lapsed.claim).await;
    world.bury(&lapsed.claim).await;
    world.port.extend(&next.claim, LEASE).expect("the late settlement did not touch the next claim");
    assert!(world.dead().await.is_empty());
}

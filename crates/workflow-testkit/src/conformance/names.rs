//! Ids, numbers and the time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Subject;
use super::world::World;

/// "No two calls give the same, in any process."
pub async fn job_ids_are_all_different_in_every_opening<S: Subject>() {
    const IDS: usize = 1_000;
    let mut world = World::<S>::new().await;
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        ids.extend((0..IDS).map(|_| world.port.next_job_id()));
        world = world.crash().await;
    }
    assert_eq!(ids.len(), 3 * IDS);
}

/// "Equal while a claim that is not durable can be lost, different after a crash."
pub async fn an_opening_has_one_number_and_the_next_has_another<S: Subject>() {
    let mut world = World::<S>::new().await;
    let mut numbers = BTreeSet::new();
    for _ in 0..5 {
        let number = world.port.open_number();
        world.ring(None).await;
        world.port.persist_claims().await.expect("an open queue persists its claims");
        assert_eq!(world.port.open_number(), number);
        assert!(numbers.insert(number), "{number} was an earlier opening's");
        world = world.crash().await;
    }
}

/// "The time. It never goes back." "Waits for `duration`."
pub async fn the_clock_follows_its_own_sleeps<S: Subject>() {
    let world = World::<S>::new().await;
    let clock = world.port.clock();
    let mut last = clock.now();
    for millis in [0, 1, 10, 1_000, 60_000] {
        let duration = Duration::from_millis(millis);
        clock.sleep(duration).await;
        let now = clock.now();
        assert!(now.since(last) >= duration, "{now:?} is less than {duration:?} after {last:?}");
        assert!(now.since(last) < duration + Duration::from_secs(1));
        last = now;
    }
    assert_eq!(world.port.clock().now(), clock.now());
}

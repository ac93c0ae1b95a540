//! Doorbells with a due time, and waiting for work.

use std::collections::BTreeSet;
use std::time::Duration;

use workflow_core::Timestamp;
use workflow_effects::Commit;
use workflow_runtime::QueuePort;
use workflow_runtime::port::ClaimedJob;

use super::{HOUR, QUEUE, World, assert_waits, eventually, ringing};

fn queues() -> [String; 1] {
    [QUEUE.to_owned()]
}

/// What the loop does: claim, and wait for work when there is none. No timer but our own wakes it.
async fn next_delivery(world: &World) -> ClaimedJob {
    let delivery = async {
        loop {
            if let Some(claimed) = world.claim(1).await.pop() {
                return claimed;
            }
            world.port.wait_for_work(&queues(), HOUR).await;
        }
    };
    woken(delivery).await
}

/// What `wait` waits for. Gives up when that takes absurdly long, so that a lost wake-up is a failure.
async fn woken<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("nothing wakes it")
}

fn soon(world: &World) -> Timestamp {
    world.port.clock().now().after(Duration::from_millis(60))
}

#[tokio::test]
async fn a_doorbell_is_delivered_when_it_is_due_and_not_before() {
    let world = World::new().await;
    let (job, due) = (world.port.next_job_id(), soon(&world));
    world.commit(ringing(&job, Some(due))).await.unwrap();
    let later = world.port.next_job_id();
    world.commit(ringing(&later, Some(Timestamp::NEVER))).await.unwrap();
    assert_eq!(next_delivery(&world).await.job, job);
    assert!(world.port.clock().now() >= due);
    assert!(world.claim(9).await.is_empty(), "the other is not due");
}

#[tokio::test]
async fn doorbells_are_delivered_when_they_are_due_after_the_queue_was_opened_again() {
    const BELLS: usize = 300;
    let world = World::new().await;
    let due = world.port.clock().now().after(Duration::from_millis(300));
    let mut commit = Commit::default();
    for _ in 0..BELLS {
        commit.enqueues.extend(ringing(&world.port.next_job_id(), Some(due)).enqueues);
    }
    world.commit(commit).await.unwrap();
    let world = world.crash().await;
    let mut delivered = BTreeSet::new();
    while delivered.len() < BELLS {
        delivered.insert(next_delivery(&world).await.job.to_string());
        assert!(world.port.clock().now() >= due);
    }
}

#[tokio::test]
async fn a_doorbell_that_was_due_while_nobody_had_the_queue_open_is_delivered_at_once() {
    let world = World::new().await;
    let (job, due) = (world.port.next_job_id(), soon(&world));
    world.commit(ringing(&job, Some(due))).await.unwrap();
    let clock = world.port.clock();
    eventually(async || (clock.now() >= due).then_some(())).await;
    let world = world.crash().await;
    assert_eq!(world.claim_one().await.job, job);
}

#[tokio::test]
async fn whoever_waits_already_is_woken_by_a_new_doorbell() {
    for due in [false, true] {
        let world = World::new().await;
        assert!(world.claim(1).await.is_empty());
        let queues = queues();
        let mut wait = Box::pin(world.port.wait_for_work(&queues, HOUR));
        assert_waits(&mut wait).await;
        let (job, due) = (world.port.next_job_id(), due.then(|| soon(&world)));
        world.commit(ringing(&job, due)).await.unwrap();
        woken(wait).await;
        assert_eq!(next_delivery(&world).await.job, job);
        assert!(due.is_none_or(|due| world.port.clock().now() >= due));
    }
}

#[tokio::test]
async fn whoever_waits_for_a_late_doorbell_is_woken_by_an_earlier_one() {
    let world = World::new().await;
    let late = world.port.clock().now().after(HOUR);
    world.commit(ringing(&world.port.next_job_id(), Some(late))).await.unwrap();
    assert!(world.claim(1).await.is_empty());
    let queues = queues();
    let mut wait = Box::pin(world.port.wait_for_work(&queues, HOUR));
    assert_waits(&mut wait).await;
    let job = world.port.next_job_id();
    world.commit(ringing(&job, Some(soon(&world)))).await.unwrap();
    woken(wait).await;
    assert_eq!(next_delivery(&world).await.job, job);
}

#[tokio::test]
async fn a_doorbell_that_came_before_the_wait_ends_it() {
    let world = World::new().await;
    assert!(world.claim(1).await.is_empty());
    let job = world.ring().await;
    woken(world.port.wait_for_work(&queues(), HOUR)).await;
    assert_eq!(world.claim_one().await.job, job);
}

#[tokio::test]
async fn a_wait_for_work_ends_by_itself() {
    let world = World::new().await;
    world.port.wait_for_work(&queues(), Duration::from_millis(2)).await;
    world.port.wait_for_work(&[], Duration::from_millis(2)).await;
    let mut endless = Box::pin(async { world.port.wait_for_work(&[], Duration::MAX).await });
    assert_waits(&mut endless).await;
}

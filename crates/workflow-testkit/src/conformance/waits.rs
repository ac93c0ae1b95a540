//! Waiting for work and for a change, and the hint.

use std::time::Duration;

use bytes::Bytes;
use workflow_runtime::port::Timestamp;

use super::Subject;
use super::world::{
    LEASE, MOMENT, QUEUE, SECONDS, World, assert_waits, at_once, deleting, eventually, putting, ringing_in, soon,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn queues() -> [String; 2] {
    ["other".to_owned(), QUEUE.to_owned()]
}

/// "Returns when a job of one of `queues` may have become ready or due."
pub async fn whoever_waits_is_woken_by_a_job_of_any_of_the_queues<S: Subject>() {
    for (queue, delay) in [(QUEUE, None), ("other", None), (QUEUE, Some(MINUTE)), ("other", Some(MINUTE))] {
        let world = World::<S>::new().await;
        for queue in queues() {
            let claimed = world.port.claim(&queue, 1, LEASE).await.expect("an open queue answers a claim");
            assert!(claimed.is_empty());
        }
        let queues = queues();
        let mut wait = Box::pin(world.port.wait_for_work(&queues, HOUR));
        assert_waits(&mut wait).await;
        let job = world.port.next_job_id();
        let due = delay.map(|delay| world.after(delay));
        world.commit(ringing_in(queue, &job, due)).await.expect("a job with a fresh id is queued");
        let claimed = loop {
            tokio::time::timeout(MINUTE + SECONDS, wait).await.expect("it is woken");
            let mut claimed = world.port.claim(queue, 1, LEASE).await.expect("an open queue answers a claim");
            if let Some(claimed) = claimed.pop() {
                break claimed;
            }
            wait = Box::pin(world.port.wait_for_work(&queues, HOUR));
        };
        assert_eq!(claimed.job, job);
        assert!(due.is_none_or(|due| world.now().since(due) < SECONDS));
    }
}

/// "Returns when a job may have become due", though a later one is waited for, and whoever else waits for other queues.
pub async fn whoever_waits_for_a_late_job_is_woken_by_an_earlier_one<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(Some(world.after(HOUR))).await;
    world.assert_no_job().await;
    let (others, queues) = (["neither".to_owned()], queues());
    let mut first_in_line = Box::pin(world.port.wait_for_work(&others, HOUR));
    assert_waits(&mut first_in_line).await;
    let mut wait = Box::pin(world.port.wait_for_work(&queues, HOUR));
    assert_waits(&mut wait).await;
    let due = world.after(MINUTE);
    let job = world.ring(Some(due)).await;
    while world.now() < due {
        tokio::time::timeout(MINUTE + SECONDS, wait).await.expect("it is woken");
        wait = Box::pin(world.port.wait_for_work(&queues, HOUR));
    }
    assert!(world.now().since(due) < SECONDS);
    assert_eq!(world.claim_one().await.job, job);
}

/// A job whose lease has ended is ready again, like any other.
pub async fn whoever_waits_is_woken_by_a_job_that_comes_back<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    world.claim_for(9, MINUTE).await;
    let claimed = loop {
        if let Some(claimed) = world.claim(1).await.pop() {
            break claimed;
        }
        let waited = tokio::time::timeout(MINUTE + SECONDS, world.port.wait_for_work(&queues(), HOUR)).await;
        waited.expect("it is woken");
    };
    assert_eq!((claimed.job, claimed.deliveries), (job, 2));
}

/// "Since the caller's last claim found nothing": what came between the claim and the wait is not missed.
pub async fn a_job_that_came_before_the_wait_ends_it<S: Subject>() {
    let world = World::<S>::new().await;
    world.assert_no_job().await;
    let job = world.ring(None).await;
    soon(world.port.wait_for_work(&queues(), HOUR)).await;
    assert_eq!(world.claim_one().await.job, job);
}

/// "After `at_most` in any case."
pub async fn a_wait_for_work_ends_by_itself<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(Some(Timestamp::NEVER)).await;
    world.assert_no_job().await;
    for queues in [&queues()[..], &[]] {
        for at_most in [Duration::ZERO, MOMENT, MINUTE] {
            let started = world.now();
            let wait = world.port.wait_for_work(queues, at_most);
            tokio::time::timeout(at_most + SECONDS, wait).await.expect("it ends by itself");
            assert!(world.now().since(started) < at_most + SECONDS);
        }
        let mut endless = Box::pin(world.port.wait_for_work(queues, Duration::MAX));
        assert_waits(&mut endless).await;
    }
}

/// "Of several who wait for one queue, a job may wake only one."
pub async fn of_several_who_wait_one_at_least_is_woken<S: Subject>() {
    let world = World::<S>::new().await;
    world.assert_no_job().await;
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let port = world.port.clone();
            tokio::spawn(async move { port.wait_for_work(&queues(), HOUR).await })
        })
        .collect();
    tokio::time::sleep(MOMENT).await;
    assert!(waits.iter().all(|wait| !wait.is_finished()));
    world.ring(None).await;
    eventually(async || waits.iter().any(tokio::task::JoinHandle::is_finished).then_some(())).await;
    waits.iter().for_each(tokio::task::JoinHandle::abort);
}

/// "Waits until the durable value of `key` is another than `seen`, and returns it": other bytes, or none.
pub async fn a_wait_for_a_change_ends_at_any_value_but_the_seen_one<S: Subject>() {
    let world = World::<S>::new().await;
    let value = |text: &'static str| Some(Bytes::from(text));
    let change = async |seen: Option<&Bytes>| {
        let change = world.port.wait_for_change(b"slot", seen).await;
        change.expect("an open store answers a read")
    };
    assert_eq!(soon(change(value("never there").as_ref())).await, None);
    let steps = [value("one"), value(""), None, value("two"), value("one"), None];
    let mut seen = None;
    for next in steps {
        let mut wait = Box::pin(change(seen.as_ref()));
        assert_waits(&mut wait).await;
        world.put("another", "new").await;
        assert_waits(&mut wait).await;
        let commit = next.as_ref().map_or_else(|| deleting("slot"), |next| putting("slot", next.clone()));
        world.commit(commit).await.expect("a commit without expectations is applied");
        assert_eq!(soon(wait).await, next);
        assert_eq!(soon(change(seen.as_ref())).await, next, "whoever comes late sees it at once");
        drop(seen);
        seen = next;
    }
}

/// "Waits until the *durable* value is another."
pub async fn a_wait_for_a_change_tells_what_no_crash_can_undo<S: Subject>() {
    let world = World::<S>::new().await;
    world.put("slot", "old").await;
    let seen = Bytes::from("old");
    let mut change = Box::pin(world.port.wait_for_change(b"slot", Some(&seen)));
    assert_waits(&mut change).await;
    world.subject.hold();
    let begun = world.begin(putting("slot", "new")).await;
    assert_waits(&mut change).await;
    assert!(at_once(world.port.wait_for_change(b"slot", Some(&seen))).await.is_none(), "it is not durable yet");
    world.subject.release();
    let changed = soon(change).await.expect("an open store answers a read");
    assert_eq!(changed.as_deref(), Some(&b"new"[..]));
    soon(begun).await.expect("the task does not panic").expect("the commit is applied");
}

/// "Wrongly true until a claim takes fewer jobs than it asks for, and wrongly false only for jobs that this process did
/// not make ready by a commit it was answered."
pub async fn the_hint_misses_no_job_that_this_process_made_ready<S: Subject>() {
    let world = World::<S>::new().await;
    let hint = || world.port.may_have_ready_job(QUEUE);
    world.assert_no_job().await;
    assert!(!hint(), "the last claim found nothing");
    world.ring(None).await;
    world.ring(None).await;
    assert!(hint());
    assert_eq!(world.claim(1).await.len(), 1);
    assert!(hint(), "the claim left one");
    assert_eq!(world.claim(9).await.len(), 1);
    assert!(!hint(), "the claim took all");
    world.ring(Some(Timestamp::from_millis(1))).await;
    assert!(hint(), "it is due already");
    assert_eq!(world.claim(9).await.len(), 1);
    world.ring(Some(world.after(MINUTE / 2))).await;
    world.assert_no_job().await;
    assert!(!hint(), "it is not due yet");
    tokio::time::sleep(MINUTE / 2).await;
    assert!(hint(), "it has come due");
    assert_eq!(world.claim(9).await.len(), 1);
}

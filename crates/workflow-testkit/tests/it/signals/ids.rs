//! Idempotency ids: of the signals of a key that carry one, one counts.

use std::sync::Arc;
use std::time::Duration;

use workflow_runtime::{SignalOptions, SignalOutcome};
use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, When};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until_it_waits};

async fn send(runtime: &Runtime, key: &str, payload: &str, id: &str) -> SignalOutcome {
    let options = SignalOptions { id: Some(id.to_owned()) };
    runtime.signal_with(key, payload.into(), options).await.unwrap()
}

fn world() -> World {
    World::without_hook(Scripted::waits_for(&["k"], Duration::MAX))
}

#[tokio::test(start_paused = true)]
async fn a_repetition_delivers_nothing_before_and_after_the_first_is_taken() {
    let mut world = world();
    let (runtime, _running) = world.running();
    assert_eq!(send(&runtime, "k", "first", "1").await, SignalOutcome::Buffered);
    let before = world.disk.entries();
    assert_eq!(send(&runtime, "k", "other bytes", "1").await, SignalOutcome::Duplicate);
    assert_eq!(world.disk.entries(), before);
    submit(&runtime, RUN).await;
    assert_eq!(result_of(&runtime, RUN).await, "k=first");
    assert_eq!(send(&runtime, "k", "first", "1").await, SignalOutcome::Duplicate);
    world.crash();
    assert_eq!(send(&world.runtime(), "k", "first", "1").await, SignalOutcome::Duplicate);
    assert_eq!(world.rows("signal-item"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_of_a_signal_that_ended_a_wait_ends_no_other() {
    let world = world();
    let (runtime, _running) = world.running();
    submit(&runtime, "one").await;
    until_it_waits(&runtime, "one").await;
    assert_eq!(send(&runtime, "k", "x", "1").await, SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, "one").await, "k=x");
    submit(&runtime, "two").await;
    until_it_waits(&runtime, "two").await;
    assert_eq!(send(&runtime, "k", "x", "1").await, SignalOutcome::Duplicate);
    assert_eq!(send(&runtime, "k", "x", "2").await, SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, "two").await, "k=x");
}

#[tokio::test(start_paused = true)]
async fn an_id_is_of_one_key_and_ids_are_compared_byte_by_byte() {
    let world = world();
    let runtime = world.runtime();
    for (key, id) in [("a", "1"), ("b", "1"), ("a", "1\0"), ("a\0", "1"), ("a", "/1"), ("a/", "1"), ("a", "\u{ff11}")] {
        assert_eq!(send(&runtime, key, "x", id).await, SignalOutcome::Buffered, "{key:?} {id:?}");
    }
    assert_eq!(send(&runtime, "a", "x", "1").await, SignalOutcome::Duplicate);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_forgotten_with_its_time() {
    let minute = Duration::from_secs(60);
    let world = world().with(|s| s.signal_ttl = minute);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    assert_eq!(send(&runtime, "k", "delivered", "1").await, SignalOutcome::Delivered);
    assert_eq!(send(&runtime, "k", "buffered", "2").await, SignalOutcome::Buffered);
    tokio::time::sleep(minute / 2).await;
    assert_eq!((world.rows("signal-id"), world.rows("signal-expiry")), (2, 2));
    assert_eq!(send(&runtime, "k", "again", "1").await, SignalOutcome::Duplicate);
    tokio::time::sleep(2 * minute).await;
    assert_eq!((world.rows("signal-id"), world.rows("signal-expiry"), world.rows("signal")), (0, 0, 0));
    assert_eq!(send(&runtime, "k", "anew", "1").await, SignalOutcome::Buffered);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_its_id_sends_once() {
    let minute = Duration::from_secs(60);
    let world = world().with(|s| s.signal_ttl = minute);
    let lost = Plan::of(PortCalls::Commit, When::Nth(1), PortFault::AnswerLostForLong(10 * minute));
    let sender = world.over(Arc::new(FaultyPort::new(Arc::new(world.queue.clone()), lost)));
    let (runtime, _running) = world.running();
    let options = SignalOptions { id: Some("1".to_owned()) };
    let taken = async {
        submit(&runtime, RUN).await;
        result_of(&runtime, RUN).await
    };
    let (answer, taken) = tokio::join!(sender.signal_with("k", b"once".to_vec(), options), taken);
    assert_eq!(taken, "k=once");
    assert!(answer.is_err_and(|error| !error.is_permanent()), "nothing tells any more that it was sent");
    assert_eq!(["signal", "signal-item", "signal-id"].map(|kind| world.rows(kind)), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn of_repetitions_at_the_same_instant_one_counts() {
    let world = world().with(|s| s.inline_limit = 4);
    let runtime = world.runtime();
    let sends = (0..8).map(|_| send(&runtime, "k", "long enough", "1"));
    let answers = futures::future::join_all(sends).await;
    let buffered = answers.iter().filter(|answer| **answer == SignalOutcome::Buffered).count();
    let duplicates = answers.iter().filter(|answer| **answer == SignalOutcome::Duplicate).count();
    assert_eq!((buffered, duplicates, world.rows("signal-item"), world.objects().await), (1, 7, 1, 1));
    assert_eq!(world.rows("objects-signal"), 1);
}

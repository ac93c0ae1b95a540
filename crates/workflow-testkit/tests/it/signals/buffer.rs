//! Signals that nobody waits for yet: in order, listed, cleared, forgotten in time, and never without end.

use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{BufferedSignal, Error, SignalOptions, SignalOutcome, StepOutcome};
use workflow_testkit::ClockStep;

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

async fn send(runtime: &Runtime, payload: &str) -> SignalOutcome {
    runtime.signal("k", payload.into()).await.unwrap()
}

async fn listed(runtime: &Runtime) -> Vec<String> {
    let signals: Vec<BufferedSignal> = runtime.buffered_signals("k").try_collect().await.unwrap();
    signals.into_iter().map(|signal| String::from_utf8(signal.payload).unwrap()).collect()
}

/// A run that takes `count` signals off the key, one a step.
fn takes(count: u32) -> Scripted {
    Scripted::new(move |mut step| async move {
        if let Some(signal) = step.signal {
            step.payload.extend(signal);
        }
        Ok(match step.step_number {
            last if last == count => StepOutcome::Succeed { result: step.payload },
            _ => StepOutcome::continue_on_signal(step.payload, "k", Duration::MAX),
        })
    })
}

#[tokio::test(start_paused = true)]
async fn signals_are_seen_in_order_of_arrival_one_a_step() {
    let world = World::without_hook(takes(6));
    let (runtime, _running) = world.running();
    for payload in ["a", "b", "b", "c"] {
        assert_eq!(send(&runtime, payload).await, SignalOutcome::Buffered);
    }
    assert_eq!(listed(&runtime).await, ["a", "b", "b", "c"]);
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    assert!(listed(&runtime).await.is_empty());
    send(&runtime, "d").await;
    send(&runtime, "e").await;
    assert_eq!(result_of(&runtime, RUN).await, "inabbcde");
    assert_eq!((world.rows("signal"), world.rows("signal-item"), world.rows("signal-expiry")), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_tells_when_it_came_how_long_it_stays_and_its_id() {
    let world = World::without_hook(takes(1));
    let runtime = world.runtime();
    let id = Some("once".to_owned());
    runtime.signal_with("k", b"x".to_vec(), SignalOptions { id: id.clone() }).await.unwrap();
    let signals: Vec<BufferedSignal> = runtime.buffered_signals("k").try_collect().await.unwrap();
    let week = Duration::from_secs(7 * 24 * 3600);
    assert_eq!((signals.len(), &signals[0].id), (1, &id));
    assert_eq!(signals[0].expires_at.duration_since(signals[0].sent_at).unwrap(), week);
    let error = runtime.buffered_signals("").try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(error, Error::InvalidCorrelationKey { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn more_than_a_page_is_listed_and_cleared() {
    let world = World::without_hook(takes(1));
    let runtime = world.runtime();
    for number in 0..600 {
        send(&runtime, &number.to_string()).await;
    }
    let expected: Vec<String> = (0..600).map(|number| number.to_string()).collect();
    assert_eq!(listed(&runtime).await, expected);
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 600);
    assert!(listed(&runtime).await.is_empty());
    assert!(world.disk.entries().is_empty(), "{:?}", world.disk.entries());
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_clear_leaves_whoever_waits_and_remembers_ids() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    let options = SignalOptions { id: Some("once".to_owned()) };
    runtime.signal_with("k", b"x".to_vec(), options.clone()).await.unwrap();
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 1);
    let again = runtime.signal_with("k", b"x".to_vec(), options).await.unwrap();
    assert_eq!(again, SignalOutcome::Duplicate);
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 0);
    assert_eq!(send(&runtime, "yes").await, SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, RUN).await, "k=yes");
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_refuses_and_writes_nothing() {
    let world = World::without_hook(takes(1)).with(|s| (s.signal_limit, s.inline_limit) = (2, 4));
    let runtime = world.runtime();
    send(&runtime, "a").await;
    send(&runtime, "b").await;
    let before = world.disk.entries();
    let error = runtime.signal("k", b"too long".to_vec()).await.unwrap_err();
    let Error::SignalBufferFull { key, limit } = &error else { panic!("{error:?}") };
    assert_eq!((key.as_str(), *limit, error.is_permanent()), ("k", 2, false));
    assert_eq!((world.disk.entries(), world.objects().await), (before, 0));
    assert_eq!(runtime.signal("other", b"c".to_vec()).await.unwrap(), SignalOutcome::Buffered);
    let _running = runtime.spawn(std::future::pending());
    submit(&runtime, RUN).await;
    assert_eq!(result_of(&runtime, RUN).await, "ina");
    assert_eq!(send(&runtime, "c").await, SignalOutcome::Buffered);
}

#[tokio::test(start_paused = true)]
async fn of_rivals_for_the_last_place_one_is_refused_and_leaves_no_object() {
    let world = World::without_hook(takes(1)).with(|s| (s.signal_limit, s.inline_limit) = (1, 4));
    let runtime = world.runtime();
    let sends = (0..8).map(|_| runtime.signal("k", b"too long".to_vec()));
    let answers = futures::future::join_all(sends).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    assert_eq!((world.objects().await, world.rows("objects-signal")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_forgotten_in_time_and_not_before() {
    let world = World::without_hook(takes(1)).with(|s| (s.signal_ttl, s.inline_limit) = (2 * MINUTE, 4));
    let (runtime, _running) = world.running();
    send(&runtime, "old").await;
    runtime.signal("k", b"old and long".to_vec()).await.unwrap();
    tokio::time::sleep(2 * MINUTE - Duration::from_secs(1)).await;
    assert_eq!(listed(&runtime).await, ["old", "old and long"]);
    tokio::time::sleep(MINUTE / 2).await;
    send(&runtime, "new").await;
    // It is looked for as often as signals are kept for.
    tokio::time::sleep(2 * MINUTE - Duration::from_secs(10)).await;
    assert_eq!((listed(&runtime).await, world.objects().await), (vec!["new".to_owned()], 0));
    assert_eq!(world.rows("objects-signal"), 0);
    tokio::time::sleep(2 * MINUTE).await;
    assert!(listed(&runtime).await.is_empty());
    assert_eq!((world.rows("signal"), world.rows("signal-item"), world.rows("signal-expiry")), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_keeps_signals_longer_never_shorter() {
    let world = World::without_hook(takes(1)).with(|s| s.signal_ttl = 2 * MINUTE);
    let (runtime, _running) = world.running();
    send(&runtime, "kept").await;
    world.disk.clock().set(ClockStep::Back(5 * MINUTE));
    tokio::time::sleep(4 * MINUTE).await;
    assert_eq!(listed(&runtime).await, ["kept"]);
    tokio::time::sleep(6 * MINUTE).await;
    assert!(listed(&runtime).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn signals_are_kept_for_ever_where_that_is_asked_for() {
    let world = World::without_hook(takes(1)).with(|s| s.signal_ttl = Duration::MAX);
    let (runtime, _running) = world.running();
    send(&runtime, "kept").await;
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(listed(&runtime).await, ["kept"]);
}

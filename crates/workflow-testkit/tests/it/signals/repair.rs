//! Rows that do not decode harm whoever they are of, and nobody else.

use std::time::Duration;

use workflow_runtime::port::{Commit, KvStore};
use workflow_runtime::{SignalOutcome, TerminalStatus};

use crate::scripted::{RUN, Scripted, World, result_of, submit, until_it_waits};

/// Replaces what is at the first key of a kind.
async fn spoil(world: &World, kind: &str) {
    let prefix = format!("workflow/workflow-steps/{kind}/");
    let entries = world.disk.entries();
    let (key, _) = entries.iter().find(|(key, _)| key.starts_with(prefix.as_bytes())).unwrap();
    let commit = Commit { puts: vec![(key.clone(), "not a row".into())], ..Commit::default() };
    assert!(world.queue.commit(vec![commit]).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_record_is_corrupt_harms_no_other_run() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    submit(&runtime, "corrupt").await;
    until_it_waits(&runtime, "corrupt").await;
    spoil(&world, "run").await;
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!(end.status, TerminalStatus::Failed);
    assert!(end.error.as_deref().is_some_and(|error| error.contains("has a waiter already")), "{end:?}");
    let error = runtime.signal("k", Vec::new()).await.unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("corrupt"), "{error}");
    assert!(runtime.cancel("corrupt", None).await.unwrap_err().is_permanent());
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_does_not_decode_keeps_no_other_key_from_being_forgotten() {
    let minute = Duration::from_secs(60);
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX)).with(|s| s.signal_ttl = minute);
    let (runtime, _running) = world.running();
    runtime.signal("a", b"x".to_vec()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    runtime.signal("b", b"x".to_vec()).await.unwrap();
    spoil(&world, "signal-item").await;
    tokio::time::sleep(3 * minute).await;
    assert_eq!((world.rows("signal"), world.rows("signal-item"), world.rows("signal-expiry")), (1, 1, 1));
    // Others can still be sent, and found behind it.
    assert_eq!(runtime.signal("a", b"y".to_vec()).await.unwrap(), SignalOutcome::Buffered);
}

#[tokio::test(start_paused = true)]
async fn an_expiry_that_does_not_decode_keeps_no_other_from_being_looked_at() {
    let minute = Duration::from_secs(60);
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX)).with(|s| s.signal_ttl = minute);
    let (runtime, _running) = world.running();
    runtime.signal("a", b"x".to_vec()).await.unwrap();
    spoil(&world, "signal-expiry").await;
    runtime.signal("b", b"x".to_vec()).await.unwrap();
    tokio::time::sleep(3 * minute).await;
    assert_eq!((world.rows("signal"), world.rows("signal-expiry")), (1, 1));
    submit(&runtime, "next").await;
    runtime.signal("k", b"z".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, "next").await, "k=z");
}

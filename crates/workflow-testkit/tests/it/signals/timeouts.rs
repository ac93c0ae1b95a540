//! Waits that end by themselves: at their time, decided once.

use std::sync::Arc;
use std::time::Duration;

use workflow_runtime::port::Clock;
use workflow_runtime::{RunPhase, SignalOutcome, StepError, StepOutcome};

use crate::scripted::{RUN, Scripted, World, result_of, submit, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_time_and_not_before() {
    let world = World::without_hook(Scripted::waits_for(&["a", "b"], MINUTE));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    let RunPhase::Waiting { until: Some(until), .. } = status.phase else { panic!("{status:?}") };
    assert_eq!(result_of(&runtime, RUN).await, "-");
    let late = std::time::SystemTime::from(world.disk.clock().now()).duration_since(until).unwrap();
    assert!(late < Duration::from_millis(50), "{late:?}");
    assert_eq!(world.rows("signal"), 0);
    assert_eq!(runtime.signal("a", b"late".to_vec()).await.unwrap(), SignalOutcome::Buffered);
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_no_time_takes_what_is_there_and_goes_on_otherwise() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::ZERO));
    let (runtime, _running) = world.running();
    submit(&runtime, "none").await;
    assert_eq!(result_of(&runtime, "none").await, "-");
    runtime.signal("k", b"there".to_vec()).await.unwrap();
    submit(&runtime, "one").await;
    assert_eq!(result_of(&runtime, "one").await, "k=there");
    assert_eq!(world.rows("signal"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_end_has_no_doorbell_and_outlasts_restarts() {
    let mut world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    for _ in 0..3 {
        let (runtime, running) = world.running();
        submit(&runtime, RUN).await;
        until_it_waits(&runtime, RUN).await;
        tokio::time::sleep(2 * MINUTE).await;
        assert_eq!((world.disk.jobs(), world.runner.seen().len()), (Vec::new(), 1));
        running.shutdown().await.unwrap();
        world.crash();
    }
    let (runtime, _running) = world.running();
    assert_eq!(runtime.signal("k", b"at last".to_vec()).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, RUN).await, "k=at last");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_outlasts_restarts_and_is_due_at_once_when_it_was_slept_through() {
    let mut world = World::without_hook(Scripted::waits_for(&["k"], MINUTE));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    running.shutdown().await.unwrap();
    world.crash();
    tokio::time::sleep(2 * MINUTE).await;
    let (runtime, _running) = world.running();
    let start = tokio::time::Instant::now();
    assert_eq!(result_of(&runtime, RUN).await, "-");
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// The first attempt after the wait fails, so that others follow. What is sent meanwhile reaches none of them.
#[tokio::test(start_paused = true)]
async fn a_timeout_that_was_decided_stays_decided() {
    let world = World::without_hook(Scripted::new(|step| async move {
        match (step.step_number, step.attempts) {
            (0, _) => Ok(StepOutcome::continue_on_signal(step.payload, "k", MINUTE)),
            (_, 1 | 2) => Err(StepError::transient("again").retry_after(MINUTE)),
            _ => Ok(StepOutcome::Succeed { result: b"done".to_vec() }),
        }
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    tokio::time::sleep(MINUTE + MINUTE / 2).await;
    assert_eq!(runtime.signal("k", b"late".to_vec()).await.unwrap(), SignalOutcome::Buffered);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert!(world.runner.seen().iter().all(|seen| seen.signal.is_none()), "{:?}", world.runner.seen());
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 1);
}

/// The process dies in the first attempt after the timeout: the next one sees the timeout too, though a signal came.
#[tokio::test(start_paused = true)]
async fn a_timeout_is_durable_before_its_step_runs() {
    let crashed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let dies = crashed.clone();
    let mut world = World::without_hook(Scripted::new(move |step| {
        let dies = dies.clone();
        async move {
            match step.step_number {
                0 => Ok(StepOutcome::continue_on_signal(step.payload, "k", MINUTE)),
                _ if !dies.load(std::sync::atomic::Ordering::Relaxed) => std::future::pending().await,
                _ => Ok(StepOutcome::Succeed { result: step.signal.unwrap_or_else(|| b"-".to_vec()) }),
            }
        }
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    while world.runner.seen().len() < 2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    crashed.store(true, std::sync::atomic::Ordering::Relaxed);
    world.crash();
    let (runtime, _running) = world.running();
    assert_eq!(runtime.signal("k", b"late".to_vec()).await.unwrap(), SignalOutcome::Buffered);
    assert_eq!(result_of(&runtime, RUN).await, "-");
}

#[tokio::test(start_paused = true)]
async fn a_signal_drops_the_timer_of_the_wait_it_ends() {
    let world = World::without_hook(Scripted::new(|step| async move {
        Ok(match step.step_number {
            5 => StepOutcome::Succeed { result: Vec::new() },
            _ => StepOutcome::continue_on_signal(step.payload, "k", 10 * MINUTE),
        })
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for _ in 0..5 {
        until_it_waits(&runtime, RUN).await;
        assert_eq!(world.disk.jobs().len(), 1);
        assert_eq!(runtime.signal("k", Vec::new()).await.unwrap(), SignalOutcome::Delivered);
        crate::scripted::until(&runtime, RUN, |status| status.phase != RunPhase::Ready).await;
    }
    runtime.wait(RUN).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.disk.jobs(), []);
}

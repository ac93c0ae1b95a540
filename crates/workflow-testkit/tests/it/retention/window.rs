//! How long a run is kept, and its id with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow_runtime::port::Clock;
use workflow_runtime::{Error, RunSpec, RunState, StepError, StepOutcome};
use workflow_testkit::ClockStep;

use crate::scripted::{RUN, Scripted, Told, World, settle_down, submit, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

fn succeeds() -> Scripted {
    Scripted::new(|step| async move { Ok(StepOutcome::Succeed { result: step.payload }) })
}

#[tokio::test(start_paused = true)]
async fn a_run_is_kept_for_its_time_and_not_for_longer() {
    let world = World::new(succeeds()).with(|s| s.retention = Some(10 * MINUTE));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    let ended_at = world.disk.clock().now();
    tokio::time::sleep(10 * MINUTE - Duration::from_secs(1)).await;
    let entries = world.disk.entries();
    let again = submit(&runtime, RUN).await;
    assert_eq!((again.newly_submitted, again.end), (false, Some(end.clone())));
    let other = RunSpec { run_id: Some(RUN.to_owned()), input: b"other".to_vec(), ..RunSpec::default() };
    assert!(matches!(runtime.submit(other.clone()).await.unwrap_err(), Error::InputMismatch(_)));
    assert_eq!(runtime.run_end(RUN).await.unwrap(), Some(end));
    assert_eq!(world.disk.entries(), entries, "nothing is touched before its time");
    while !world.leftovers().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let kept = world.disk.clock().now().since(ended_at);
    assert!(10 * MINUTE <= kept && kept < 10 * MINUTE + Duration::from_secs(2), "{kept:?}");
    assert!(runtime.submit(other).await.unwrap().newly_submitted);
    assert_eq!(runtime.wait(RUN).await.unwrap().result.as_deref(), Some(&b"other"[..]));
}

/// Only time that has passed counts, also time in which no process ran.
#[tokio::test(start_paused = true)]
async fn a_run_whose_time_is_over_goes_with_the_next_start() {
    let mut world = World::new(succeeds()).with(|s| s.retention = Some(10 * MINUTE));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    settle_down().await;
    running.shutdown().await.unwrap();
    tokio::time::sleep(60 * MINUTE).await;
    assert!(!world.leftovers().await.is_empty(), "nobody has removed it");
    world.crash();
    let (_runtime, _running) = world.running();
    settle_down().await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_run_is_kept_for_ever() {
    for retention in [None, Some(Duration::MAX)] {
        let mut world = World::new(succeeds()).with(|s| s.retention = retention);
        let (runtime, running) = world.running();
        submit(&runtime, RUN).await;
        let end = runtime.wait(RUN).await.unwrap();
        settle_down().await;
        let entries = world.disk.entries();
        world.disk.clock().set(ClockStep::Forwards(Duration::from_secs(100 * 365 * 24 * 3_600)));
        tokio::time::sleep(61 * MINUTE).await;
        running.shutdown().await.unwrap();
        world.crash();
        let (runtime, _running) = world.running();
        settle_down().await;
        assert_eq!((runtime.run_end(RUN).await.unwrap(), world.disk.entries()), (Some(end), entries));
        world.stop();
    }
}

/// A run whose last step has just ended may still be in hand, and goes a little later.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_kept_for_no_time_is_gone_at_once() {
    let world = World::without_hook(succeeds()).with(|s| s.retention = Some(Duration::ZERO));
    let (runtime, _running) = world.running();
    for _ in 0..10 {
        assert!(submit(&runtime, RUN).await.newly_submitted);
        tokio::time::sleep(2 * MINUTE).await;
        assert_eq!(world.leftovers().await, Vec::<String>::new());
    }
}

/// The hook fails for a while: the run is kept until it has been told, and not for longer.
#[tokio::test(start_paused = true)]
async fn a_run_whose_hook_is_owed_is_kept_until_it_was_told() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let mut world = World::new(succeeds()).with(|s| (s.retention, s.hook_attempts) = (Some(10 * MINUTE), u32::MAX));
    world.hook = Told::answering(move |_| match well.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(StepError::transient("not well").retry_after(MINUTE)),
    });
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(runtime.run_end(RUN).await.unwrap(), Some(end.clone()));
    is_well.store(true, Ordering::Relaxed);
    tokio::time::sleep(3 * MINUTE).await;
    assert!(world.hook.ends().iter().all(|told| *told == end));
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_was_given_up_keeps_no_run() {
    let mut world = World::new(succeeds()).with(|s| (s.retention, s.hook_attempts) = (Some(10 * MINUTE), 2));
    world.hook = Told::answering(|_| Err(StepError::transient("never").retry_after(MINUTE)));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!((world.hook.ends().len(), world.disk.jobs().len()), (2, 1));
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// A run that is brought back is not removed for its first end, and its second end counts.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_brought_back_is_kept_from_its_last_end_on() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX)).with(|s| s.retention = Some(10 * MINUTE));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for _ in 0..3 {
        until_it_waits(&runtime, RUN).await;
        tokio::time::sleep(20 * MINUTE).await;
        assert_eq!(runtime.status(RUN).await.unwrap().unwrap().state, RunState::Waiting);
        runtime.cancel(RUN, None).await.unwrap();
        tokio::time::sleep(9 * MINUTE).await;
        runtime.redrive(RUN, workflow_runtime::RedriveOptions::default()).await.unwrap();
    }
    runtime.cancel(RUN, None).await.unwrap();
    tokio::time::sleep(9 * MINUTE).await;
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().state, RunState::Cancelled);
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// One process that only ends runs, beside one that only sweeps.
#[tokio::test(start_paused = true)]
async fn runs_that_another_runtime_has_ended_go_as_well() {
    let world = World::without_hook(succeeds()).with(|s| s.retention = Some(10 * MINUTE));
    let (runtime, _running) = world.running();
    let other = world.runtime();
    submit(&other, RUN).await;
    other.cancel(RUN, None).await.unwrap();
    drop(runtime);
    tokio::time::sleep(75 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

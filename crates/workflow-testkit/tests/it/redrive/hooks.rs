//! The hook is told of every end, the one before a redrive too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow_runtime::{RunOutcome, StepError, StepOutcome, TerminalStatus};

use super::redrive;
use crate::scripted::{RUN, Scripted, Told, World, settle_down, submit};

const MINUTE: Duration = Duration::from_secs(60);

/// Fails for another reason each time.
fn fails() -> Scripted {
    let calls = std::sync::atomic::AtomicU32::new(0);
    Scripted::new(move |_| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move { if call < 3 { Err(StepError::permanent(format!("reason {call}"))) } else { Ok(succeeds()) } }
    })
}

fn succeeds() -> StepOutcome {
    StepOutcome::Succeed { result: b"done".to_vec() }
}

fn errors(ends: &[RunOutcome]) -> Vec<&str> {
    ends.iter().map(|end| end.error.as_deref().unwrap_or("none")).collect()
}

#[tokio::test(start_paused = true)]
async fn each_end_is_told_once_with_its_own_error() {
    let world = World::new(fails());
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for _ in 0..3 {
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
        redrive(&runtime).await;
    }
    let end = runtime.wait(RUN).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    let told = world.hook.ends();
    assert_eq!(errors(&told), ["reason 0", "reason 1", "reason 2", "none"]);
    assert_eq!(told[3], end);
}

/// The hook is not well until the run has ended for the last time. It is told of each end all the same, in any order.
async fn check_owed(crashes: bool) {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let mut world = World::new(fails());
    world.hook = Told::answering(move |_| match well.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(StepError::transient("not well").retry_after(MINUTE)),
    });
    let (mut runtime, mut running) = world.running();
    submit(&runtime, RUN).await;
    for _ in 0..3 {
        assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
        settle_down().await;
        if crashes {
            drop(running);
            world.crash();
            (runtime, running) = world.running();
        }
        redrive(&runtime).await;
    }
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!(end.status, TerminalStatus::Succeeded);
    settle_down().await;
    let before = world.hook.ends().len();
    is_well.store(true, Ordering::Relaxed);
    tokio::time::sleep(5 * MINUTE).await;
    let mut told = world.hook.ends().split_off(before);
    told.sort_by_key(|end| end.error.clone());
    assert_eq!(errors(&told), ["none", "reason 0", "reason 1", "reason 2"]);
    for (told, status) in told.iter().zip([TerminalStatus::Succeeded].iter().chain(&[TerminalStatus::Failed; 3])) {
        assert_eq!((&*told.run_id, told.final_step, told.status), (RUN, 0, *status));
        assert_eq!(told.result.is_some(), *status == TerminalStatus::Succeeded);
    }
    assert_eq!(world.disk.jobs(), []);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_still_owed_at_the_redrive_is_told_as_it_was() {
    check_owed(false).await;
    check_owed(true).await;
}

/// A run that nobody told of its first end yet may be active, or have ended otherwise, when the hook is called at last.
#[tokio::test(start_paused = true)]
async fn an_end_is_told_while_the_run_goes_on_again() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap();
    redrive(&runtime).await;
    let _running = runtime.spawn(std::future::pending());
    settle_down().await;
    let told = world.hook.ends();
    assert_eq!(errors(&told), ["enough"]);
    assert_eq!(told[0].status, TerminalStatus::Cancelled);
    assert_eq!(runtime.run_end(RUN).await.unwrap(), None);
}

/// An operator puts the notification of the first end back after the run was brought back and has ended again.
#[tokio::test(start_paused = true)]
async fn a_notification_that_was_given_up_and_put_back_tells_of_its_own_end() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let mut world = World::new(fails()).with(|s| s.hook_attempts = 1);
    world.hook = Told::answering(move |_| match well.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(StepError::permanent("never")),
    });
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    settle_down().await;
    let jobs = world.disk.jobs();
    let (given_up, _) = jobs.iter().find(|(_, stored)| stored.queue.ends_with(".notifications")).unwrap();
    is_well.store(true, Ordering::Relaxed);
    redrive(&runtime).await;
    runtime.wait(RUN).await.unwrap();
    settle_down().await;
    assert_eq!(errors(&world.hook.ends()), ["reason 0", "reason 1"]);
    assert!(world.disk.requeue_dead_job(given_up));
    settle_down().await;
    assert_eq!(errors(&world.hook.ends()), ["reason 0", "reason 1", "reason 0"]);
}

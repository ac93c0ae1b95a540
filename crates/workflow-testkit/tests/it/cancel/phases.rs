//! A run that is idle has ended when the call returns.

use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::port::QueuePort;
use workflow_runtime::{
    CancelOutcome, HistoryEntry, RunPhase, RunSpec, RunStatus, StepEnd, StepError, StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

fn never_called() -> Scripted {
    Scripted::new(|step| async move { panic!("step {} is called", step.step_number) })
}

/// Cancels the run, which is idle after `prepare`, and looks at what is left.
async fn check_idle(world: World, prepare: impl AsyncFn(&Runtime), is_so: impl Fn(&RunStatus) -> bool) {
    let (runtime, running) = world.running();
    prepare(&runtime).await;
    until(&runtime, RUN, is_so).await;
    running.shutdown().await.unwrap();
    let (calls, operations) = (world.runner.seen().len(), world.disk.operations());
    assert_eq!(runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap(), CancelOutcome::Ended);
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert!(matches!(status.phase, RunPhase::Ended { status: TerminalStatus::Cancelled, .. }), "{status:?}");
    assert!(!status.cancel_requested);
    let history: Vec<HistoryEntry> = runtime.history(RUN).try_collect().await.unwrap();
    let rows: Vec<_> = history.iter().map(|row| (row.step, row.end)).collect();
    assert_eq!(rows, [(status.step, StepEnd::Cancelled)]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // One commit, and the timer that it makes needless.
    assert!(world.disk.operations() <= operations + 2);
    assert_eq!(world.rows("signal"), 0);
    let _running = runtime.spawn(std::future::pending());
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!((world.runner.seen().len(), world.disk.jobs()), (calls, Vec::new()));
    let told = world.hook.ends();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].status, told[0].error.as_deref()), (TerminalStatus::Cancelled, Some("enough")));
    assert_eq!(runtime.run_end(RUN).await.unwrap(), Some(told[0].clone()));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_delayed() {
    let prepare = async |runtime: &Runtime| {
        let run_at = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let spec = RunSpec { run_id: Some(RUN.to_owned()), run_at: Some(run_at), ..RunSpec::default() };
        runtime.submit(spec).await.unwrap();
    };
    check_idle(World::new(never_called()), prepare, |status| matches!(status.phase, RunPhase::Delayed { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_next_step_is_delayed() {
    let runner = Scripted::new(|step| async move { Ok(StepOutcome::continue_after(step.payload, MINUTE)) });
    let prepare = async |runtime: &Runtime| drop(submit(runtime, RUN).await);
    check_idle(World::new(runner), prepare, |status| matches!(status.phase, RunPhase::Delayed { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_backs_off() {
    let runner = Scripted::new(|_| async move { Err(StepError::transient("no").retry_after(MINUTE)) });
    let prepare = async |runtime: &Runtime| drop(submit(runtime, RUN).await);
    check_idle(World::new(runner), prepare, |status| matches!(status.phase, RunPhase::BackingOff { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_signal() {
    for timeout in [MINUTE, Duration::MAX] {
        let prepare = async |runtime: &Runtime| drop(submit(runtime, RUN).await);
        let is_so = |status: &RunStatus| matches!(status.phase, RunPhase::Waiting { .. });
        check_idle(World::new(Scripted::waits_for(&["a", "b"], timeout)), prepare, is_so).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_queued_needs_no_loop() {
    let world = World::new(never_called());
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    assert_eq!(runtime.cancel(RUN, None).await.unwrap(), CancelOutcome::Ended);
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!((end.status, end.error, end.final_step), (TerminalStatus::Cancelled, None, 0));
    let _running = runtime.spawn(std::future::pending());
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.hook.ends().len(), world.disk.jobs().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_time_has_come_and_that_nobody_has_claimed() {
    let runner = Scripted::new(|step| async move { Ok(StepOutcome::continue_after(step.payload, MINUTE)) });
    let world = World::new(runner);
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until(&runtime, RUN, |status| status.step == 1).await;
    running.shutdown().await.unwrap();
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(runtime.cancel(RUN, None).await.unwrap(), CancelOutcome::Ended);
    let _running = runtime.spawn(std::future::pending());
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.runner.seen().len(), world.disk.jobs().len()), (1, 0), "a stale doorbell is acknowledged");
}

/// Somebody has claimed the doorbell and has not started the step: it never does.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_claimed_and_not_started() {
    let world = World::new(never_called());
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    let claimed = world.queue.claim("workflow-steps", 1, Duration::from_secs(5)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(runtime.cancel(RUN, Some("first".to_owned())).await.unwrap(), CancelOutcome::Requested);
    assert!(runtime.status(RUN).await.unwrap().unwrap().cancel_requested);
    assert_eq!(runtime.cancel(RUN, Some("second".to_owned())).await.unwrap(), CancelOutcome::Requested);
    let _running = runtime.spawn(std::future::pending());
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!((end.status, end.error.as_deref()), (TerminalStatus::Cancelled, Some("first")));
}

/// The process that had the step in hand is gone: there is nothing to wait for.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_to_be_cancelled_when_its_process_died_ends_with_the_next_call() {
    let mut world = World::new(never_called());
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    world.queue.claim("workflow-steps", 1, MINUTE).await.unwrap();
    assert_eq!(runtime.cancel(RUN, Some("first".to_owned())).await.unwrap(), CancelOutcome::Requested);
    world.crash();
    let runtime = world.runtime();
    assert_eq!(runtime.cancel(RUN, Some("second".to_owned())).await.unwrap(), CancelOutcome::Ended);
    assert_eq!(runtime.run_end(RUN).await.unwrap().unwrap().error.as_deref(), Some("first"));
}

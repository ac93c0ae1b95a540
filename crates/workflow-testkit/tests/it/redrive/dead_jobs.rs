//! An operator who puts the dead job of a run back brings the run back, once.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow_runtime::port::{JobId, JobState};
use workflow_runtime::{RedriveOptions, RedriveOutcome, RunState, StepError, StepOutcome, TerminalStatus};

use super::redrive;
use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

/// Fails until it is well.
fn breaks() -> (World, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let world = World::new(Scripted::new(move |step| {
        let well = well.clone();
        async move {
            match (step.step_number, well.load(Ordering::Relaxed)) {
                (0, _) => Ok(StepOutcome::continue_now(vec![7; 100_000])),
                (_, false) => Err(StepError::permanent("no")),
                (_, true) => Ok(StepOutcome::Succeed { result: step.payload.len().to_string().into() }),
            }
        }
    }));
    (world, is_well)
}

fn dead_job(world: &World) -> JobId {
    let dead: Vec<_> = world.disk.jobs().into_iter().filter(|(_, job)| job.state == JobState::Dead).collect();
    assert_eq!(dead.len(), 1, "{dead:?}");
    dead[0].0.clone()
}

async fn failed(world: &World) -> (Runtime, workflow_runtime::RunnerHandle) {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
    settle_down().await;
    (runtime, running)
}

#[tokio::test(start_paused = true)]
async fn a_dead_job_that_is_put_back_brings_its_run_back_once() {
    let (world, is_well) = breaks();
    let (runtime, _running) = failed(&world).await;
    for redrives in 1..4 {
        assert!(world.disk.requeue_dead_job(&dead_job(&world)));
        tokio::time::sleep(5 * MINUTE).await;
        let status = runtime.status(RUN).await.unwrap().unwrap();
        assert_eq!((status.state, status.redrives), (RunState::Failed, redrives));
        assert_eq!(world.calls().len(), 2 + redrives as usize);
    }
    is_well.store(true, Ordering::Relaxed);
    assert!(world.disk.requeue_dead_job(&dead_job(&world)));
    let status = until(&runtime, RUN, |status| status.state != RunState::Failed).await;
    assert_eq!(status.redrives, 4);
    assert_eq!(result_of(&runtime, RUN).await, "100000");
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!((world.calls().last(), world.disk.jobs()), (Some(&(1, 1)), vec![]));
    assert_eq!(world.hook.ends().len(), 5);
}

/// Whatever power the process has after the operator's act, the run is brought back once.
async fn check_put_back(operations: u64) -> bool {
    let (mut world, is_well) = breaks();
    let (runtime, running) = failed(&world).await;
    running.shutdown().await.unwrap();
    is_well.store(true, Ordering::Relaxed);
    assert!(world.disk.requeue_dead_job(&dead_job(&world)));
    settle_down().await;
    world.disk.cut_power_after(operations);
    let is_done = tokio::select! {
        biased;
        ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
        () = world.disk.cut() => false,
        () = tokio::time::sleep(MINUTE) => true,
    };
    world.crash();
    let (runtime, _running) = world.running();
    until(&runtime, RUN, |status| status.state == RunState::Succeeded).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().redrives, 1);
    assert_eq!(world.disk.jobs(), []);
    world.stop();
    is_done
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_meanwhile_leaves_the_run_to_the_next_which_brings_it_back_once() {
    let mut operations = 0;
    while !check_put_back(operations).await {
        operations += 1;
    }
    assert!(operations > 2, "{operations}");
}

/// The process dies before its dead letter is settled: the job comes back, and nobody has asked for anything.
async fn check_lost_settlement(operations: u64) -> bool {
    let (mut world, _) = breaks();
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    world.disk.cut_power_after(operations);
    let is_done = tokio::select! {
        biased;
        ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
        () = world.disk.cut() => false,
        () = tokio::time::sleep(MINUTE) => true,
    };
    world.crash();
    for _ in 0..3 {
        let (runtime, running) = world.running();
        assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
        settle_down().await;
        let status = runtime.status(RUN).await.unwrap().unwrap();
        assert_eq!((status.state, status.redrives), (RunState::Failed, 0));
        dead_job(&world);
        drop(running);
        world.crash();
    }
    is_done
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_whose_settlement_was_lost_asks_for_nothing() {
    let mut operations = 0;
    while !check_lost_settlement(operations).await {
        operations += 1;
    }
    assert!(operations > 3, "{operations}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_put_back_means_nothing_once_its_run_goes_on_under_another() {
    let (world, is_well) = breaks();
    let (runtime, running) = failed(&world).await;
    running.shutdown().await.unwrap();
    let job = dead_job(&world);
    assert!(world.disk.requeue_dead_job(&job));
    redrive(&runtime).await;
    is_well.store(true, Ordering::Relaxed);
    let _running = runtime.spawn(pending());
    assert_eq!(result_of(&runtime, RUN).await, "100000");
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().redrives, 1);
    assert_eq!((world.calls().len(), world.disk.jobs()), (3, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_put_back_after_its_run_is_gone_means_nothing() {
    let (world, _) = breaks();
    let (runtime, running) = failed(&world).await;
    let job = dead_job(&world);
    running.shutdown().await.unwrap();
    assert!(runtime.forget(RUN).await.unwrap());
    assert!(world.disk.requeue_dead_job(&job));
    let _running = runtime.spawn(pending());
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!((world.calls().len(), world.leftovers().await), (2, vec![]));
    assert_eq!(runtime.redrive(RUN, RedriveOptions::default()).await.unwrap(), RedriveOutcome::NotFound);
}

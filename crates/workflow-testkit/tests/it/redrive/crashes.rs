//! A redrive that was answered is in force after a crash, wherever it comes; one that was not may be.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use workflow_runtime::{RedriveOptions, RedriveOutcome, StepError, StepOutcome, TerminalStatus};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit};

/// Fails unless it is called with what a redrive gives.
fn script() -> Scripted {
    Scripted::new(|step| async move {
        match step.payload.len() {
            100_000 => Ok(StepOutcome::Succeed { result: b"done".to_vec() }),
            _ => Err(StepError::permanent("no")),
        }
    })
}

fn options() -> RedriveOptions {
    RedriveOptions { payload: Some(vec![7; 100_000]), ..RedriveOptions::default() }
}

async fn failed(world: &World) -> Runtime {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
    settle_down().await;
    running.shutdown().await.unwrap();
    runtime
}

/// What holds after a process that had power for so many operations. Whether it did all it had to.
async fn check(operations: u64) -> bool {
    let mut world = World::new(script()).with(|s| s.retention = Some(Duration::from_secs(60)));
    let is_answered = Mutex::new(false);
    let runtime = failed(&world).await;
    world.disk.cut_power_after(operations);
    let act = async {
        let answer = runtime.redrive(RUN, options()).await.unwrap();
        *is_answered.lock().unwrap() = true;
        assert_eq!(answer, RedriveOutcome::Redriven);
        let _running = runtime.spawn(pending());
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
    };
    let is_done = tokio::select! {
        biased;
        () = world.disk.cut() => false,
        () = act => true,
    };
    world.crash();
    let (runtime, _running) = world.running();
    let is_answered = is_answered.into_inner().unwrap();
    if !is_answered && runtime.status(RUN).await.unwrap().unwrap().redrives == 0 {
        assert_eq!(runtime.redrive(RUN, options()).await.unwrap(), RedriveOutcome::Redriven);
    }
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().redrives, 1);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
    world.stop();
    is_done
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_is_in_force_after_a_crash_at_every_operation() {
    let mut operations = 0;
    while !check(operations).await {
        operations += 1;
    }
    assert!(operations > 4, "{operations}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_that_a_crash_undoes() {
    let mut world = World::new(script());
    let runtime = failed(&world).await;
    world.disk.hold();
    tokio::select! {
        answer = runtime.redrive(RUN, RedriveOptions::default()) => panic!("{answer:?}"),
        () = tokio::time::sleep(Duration::from_secs(60)) => {}
    }
    world.crash();
    let runtime = world.runtime();
    assert_eq!(runtime.run_end(RUN).await.unwrap().unwrap().status, TerminalStatus::Failed);
}

//! What was answered to a pause or resumption is in force after a crash, wherever it comes.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use workflow_runtime::{PauseOutcome, ResumeOutcome, RunState, StepOutcome};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

/// How far somebody has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
enum Progress {
    #[default]
    Nothing,
    Submitted,
    Paused,
    Resuming,
    Resumed,
}

fn script() -> Scripted {
    Scripted::new(|step| async move {
        Ok(match step.step_number {
            0 => StepOutcome::continue_after(step.payload, MINUTE),
            1 => StepOutcome::continue_now(step.payload),
            _ => StepOutcome::Succeed { result: b"done".to_vec() },
        })
    })
}

async fn act(runtime: &Runtime, progress: &Mutex<Progress>) {
    let reached = |next| *progress.lock().unwrap() = next;
    submit(runtime, RUN).await;
    reached(Progress::Submitted);
    until(runtime, RUN, |status| status.step == 1).await;
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    reached(Progress::Paused);
    tokio::time::sleep(2 * MINUTE).await;
    reached(Progress::Resuming);
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    reached(Progress::Resumed);
    runtime.wait(RUN).await.unwrap();
}

/// What holds after a process that had power for so many operations. Whether it did all it had to.
async fn check(operations: u64) -> bool {
    let (mut world, progress) = (World::new(script()), Mutex::default());
    let runtime = world.runtime();
    world.disk.cut_power_after(operations);
    let is_done = tokio::select! {
        biased;
        ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
        () = world.disk.cut() => false,
        () = act(&runtime, &progress) => true,
    };
    world.crash();
    let (runtime, _running) = world.running();
    let progress = progress.into_inner().unwrap();
    if progress == Progress::Nothing {
        submit(&runtime, RUN).await;
    }
    if progress == Progress::Paused {
        let calls = world.calls();
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(world.calls(), calls);
        assert_eq!(runtime.status(RUN).await.unwrap().unwrap().state, RunState::Paused);
    }
    if progress < Progress::Resumed {
        runtime.resume(RUN).await.unwrap();
    }
    assert_eq!(result_of(&runtime, RUN).await, "done");
    world.stop();
    is_done
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_is_in_force_after_a_crash_at_every_operation() {
    let mut operations = 0;
    while !check(operations).await {
        operations += 1;
    }
    assert!(operations > 8, "{operations}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_that_a_crash_undoes() {
    let mut world = World::new(script());
    let runtime = world.runtime();
    for (run_id, is_paused) in [("goes-on", false), ("paused", true)] {
        submit(&runtime, run_id).await;
        if is_paused {
            runtime.pause(run_id).await.unwrap();
        }
    }
    world.disk.hold();
    tokio::select! {
        answer = runtime.pause("goes-on") => panic!("{answer:?}"),
        answer = runtime.resume("paused") => panic!("{answer:?}"),
        () = tokio::time::sleep(MINUTE) => {}
    }
    world.crash();
    let runtime = world.runtime();
    assert_eq!(runtime.status("goes-on").await.unwrap().unwrap().state, RunState::Active);
    assert_eq!(runtime.status("paused").await.unwrap().unwrap().state, RunState::Paused);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_pauses_all_the_same() {
    let world = World::new(script());
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    world.disk.hold();
    let call = tokio::time::timeout(Duration::from_secs(1), runtime.pause(RUN));
    assert!(call.await.is_err());
    world.disk.release();
    until(&runtime, RUN, |status| status.state == RunState::Paused).await;
}

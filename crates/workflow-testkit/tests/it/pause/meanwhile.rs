//! Signals arrive and waits end while a run is paused; only the step that follows has to wait.

use std::time::Duration;

use workflow_runtime::{
    CancelOutcome, PauseOutcome, ResumeOutcome, RunPhase, RunState, SignalOutcome, StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

async fn paused_wait(world: &World) -> (Runtime, workflow_runtime::RunnerHandle) {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    (runtime, running)
}

async fn is_held_back(world: &World, runtime: &Runtime) {
    tokio::time::sleep(5 * MINUTE).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, status.phase, status.step), (RunState::Paused, RunPhase::Ready, 1));
    assert_eq!((world.calls(), world.disk.jobs(), world.rows("signal")), (vec![(0, 1)], vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn a_signal_is_delivered_at_once_and_seen_by_the_step_after_the_pause() {
    for timeout in [MINUTE, Duration::MAX] {
        for payload in [b"x".to_vec(), vec![b'x'; 100_000]] {
            let mut world = World::new(Scripted::waits_for(&["a", "k"], timeout));
            let (runtime, running) = paused_wait(&world).await;
            assert_eq!(runtime.signal("k", payload.clone()).await.unwrap(), SignalOutcome::Delivered);
            assert_eq!(runtime.signal("k", b"next".to_vec()).await.unwrap(), SignalOutcome::Buffered);
            assert_eq!(runtime.clear_signal("k").await.unwrap(), 1);
            is_held_back(&world, &runtime).await;
            running.shutdown().await.unwrap();
            world.crash();
            let (runtime, _running) = world.running();
            is_held_back(&world, &runtime).await;
            assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
            let expected = format!("k={}", String::from_utf8(payload).unwrap());
            assert_eq!(result_of(&runtime, RUN).await, expected);
            assert_eq!(world.calls(), [(0, 1), (1, 1)]);
            world.stop();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_time_and_what_comes_later_is_too_late() {
    let mut world = World::new(Scripted::waits_for(&["k"], MINUTE));
    let (runtime, running) = paused_wait(&world).await;
    tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().phase, RunPhase::Ready);
    assert_eq!(runtime.signal("k", b"late".to_vec()).await.unwrap(), SignalOutcome::Buffered);
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 1);
    is_held_back(&world, &runtime).await;
    running.shutdown().await.unwrap();
    world.crash();
    let (runtime, _running) = world.running();
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    assert_eq!(result_of(&runtime, RUN).await, "-");
    assert_eq!(world.calls(), [(0, 1), (1, 1)]);
}

/// Nobody was there when the wait ended, nor when the run was resumed.
#[tokio::test(start_paused = true)]
async fn a_wait_that_ended_while_no_process_ran_ends_without_a_signal() {
    let mut world = World::new(Scripted::waits_for(&["k"], MINUTE));
    let (_, running) = paused_wait(&world).await;
    running.shutdown().await.unwrap();
    world.crash();
    tokio::time::sleep(5 * MINUTE).await;
    let runtime = world.runtime();
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    let _running = runtime.spawn(std::future::pending());
    assert_eq!(result_of(&runtime, RUN).await, "-");
    settle_down().await;
    assert_eq!((world.calls(), world.disk.jobs()), (vec![(0, 1), (1, 1)], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_is_cancelled_wherever_it_is() {
    for what in ["waits", "signalled", "timed out"] {
        let world = World::new(Scripted::waits_for(&["k"], MINUTE));
        let (runtime, _running) = paused_wait(&world).await;
        match what {
            "signalled" => drop(runtime.signal("k", vec![7; 100_000]).await.unwrap()),
            "timed out" => tokio::time::sleep(2 * MINUTE).await,
            _ => {}
        }
        assert_eq!(runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap(), CancelOutcome::Ended, "{what}");
        tokio::time::sleep(2 * MINUTE).await;
        let end = runtime.run_end(RUN).await.unwrap().unwrap();
        assert_eq!((end.status, world.hook.ends()), (TerminalStatus::Cancelled, vec![end]));
        assert_eq!((world.calls(), world.disk.jobs(), world.rows("signal")), (vec![(0, 1)], vec![], 0), "{what}");
        world.stop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_paused_at_each_step_goes_through_all_of_them() {
    let world = World::new(Scripted::new(|step| async move {
        Ok(match step.step_number {
            10 => StepOutcome::Succeed { result: b"done".to_vec() },
            number if number % 2 == 0 => StepOutcome::continue_on_signal(step.payload, "k", Duration::MAX),
            _ => StepOutcome::continue_after(step.payload, MINUTE),
        })
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for step in 1..=10 {
        until(&runtime, RUN, |status| status.step == step).await;
        assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
        if step % 2 == 1 {
            assert_eq!(runtime.signal("k", Vec::new()).await.unwrap(), SignalOutcome::Delivered);
        }
        tokio::time::sleep(MINUTE / 2).await;
        assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    }
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), (0..=10).map(|step| (step, 1)).collect::<Vec<_>>());
}

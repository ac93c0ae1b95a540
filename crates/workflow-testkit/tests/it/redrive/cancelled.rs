//! A run that was cancelled goes on as if it had not been: it waits for what it waited for.

use std::time::{Duration, SystemTime};

use workflow_runtime::port::Clock;
use workflow_runtime::{
    Error, RedriveOptions, RunPhase, RunSpec, RunState, SignalOutcome, StepError, StepOutcome, TerminalStatus,
};

use super::redrive;
use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

fn succeeds() -> Scripted {
    Scripted::new(|_| async { Ok(StepOutcome::Succeed { result: b"done".to_vec() }) })
}

async fn cancel(runtime: &Runtime) {
    runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap();
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_queued() {
    let world = World::new(succeeds());
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    cancel(&runtime).await;
    redrive(&runtime).await;
    let _running = runtime.spawn(std::future::pending());
    assert_eq!(result_of(&runtime, RUN).await, "done");
    settle_down().await;
    assert_eq!((world.calls(), world.disk.jobs()), (vec![(0, 1)], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_delayed_starts_at_its_time_or_at_once_if_it_has_come() {
    for brought_back_after in [MINUTE, 20 * MINUTE] {
        let world = World::new(succeeds());
        let (runtime, _running) = world.running();
        let now = || SystemTime::from(world.disk.clock().now());
        let run_at = now() + 10 * MINUTE;
        let spec = RunSpec { run_id: Some(RUN.to_owned()), run_at: Some(run_at), ..RunSpec::default() };
        runtime.submit(spec).await.unwrap();
        cancel(&runtime).await;
        tokio::time::sleep(brought_back_after).await;
        assert_eq!(world.disk.jobs(), []);
        redrive(&runtime).await;
        let brought_back = now();
        assert_eq!(result_of(&runtime, RUN).await, "done");
        let late = now().duration_since(run_at.max(brought_back)).unwrap();
        assert!(late < Duration::from_secs(1), "{late:?}");
    }
}

/// Its pause after a failure is not waited for again, and its attempts begin again.
#[tokio::test(start_paused = true)]
async fn a_run_that_backed_off_starts_at_once_with_its_first_attempt() {
    let world = World::new(Scripted::new(|_| async { Err(StepError::transient("no").retry_after(60 * MINUTE)) }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for calls in 1..4 {
        until(&runtime, RUN, |status| matches!(status.phase, RunPhase::BackingOff { .. })).await;
        assert_eq!(world.calls(), vec![(0, 1); calls]);
        cancel(&runtime).await;
        redrive(&runtime).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_executing_executes_again_and_so_does_one_that_gave_up() {
    let world = World::new(Scripted::new(|step| async move {
        step.effects.put("staged", "")?;
        step.cancel_token.cancelled().await;
        Ok(StepOutcome::Succeed { result: Vec::new() })
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for calls in 1..4 {
        world.until_called(calls).await;
        cancel(&runtime).await;
        redrive(&runtime).await;
    }
    let gives_up = World::new(Scripted::new(|_| async { Ok(StepOutcome::Cancel { reason: "mine".to_owned() }) }));
    let (runtime, _running) = gives_up.running();
    submit(&runtime, RUN).await;
    for calls in 1..4 {
        assert_eq!(runtime.wait(RUN).await.unwrap().error.as_deref(), Some("mine"));
        assert_eq!(gives_up.calls(), vec![(0, 1); calls]);
        redrive(&runtime).await;
    }
}

/// A run that waited and was cancelled.
async fn cancelled_wait(world: &World) -> (Runtime, workflow_runtime::RunnerHandle) {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    cancel(&runtime).await;
    assert_eq!(world.rows("signal"), 0);
    (runtime, running)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waited_waits_again_until_its_time() {
    for (timeout, ends) in [(MINUTE, true), (Duration::MAX, false)] {
        let world = World::new(Scripted::waits_for(&["a", "b"], timeout));
        let start = tokio::time::Instant::now();
        let (runtime, _running) = cancelled_wait(&world).await;
        tokio::time::sleep(MINUTE / 2).await;
        redrive(&runtime).await;
        until_it_waits(&runtime, RUN).await;
        assert_eq!(world.rows("signal"), 2);
        if ends {
            assert_eq!(result_of(&runtime, RUN).await, "-");
            assert!(start.elapsed() < MINUTE + Duration::from_secs(1), "its time is the first one");
        } else {
            assert_eq!(runtime.signal("b", b"x".to_vec()).await.unwrap(), SignalOutcome::Delivered);
            assert_eq!(result_of(&runtime, RUN).await, "b=x");
        }
        settle_down().await;
        assert_eq!((world.calls(), world.disk.jobs()), (vec![(0, 1), (1, 1)], vec![]));
        assert_eq!(world.rows("signal"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_whose_time_has_come_is_over_and_takes_what_is_buffered_first() {
    for (sent, result) in [(false, "-"), (true, "b=x")] {
        let world = World::new(Scripted::waits_for(&["a", "b"], MINUTE));
        let (runtime, _running) = cancelled_wait(&world).await;
        tokio::time::sleep(2 * MINUTE).await;
        if sent {
            assert_eq!(runtime.signal("b", b"x".to_vec()).await.unwrap(), SignalOutcome::Buffered);
        }
        redrive(&runtime).await;
        assert_eq!(result_of(&runtime, RUN).await, result);
        settle_down().await;
        assert_eq!((world.rows("signal"), world.rows("signal-item"), world.disk.jobs()), (0, 0, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_came_meanwhile_is_taken_with_the_redrive() {
    for payload in [b"x".to_vec(), vec![b'x'; 100_000]] {
        let mut world = World::new(Scripted::waits_for(&["a", "b"], Duration::MAX));
        let (runtime, running) = cancelled_wait(&world).await;
        for payload in [payload.clone(), b"later".to_vec()] {
            assert_eq!(runtime.signal("b", payload).await.unwrap(), SignalOutcome::Buffered);
        }
        running.shutdown().await.unwrap();
        redrive(&runtime).await;
        let status = runtime.status(RUN).await.unwrap().unwrap();
        assert_eq!((status.state, status.phase), (RunState::Active, RunPhase::Ready));
        assert_eq!(world.rows("signal-item"), 1, "the oldest is taken with the redrive");
        world.crash();
        let (runtime, _running) = world.running();
        let result = result_of(&runtime, RUN).await;
        assert_eq!(result, format!("b={}", String::from_utf8(payload).unwrap()));
        assert_eq!(runtime.clear_signal("b").await.unwrap(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_another_run_waits_for_keeps_the_run_from_coming_back() {
    let world = World::new(Scripted::waits_for(&["a", "b"], Duration::MAX));
    let (runtime, _running) = cancelled_wait(&world).await;
    submit(&runtime, "other").await;
    until_it_waits(&runtime, "other").await;
    settle_down().await;
    let entries = world.disk.entries();
    for payload in [None, Some(b"new".to_vec()), Some(vec![7; 100_000])] {
        let options = RedriveOptions { payload, ..RedriveOptions::default() };
        let error = runtime.redrive(RUN, options).await.unwrap_err();
        assert!(matches!(&error, Error::KeyTaken(run_id) if run_id == RUN) && !error.is_permanent(), "{error:?}");
    }
    settle_down().await;
    let rows = |entries: Vec<(bytes::Bytes, bytes::Bytes)>| {
        entries.into_iter().filter(|(key, _)| !key.starts_with(b"workflow/workflow-steps/objects/")).collect::<Vec<_>>()
    };
    assert_eq!(rows(world.disk.entries()), rows(entries));
    assert_eq!(world.objects().await, 0, "a payload that nothing names is gone");
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().state, RunState::Cancelled);
    runtime.signal("a", b"other".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, "other").await, "a=other");
    redrive(&runtime).await;
    until_it_waits(&runtime, RUN).await;
    runtime.signal("a", b"own".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "a=own");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_paused_comes_back_without_the_pause() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    runtime.pause(RUN).await.unwrap();
    cancel(&runtime).await;
    redrive(&runtime).await;
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().state, RunState::Waiting);
    runtime.signal("k", b"x".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "k=x");
}

#[tokio::test(start_paused = true)]
async fn a_redriven_run_can_be_cancelled_and_brought_back_again_and_again() {
    let world = World::new(Scripted::waits_for(&["k"], MINUTE));
    let (runtime, _running) = cancelled_wait(&world).await;
    for redrives in 1..20 {
        redrive(&runtime).await;
        until_it_waits(&runtime, RUN).await;
        assert_eq!(runtime.status(RUN).await.unwrap().unwrap().redrives, redrives);
        cancel(&runtime).await;
    }
    settle_down().await;
    assert_eq!((world.disk.jobs(), world.rows("signal"), world.hook.ends().len()), (vec![], 0, 20));
}

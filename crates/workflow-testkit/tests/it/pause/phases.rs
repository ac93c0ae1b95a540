//! A run that is paused stays as it is, whatever happens, and goes on from there.

use std::time::Duration;

use workflow_runtime::{
    Error, PauseOutcome, ResumeOutcome, RunFilter, RunPhase, RunSpec, RunState, StepError, StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

/// A run that a pause finds idle.
struct Idle {
    world: World,
    /// When its next step may start, counted from its submission.
    due: Duration,
    phase: fn(&RunPhase) -> bool,
    /// What is called after all, as step and attempt.
    calls: &'static [(u32, u32)],
}

fn done() -> StepOutcome {
    StepOutcome::Succeed { result: b"done".to_vec() }
}

fn backs_off() -> Idle {
    let runner = Scripted::new(|step| async move {
        if step.attempts == 1 { Err(StepError::transient("no").retry_after(MINUTE)) } else { Ok(done()) }
    });
    let phase = |phase: &RunPhase| matches!(phase, RunPhase::BackingOff { .. });
    Idle { world: World::new(runner), due: MINUTE, phase, calls: &[(0, 1), (0, 2)] }
}

fn is_delayed() -> Idle {
    let runner = Scripted::new(|step| async move {
        Ok(if step.step_number == 0 { StepOutcome::continue_after(step.payload, MINUTE) } else { done() })
    });
    let phase = |phase: &RunPhase| matches!(phase, RunPhase::Delayed { .. });
    Idle { world: World::new(runner), due: MINUTE, phase, calls: &[(0, 1), (1, 1)] }
}

fn waits() -> Idle {
    let phase = |phase: &RunPhase| matches!(phase, RunPhase::Waiting { until: Some(_), .. });
    let runner = Scripted::waits_for(&["k"], MINUTE);
    Idle { world: World::new(runner), due: MINUTE, phase, calls: &[(0, 1), (1, 1)] }
}

/// Pauses the run once it is idle, and lets it go on before or after its time, in this process or the next one.
async fn check(idle: Idle, paused_for: Duration, reopens: bool) {
    let Idle { mut world, due, phase, calls } = idle;
    let (mut runtime, mut _running) = world.running();
    let start = tokio::time::Instant::now();
    submit(&runtime, RUN).await;
    let before = until(&runtime, RUN, |status| phase(&status.phase)).await;
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, status.phase, status.step), (RunState::Paused, before.phase, before.step));
    assert!(status.since >= before.since);
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    if reopens {
        _running.shutdown().await.unwrap();
        world.crash();
        (runtime, _running) = world.running();
    }
    tokio::time::sleep(paused_for).await;
    assert_eq!(world.calls(), calls[..1], "nothing starts");
    let later = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((later.state, later.since), (RunState::Paused, status.since));
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    let resumed = start.elapsed();
    assert!(["done", "-"].contains(&&*result_of(&runtime, RUN).await));
    let took = start.elapsed();
    let at = due.max(resumed);
    assert!(at <= took && took < at + Duration::from_secs(1), "due at {at:?}, ended at {took:?}");
    assert_eq!(world.calls(), calls);
    settle_down().await;
    assert_eq!(world.disk.jobs(), []);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_backs_off_is_delayed_or_waits_goes_on_as_if_it_had_not_been_paused() {
    for idle in [backs_off, is_delayed, waits] {
        for paused_for in [MINUTE / 2, 5 * MINUTE] {
            for reopens in [false, true] {
                check(idle(), paused_for, reopens).await;
            }
        }
    }
}

/// Pauses a run that nobody has claimed, and starts a loop before or after it goes on.
async fn check_queued(is_early: bool, reopens: bool) {
    let mut world = World::new(Scripted::new(|_| async { Ok(done()) }));
    let mut runtime = world.runtime();
    submit(&runtime, RUN).await;
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    if reopens {
        world.crash();
        runtime = world.runtime();
    }
    let mut running = None;
    if is_early {
        running = Some(runtime.spawn(std::future::pending()));
        tokio::time::sleep(5 * MINUTE).await;
        assert_eq!((world.calls(), world.disk.jobs()), (vec![], vec![]), "its doorbell has rung for nothing");
    }
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    let _running = running.unwrap_or_else(|| runtime.spawn(std::future::pending()));
    assert_eq!(result_of(&runtime, RUN).await, "done");
    settle_down().await;
    assert_eq!((world.calls(), world.disk.jobs()), (vec![(0, 1)], vec![]));
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_queued_starts_once_it_is_resumed_with_its_first_attempt() {
    for is_early in [false, true] {
        for reopens in [false, true] {
            check_queued(is_early, reopens).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_to_start_later_does_not_start_before() {
    let world = World::new(Scripted::new(|_| async { Ok(done()) }));
    let (runtime, _running) = world.running();
    let now = || std::time::SystemTime::from(workflow_runtime::port::Clock::now(world.disk.clock()));
    let run_at = now() + 10 * MINUTE;
    let spec = RunSpec { run_id: Some(RUN.to_owned()), run_at: Some(run_at), ..RunSpec::default() };
    runtime.submit(spec).await.unwrap();
    for _ in 0..3 {
        assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
        tokio::time::sleep(MINUTE).await;
        assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
        assert_eq!(world.disk.jobs().len(), 1);
    }
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert!(now() >= run_at);
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_end_goes_on_waiting() {
    let mut world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until(&runtime, RUN, |status| status.state == RunState::Waiting).await;
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    running.shutdown().await.unwrap();
    world.crash();
    let (runtime, _running) = world.running();
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    tokio::time::sleep(MINUTE).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, world.disk.jobs().len()), (RunState::Waiting, 0));
    runtime.signal("k", b"now".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "k=now");
}

async fn counts(runtime: &Runtime) -> [u64; 4] {
    let mut counts = [0; 4];
    let states = [RunState::Active, RunState::Waiting, RunState::Paused, RunState::Succeeded];
    for (count, state) in counts.iter_mut().zip(states) {
        *count = runtime.count(RunFilter { state: Some(state), ..RunFilter::default() }).await.unwrap();
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_pause_and_its_end_move_the_run_among_the_listed() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until(&runtime, RUN, |status| status.state == RunState::Waiting).await;
    assert_eq!(counts(&runtime).await, [0, 1, 0, 0]);
    runtime.pause(RUN).await.unwrap();
    assert_eq!(counts(&runtime).await, [0, 0, 1, 0]);
    runtime.signal("k", b"x".to_vec()).await.unwrap();
    assert_eq!(counts(&runtime).await, [0, 0, 1, 0]);
    runtime.resume(RUN).await.unwrap();
    result_of(&runtime, RUN).await;
    assert_eq!(counts(&runtime).await, [0, 0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_answers_is_so() {
    let world = World::new(Scripted::new(|_| async { Ok(done()) }));
    let runtime = world.runtime();
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::NotFound);
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::NotFound);
    assert_eq!(world.disk.operations(), 0);
    for id in ["", "a/b", "..", &"x".repeat(129)] {
        let errors = [runtime.pause(id).await.unwrap_err(), runtime.resume(id).await.unwrap_err()];
        assert!(errors.iter().all(|error| matches!(error, Error::InvalidRunId { .. }) && error.is_permanent()));
    }
    submit(&runtime, RUN).await;
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::NotPaused);
    let _running = runtime.spawn(std::future::pending());
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!(end.status, TerminalStatus::Succeeded);
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::AlreadyEnded(end.clone()));
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::AlreadyEnded(end));
}

/// Of what is asked again nothing is written.
#[tokio::test(start_paused = true)]
async fn a_pause_and_a_resumption_are_a_commit_each() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until(&runtime, RUN, |status| status.state == RunState::Waiting).await;
    running.shutdown().await.unwrap();
    let before = world.disk.operations();
    for _ in 0..2 {
        assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    }
    assert_eq!(world.disk.operations(), before + 1);
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::NotPaused);
    assert_eq!(world.disk.operations(), before + 2);
}

//! A step that a pause finds in hand goes on to its end and commits; no other starts.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use workflow_runtime::{
    CancelOutcome, PauseOutcome, ResumeOutcome, RunPhase, RunState, RunnerHandle, StepError, StepOutcome,
    TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

type Answer = Result<StepOutcome, StepError>;

/// A world in which the first call answers so once it may, and every later one succeeds at once.
fn world(answer: impl Fn() -> Answer + Clone + Send + Sync + 'static) -> (World, Arc<Semaphore>) {
    let may = Arc::new(Semaphore::new(0));
    let (asked, first) = (may.clone(), Arc::new(Semaphore::new(1)));
    let runner = Scripted::new(move |step| {
        let (may, is_first, answer) =
            (asked.clone(), first.try_acquire().map(|one| one.forget()).is_ok(), answer.clone());
        async move {
            if !is_first {
                return Ok(StepOutcome::Succeed { result: b"done".to_vec() });
            }
            step.effects.put("staged", "")?;
            may.acquire().await.unwrap().forget();
            answer()
        }
    });
    (World::new(runner), may)
}

/// A run whose first step is in hand when it is paused.
async fn paused(world: &World) -> (Runtime, RunnerHandle) {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    world.until_called(1).await;
    for _ in 0..2 {
        assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Finishing);
    }
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().state, RunState::Paused);
    (runtime, running)
}

fn is_staged(world: &World) -> bool {
    world.disk.entries().iter().any(|(key, _)| &key[..] == b"staged")
}

/// The step in hand answers so during the pause; then `calls` follow it.
async fn check(answer: fn() -> Answer, counts: bool, calls: &[(u32, u32)]) {
    let (world, may) = world(answer);
    let (runtime, _running) = paused(&world).await;
    may.add_permits(1);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!((world.calls(), is_staged(&world)), (vec![(0, 1)], counts));
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, status.step), (RunState::Paused, u32::from(counts)));
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), calls);
    settle_down().await;
    assert_eq!(world.disk.jobs(), []);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn whatever_the_step_in_hand_answers_is_committed_and_nothing_follows_before_the_run_is_resumed() {
    check(|| Ok(StepOutcome::continue_now(Vec::new())), true, &[(0, 1), (1, 1)]).await;
    check(|| Ok(StepOutcome::continue_after(Vec::new(), MINUTE)), true, &[(0, 1), (1, 1)]).await;
    check(|| Ok(StepOutcome::continue_on_signal(Vec::new(), "k", MINUTE)), true, &[(0, 1), (1, 1)]).await;
    check(|| Err(StepError::transient("again").retry_after(MINUTE)), false, &[(0, 1), (0, 2)]).await;
    check(|| panic!("again"), false, &[(0, 1), (0, 2)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_ends_its_run_ends_it_all_the_same() {
    let answers: [(fn() -> Answer, _); 4] = [
        (|| Ok(StepOutcome::Succeed { result: Vec::new() }), TerminalStatus::Succeeded),
        (|| Ok(StepOutcome::Fail { reason: "no".to_owned() }), TerminalStatus::Failed),
        (|| Ok(StepOutcome::Cancel { reason: "no".to_owned() }), TerminalStatus::Cancelled),
        (|| Err(StepError::permanent("no")), TerminalStatus::Failed),
    ];
    for (answer, status) in answers {
        let (world, may) = world(answer);
        let (runtime, _running) = paused(&world).await;
        may.add_permits(1);
        let end = runtime.wait(RUN).await.unwrap();
        settle_down().await;
        assert_eq!((end.status, world.hook.ends()), (status, vec![end]));
        world.stop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_run_is_resumed_before_it_ends_goes_on_undisturbed() {
    let (world, may) = world(|| Ok(StepOutcome::continue_now(Vec::new())));
    let (runtime, _running) = paused(&world).await;
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.calls(), [(0, 1)]);
    may.add_permits(1);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), [(0, 1), (1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_handed_back_at_the_shutdown_costs_no_attempt() {
    let (world, _may) = world(|| Ok(StepOutcome::continue_now(Vec::new())));
    let (runtime, running) = paused(&world).await;
    running.shutdown().await.unwrap();
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    let _running = runtime.spawn(std::future::pending());
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.calls(), world.disk.jobs()), (vec![(0, 1)], vec![]));
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), [(0, 1), (0, 1)]);
}

/// Two processes die in the step, the second of them after the run was resumed. The pause in between costs nothing.
#[tokio::test(start_paused = true)]
async fn a_step_that_dies_with_its_process_comes_back_once_the_run_is_resumed() {
    let (mut world, _may) = world(|| Ok(StepOutcome::continue_now(Vec::new())));
    paused(&world).await;
    for _ in 0..3 {
        world.crash();
        let (runtime, _running) = world.running();
        tokio::time::sleep(5 * MINUTE).await;
        assert_eq!((world.calls().len(), world.disk.jobs()), (1, vec![]));
        assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    }
    let (runtime, _running) = world.running();
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), [(0, 1), (0, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_a_paused_run() {
    let (world, may) = world(|| Ok(StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX)));
    let (runtime, _running) = paused(&world).await;
    may.add_permits(1);
    until(&runtime, RUN, |status| matches!(status.phase, RunPhase::Waiting { .. })).await;
    assert_eq!(runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap(), CancelOutcome::Ended);
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!((end.status, end.error.as_deref()), (TerminalStatus::Cancelled, Some("enough")));
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::AlreadyEnded(end.clone()));
    settle_down().await;
    assert_eq!((world.rows("signal"), world.disk.jobs(), world.hook.ends()), (0, vec![], vec![end]));
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_stops_the_step_that_a_pause_lets_finish() {
    let (world, may) = world(|| Ok(StepOutcome::continue_now(Vec::new())));
    let (runtime, _running) = paused(&world).await;
    assert_eq!(runtime.cancel(RUN, None).await.unwrap(), CancelOutcome::Requested);
    assert_eq!(runtime.resume(RUN).await.unwrap(), ResumeOutcome::NotPaused, "it goes on to its end");
    may.add_permits(1);
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Cancelled);
    settle_down().await;
    assert_eq!((world.calls(), is_staged(&world), world.disk.jobs()), (vec![(0, 1)], false, vec![]));
}

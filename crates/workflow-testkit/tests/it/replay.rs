//! What is promised of outcomes that are written down before their commits: after a crash in between they are applied,
//! and the step is not executed again.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt};
use workflow_core::RunId;
use workflow_effects::decode_outcome_row;
use workflow_runtime::port::{Commit, KvStore};
use workflow_runtime::{
    CancelOutcome, HistoryLevel, PauseOutcome, RunState, SignalOutcome, StepError, StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, text_of, until};

const MINUTE: Duration = Duration::from_secs(60);
const LARGE: usize = 100_000;

/// How step 1 answers. The others follow at once, and the run succeeds with what signal it has.
type Answer = fn() -> StepOutcome;

/// A world in which step 1 may be attempted once, answers so, and stages the number of its call, `ballast` bytes long.
fn world(answer: Answer, ballast: usize) -> World {
    let calls = Arc::new(AtomicUsize::new(0));
    let runner = Scripted::new(move |step| {
        let call = if step.step_number == 1 { calls.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        async move {
            match step.step_number {
                0 => Ok(StepOutcome::continue_now(step.payload)),
                1 => {
                    step.effects.put("call", call.to_string())?;
                    for part in 0..ballast.div_ceil(200_000) {
                        step.effects.put(format!("ballast/{part}"), vec![7; 200_000.min(ballast)])?;
                    }
                    Ok::<_, StepError>(answer())
                }
                _ => Ok(StepOutcome::Succeed { result: text_of(&step).into() }),
            }
        }
    });
    World::new(runner).with(|s| (s.replay, s.retention, s.max_attempts_per_step) = (true, Some(2 * MINUTE), 1))
}

/// How often step 1 was called.
fn calls(world: &World) -> usize {
    world.calls().iter().filter(|(step, _)| *step == 1).count()
}

/// The call of step 1 whose effects were applied.
fn applied(world: &World) -> Option<String> {
    let entries = world.disk.entries();
    let (_, value) = entries.iter().find(|(key, _)| &key[..] == b"call")?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

/// The row of the outcome that is written down, if it is of step 1.
fn outcome_row(world: &World) -> Option<Bytes> {
    let entries = world.disk.entries();
    let (key, row) = entries.iter().find(|(key, _)| key.ends_with(b"/outcome"))?;
    let row = decode_outcome_row(&RunId::parse(RUN).unwrap(), row).unwrap();
    (row.attempt.step == 1).then(|| key.clone())
}

/// What a process that had power for so many operations has left, and whether it came to the end.
async fn died_after(operations: u64, mut world: World) -> (World, bool) {
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    world.disk.cut_power_after(operations);
    let is_done = tokio::select! {
        biased;
        ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
        () = world.disk.cut() => false,
        () = tokio::time::sleep(MINUTE / 2) => true,
    };
    world.crash();
    (world, is_done)
}

/// A world whose process died between writing the outcome of step 1 down and its commit.
async fn written(answer: Answer, ballast: usize) -> World {
    for operations in 0.. {
        let (world, is_done) = died_after(operations, world(answer, ballast)).await;
        assert!(!is_done, "nothing was written down before its commit");
        let status = world.runtime().status(RUN).await.unwrap().unwrap();
        if outcome_row(&world).is_some() && (status.step, status.state) == (1, RunState::Active) {
            assert_eq!((calls(&world), applied(&world)), (1, None));
            return world;
        }
    }
    unreachable!("some operation is the last")
}

/// The outcome was applied as it was, step 1 was not called again, and nothing is left in the end.
async fn check_applied(world: &World, runtime: &Runtime) {
    settle_down().await;
    assert_eq!((calls(world), applied(world).as_deref()), (1, Some("1")));
    let end = runtime.wait(RUN).await.unwrap();
    settle_down().await;
    assert_eq!(world.hook.ends(), [end]);
    tokio::time::sleep(4 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
    world.stop();
}

/// The run ends so, with this result or error.
async fn check_end(answer: Answer, ballast: usize, status: TerminalStatus, said: &str) {
    let world = written(answer, ballast).await;
    let (runtime, _running) = world.running();
    let end = runtime.wait(RUN).await.unwrap();
    let told = end.error.or_else(|| end.result.map(|result| String::from_utf8(result).unwrap()));
    assert_eq!((end.status, told.as_deref()), (status, Some(said)));
    check_applied(&world, &runtime).await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_written_down_is_applied_with_what_was_staged() {
    let succeeds = TerminalStatus::Succeeded;
    check_end(|| StepOutcome::Succeed { result: b"done".to_vec() }, 0, succeeds, "done").await;
    check_end(|| StepOutcome::Succeed { result: vec![b'x'; LARGE] }, 0, succeeds, &"x".repeat(LARGE)).await;
    check_end(|| StepOutcome::Succeed { result: b"done".to_vec() }, 400_000, succeeds, "done").await;
    check_end(|| StepOutcome::Fail { reason: "no".to_owned() }, 0, TerminalStatus::Failed, "no").await;
    check_end(|| StepOutcome::Cancel { reason: "no".to_owned() }, 0, TerminalStatus::Cancelled, "no").await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_was_to_follow_at_once_does() {
    check_end(|| StepOutcome::continue_now(b"next".to_vec()), 0, TerminalStatus::Succeeded, "-").await;
    check_end(|| StepOutcome::continue_now(vec![7; LARGE]), 0, TerminalStatus::Succeeded, "-").await;
}

/// The delay counts from the answer that was written down, not from its replay.
#[tokio::test(start_paused = true)]
async fn a_delay_is_shorter_by_the_age_of_the_answer() {
    for (died_for, left) in [(MINUTE * 2 / 3, MINUTE / 3), (5 * MINUTE, Duration::ZERO)] {
        let world = written(|| StepOutcome::continue_after(Vec::new(), MINUTE), 0).await;
        tokio::time::sleep(died_for).await;
        let (runtime, _running) = world.running();
        let start = tokio::time::Instant::now();
        assert_eq!(result_of(&runtime, RUN).await, "-");
        assert!(start.elapsed().abs_diff(left) < Duration::from_secs(1), "{:?}", start.elapsed());
        check_applied(&world, &runtime).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_takes_what_came_meanwhile_or_ends_at_its_first_time() {
    let waits: Answer = || StepOutcome::continue_on_signal(Vec::new(), "k", MINUTE);
    for (died_for, signal, result) in [(MINUTE / 2, true, "k=x"), (MINUTE / 2, false, "-"), (5 * MINUTE, false, "-")] {
        let world = written(waits, 0).await;
        tokio::time::sleep(died_for).await;
        let runtime = world.runtime();
        if signal {
            assert_eq!(runtime.signal("k", b"x".to_vec()).await.unwrap(), SignalOutcome::Buffered);
        }
        let start = tokio::time::Instant::now();
        let _running = runtime.spawn(pending());
        assert_eq!(result_of(&runtime, RUN).await, result);
        assert!(start.elapsed() <= MINUTE / 2 + Duration::from_secs(1), "{:?}", start.elapsed());
        check_applied(&world, &runtime).await;
    }
}

/// The outcome that was written down waits for a key that another run waits for by now: that ends the run as it would
/// have without a crash.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_key_that_was_taken_meanwhile_fails_its_run() {
    let world = written(|| StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX), 0).await;
    let other = World { runner: Scripted::waits_for(&["k"], Duration::MAX), ..world };
    let runtime = other.runtime();
    submit(&runtime, "other").await;
    let (runtime, _running) = other.running();
    // Both wait for the same: the first one to be delivered gets it.
    settle_down().await;
    let ended = runtime.run_end(RUN).await.unwrap();
    let waits = runtime.status("other").await.unwrap().unwrap().state == RunState::Waiting;
    assert_eq!(ended.is_some(), waits, "one of the two waits");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_paused_meanwhile_moves_on_and_starts_nothing() {
    let world = written(|| StepOutcome::continue_now(Vec::new()), 0).await;
    let runtime = world.runtime();
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Paused);
    let _running = runtime.spawn(pending());
    tokio::time::sleep(MINUTE).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, status.step, applied(&world).as_deref()), (RunState::Paused, 2, Some("1")));
    runtime.resume(RUN).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "-");
    check_applied(&world, &runtime).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_cancelled_meanwhile_ends_as_it_is() {
    let world = written(|| StepOutcome::continue_now(vec![7; LARGE]), 0).await;
    let runtime = world.runtime();
    assert_eq!(runtime.cancel(RUN, None).await.unwrap(), CancelOutcome::Ended);
    let _running = runtime.spawn(pending());
    tokio::time::sleep(MINUTE).await;
    assert_eq!((calls(&world), applied(&world)), (1, None));
    tokio::time::sleep(4 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// Whatever power a process has, a step whose outcome is written down is not called again.
#[tokio::test(start_paused = true)]
async fn a_step_is_called_once_after_its_outcome_was_written_down() {
    for history in [HistoryLevel::Ends, HistoryLevel::Full] {
        let mut again = 0;
        for operations in 0.. {
            let mut world = world(|| StepOutcome::continue_now(vec![7; LARGE]), 100_000);
            (world.settings.history, world.settings.max_attempts_per_step) = (history, 5);
            let (world, is_done) = died_after(operations, world).await;
            let (was_written, before) = (outcome_row(&world).is_some(), calls(&world));
            let (runtime, _running) = world.running();
            assert_eq!(result_of(&runtime, RUN).await, "-");
            assert!(!was_written || calls(&world) == before, "after {operations} operations");
            assert_eq!(applied(&world), Some(calls(&world).to_string()));
            again += calls(&world) - 1;
            world.stop();
            if is_done {
                break;
            }
        }
        assert!(again > 0, "no process died before it had written anything down");
    }
}

/// Without the setting, and with more than may be written down, nothing is, and the step is executed again.
async fn check_not_written(replay: bool, ballast: usize) {
    let mut again = 0;
    for operations in 0.. {
        let mut world = world(|| StepOutcome::continue_now(Vec::new()), ballast);
        (world.settings.replay, world.settings.max_attempts_per_step) = (replay, 5);
        let (world, is_done) = died_after(operations, world).await;
        assert_eq!(outcome_row(&world), None);
        let (runtime, _running) = world.running();
        assert_eq!(result_of(&runtime, RUN).await, "-");
        assert_eq!(applied(&world), Some(calls(&world).to_string()));
        again += calls(&world) - 1;
        world.stop();
        if is_done {
            break;
        }
    }
    assert!(again > 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_written_down_is_executed_again() {
    check_not_written(false, 0).await;
    check_not_written(true, 600_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_replays_no_more_executes_the_step_again() {
    let mut world = written(|| StepOutcome::continue_now(Vec::new()), 0).await;
    (world.settings.replay, world.settings.max_attempts_per_step) = (false, 5);
    let (runtime, _running) = world.running();
    // Its one attempt is used up.
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
    assert_eq!((calls(&world), applied(&world)), (1, None));
    tokio::time::sleep(4 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// The row of the outcome, or the object that holds the rest of it, does not read.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_does_not_read_counts_for_nothing() {
    for of_object in [false, true] {
        for operations in 0.. {
            let mut world = world(|| StepOutcome::continue_now(Vec::new()), 100_000);
            world.settings.max_attempts_per_step = 5;
            let (world, is_done) = died_after(operations, world).await;
            assert!(!is_done);
            let Some(key) = outcome_row(&world).filter(|_| applied(&world).is_none()) else { continue };
            if of_object {
                let prefix = object_store::path::Path::from("workflow-objects");
                let objects: Vec<_> =
                    futures::TryStreamExt::try_collect(world.objects.list(Some(&prefix))).await.unwrap();
                let [object]: [object_store::ObjectMeta; 1] = objects.try_into().unwrap();
                world.objects.delete(&object.location).await.unwrap();
            } else {
                let commit = Commit { puts: vec![(key, "none".into())], ..Commit::default() };
                assert!(world.queue.commit(vec![commit]).await.iter().all(Result::is_ok));
            }
            let (runtime, _running) = world.running();
            assert_eq!(result_of(&runtime, RUN).await, "-");
            assert_eq!((calls(&world), applied(&world).as_deref()), (2, Some("2")));
            tokio::time::sleep(4 * MINUTE).await;
            assert_eq!(world.leftovers().await, Vec::<String>::new());
            break;
        }
    }
}

/// The run is brought back, and its step executed again: what the first time wrote down is of that time.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_executed_again_after_a_redrive_is_not_replayed() {
    let world = world(|| StepOutcome::Fail { reason: "no".to_owned() }, 0);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for times in 1..4 {
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
        assert_eq!((calls(&world), applied(&world)), (times, Some(times.to_string())));
        runtime.redrive(RUN, Default::default()).await.unwrap();
    }
    until(&runtime, RUN, |status| status.state == RunState::Failed).await;
}

//! Steps run ahead of their commits, and whatever leaves the run waits for them.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::Semaphore;
use workflow_runtime::{
    CancelOutcome, CommitMode, HistoryLevel, PauseOutcome, RunState, Step, StepError, StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

fn go_on() -> StepOutcome {
    StepOutcome::continue_now(Vec::new())
}

fn done() -> StepOutcome {
    StepOutcome::Succeed { result: b"done".to_vec() }
}

fn pipelined(runner: Scripted) -> World {
    World::new(runner).with(|settings| settings.commit_mode = CommitMode::Pipelined)
}

/// A run of `steps` steps; `last` is asked of the last.
fn world<F>(steps: u32, last: impl Fn(Step) -> F + Clone + Send + Sync + 'static) -> World
where
    F: Future<Output = Result<StepOutcome, StepError>> + Send + 'static,
{
    pipelined(Scripted::new(move |step| {
        let last = last.clone();
        async move {
            if step.step_number + 1 < steps {
                step.effects.put(format!("step/{}", step.step_number), "was here")?;
                return Ok(go_on());
            }
            last(step).await
        }
    }))
}

/// Lets the steps run while nothing becomes durable any more.
async fn run_ahead(world: &World, runtime: &Runtime) {
    submit(runtime, RUN).await;
    world.disk.hold();
    settle_down().await;
}

async fn step_of(runtime: &Runtime) -> u32 {
    runtime.status(RUN).await.unwrap().unwrap().step
}

#[tokio::test(start_paused = true)]
async fn steps_start_before_their_predecessors_are_durable_and_a_crash_undoes_the_last() {
    let mut world = world(8, |_| async { Ok(done()) });
    let (runtime, _running) = world.running();
    run_ahead(&world, &runtime).await;
    assert_eq!(world.calls(), (0..8).map(|step| (step, 1)).collect::<Vec<_>>());
    assert!(runtime.status(RUN).now_or_never().is_none(), "nobody is told of what is not durable");
    world.crash();
    let (runtime, _running) = world.running();
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls()[8..10], [(0, 2), (1, 1)]);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_flight_commits_as_one() {
    let world = world(50, |_| async { Ok(done()) });
    let (runtime, _running) = world.running();
    run_ahead(&world, &runtime).await;
    let before = world.disk.operations();
    world.disk.release();
    assert_eq!(result_of(&runtime, RUN).await, "done");
    // The flights, the end, and the acknowledgement.
    assert!(world.disk.operations() - before <= 5, "{} operations", world.disk.operations() - before);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_step_sees_what_earlier_steps_of_its_run_have_put() {
    let world = world(4, |step| async move {
        let found = step.kv.get(b"step/2").await?.unwrap_or_default();
        let mut entries = std::pin::pin!(step.kv.scan(b"step/"));
        let mut count = 0;
        while let Some(entry) = entries.next().await {
            entry?;
            count += 1;
        }
        step.sync().await?;
        Ok(StepOutcome::Succeed { result: format!("{count} {}", String::from_utf8_lossy(&found)).into() })
    });
    let (runtime, _running) = world.running();
    run_ahead(&world, &runtime).await;
    assert_eq!(world.calls().len(), 4);
    world.disk.release();
    assert_eq!(result_of(&runtime, RUN).await, "3 was here");
    world.stop();
}

/// The last step does `what` and then tells that it has; it has not before the steps before it are durable.
async fn waits<F>(what: impl Fn(Step) -> F + Clone + Send + Sync + 'static)
where
    F: Future<Output = Result<(), StepError>> + Send + 'static,
{
    let passed = Arc::new(Semaphore::new(0));
    let tell = passed.clone();
    let world = world(4, move |step| {
        let (what, tell) = (what.clone(), tell.clone());
        async move {
            what(step).await?;
            tell.add_permits(1);
            Ok(done())
        }
    });
    let (runtime, _running) = world.running();
    run_ahead(&world, &runtime).await;
    assert_eq!((world.calls().len(), passed.available_permits()), (4, 0));
    world.disk.release();
    passed.acquire().await.unwrap().forget();
    assert_eq!(step_of(&runtime).await, 3);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_sync_and_a_memo_wait_for_the_steps_before() {
    waits(|step| async move { Ok(step.sync().await?) }).await;
    waits(|step| async move { Ok(step.memo.put("key", b"value").await?) }).await;
    waits(|step| async move { Ok(step.run_memo.put("key", b"value").await?) }).await;
}

#[tokio::test(start_paused = true)]
async fn with_strict_commits_a_sync_waits_for_nothing() {
    let runner = Scripted::new(|step| async move {
        step.sync().await?;
        Ok(if step.step_number < 3 { go_on() } else { done() })
    });
    let world = World::new(runner);
    let (runtime, _running) = world.running();
    run_ahead(&world, &runtime).await;
    assert_eq!(world.calls(), [(0, 1)]);
    world.disk.release();
    assert_eq!(result_of(&runtime, RUN).await, "done");
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_on_at_once_lets_the_steps_before_it_land() {
    let check = async |answer: fn() -> StepOutcome, calls: &[(u32, u32)]| {
        let world = world(3, move |_| async move { Ok(answer()) });
        let (runtime, _running) = world.running();
        run_ahead(&world, &runtime).await;
        assert_eq!(world.calls(), [(0, 1), (1, 1), (2, 1)]);
        world.disk.release();
        until(&runtime, RUN, |status| status.step == 3 || status.state == RunState::Failed).await;
        assert_eq!(world.calls(), calls);
        world.stop();
    };
    check(|| StepOutcome::continue_after(Vec::new(), MINUTE), &[(0, 1), (1, 1), (2, 1)]).await;
    check(|| StepOutcome::continue_on_signal(Vec::new(), "k", MINUTE), &[(0, 1), (1, 1), (2, 1)]).await;
    check(|| StepOutcome::Fail { reason: "no".to_owned() }, &[(0, 1), (1, 1), (2, 1)]).await;
    let world =
        world(
            3,
            |step| async move { if step.attempts == 1 { Err(StepError::transient("again")) } else { Ok(done()) } },
        );
    let (runtime, _running) = world.running();
    assert_eq!(submit(&runtime, RUN).await.run_id, RUN);
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), [(0, 1), (1, 1), (2, 1), (2, 2)]);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn large_payloads_commit_one_by_one() {
    let gate = Arc::new(Semaphore::new(0));
    let asked = gate.clone();
    let large = || StepOutcome::continue_now(vec![b'x'; 1_000]);
    let runner = Scripted::new(move |step| {
        let gate = asked.clone();
        async move {
            Ok(match step.step_number {
                // The row that says that the run has objects is written before the first of them, and durable then.
                0 => large(),
                1 => go_on(),
                2 => {
                    gate.acquire().await.unwrap().forget();
                    large()
                }
                _ => done(),
            })
        }
    });
    let world = pipelined(runner).with(|settings| settings.inline_limit = 100);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    world.until_called(3).await;
    settle_down().await;
    world.disk.hold();
    gate.add_permits(1);
    settle_down().await;
    assert_eq!(world.calls(), [(0, 1), (1, 1), (2, 1)]);
    world.disk.release();
    assert_eq!(result_of(&runtime, RUN).await, "done");
    settle_down().await;
    assert_eq!(world.objects().await, 0, "what was superseded is deleted");
    world.stop();
}

/// A run that stands still in its last step with `waits` steps not durable, and the gate that lets the step go on.
async fn stands(steps: u32) -> (World, Runtime, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let asked = gate.clone();
    let world = world(steps, move |step| {
        let gate = asked.clone();
        async move {
            step.effects.put("paid", "")?;
            gate.acquire().await.unwrap().forget();
            Ok(go_on())
        }
    });
    let runtime = world.runtime();
    (world, runtime, gate)
}

#[tokio::test(start_paused = true)]
async fn a_cancel_undoes_what_has_not_landed() {
    let (world, runtime, _gate) = stands(6).await;
    let _running = runtime.spawn(std::future::pending());
    run_ahead(&world, &runtime).await;
    assert_eq!(world.calls().len(), 6);
    let cancel = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.cancel(RUN, None).await }
    });
    settle_down().await;
    world.disk.release();
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!(end.status, TerminalStatus::Cancelled);
    assert!(matches!(cancel.await.unwrap().unwrap(), CancelOutcome::Requested | CancelOutcome::Ended));
    let put = world.disk.entries().iter().filter(|(key, _)| key.starts_with(b"step/")).count();
    assert_eq!(put, end.final_step as usize, "as many steps have committed as the end tells of");
    settle_down().await;
    assert_eq!(world.disk.jobs(), []);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn what_a_step_returns_counts_that_only_durable_ones_precede_though_the_run_is_paused_meanwhile() {
    let gate = Arc::new(Semaphore::new(0));
    let asked = gate.clone();
    let world = pipelined(Scripted::new(move |step| {
        let gate = asked.clone();
        async move {
            if step.step_number == 2 {
                step.sync().await?;
                step.effects.put("paid", "")?;
                gate.acquire().await.unwrap().forget();
            }
            Ok(if step.step_number < 4 { go_on() } else { done() })
        }
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    world.until_called(3).await;
    settle_down().await;
    assert_eq!(runtime.pause(RUN).await.unwrap(), PauseOutcome::Finishing);
    gate.add_permits(1);
    settle_down().await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, status.step), (RunState::Paused, 3), "the step has committed");
    assert!(world.disk.entries().iter().any(|(key, _)| &key[..] == b"paid"));
    runtime.resume(RUN).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls().iter().filter(|(step, _)| *step == 2).count(), 1, "{:?}", world.calls());
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_follows_a_lost_one_gets_a_step_further_before_it_runs_ahead() {
    let mut world = world(4, |_| async { Ok(done()) });
    let (runtime, _running) = world.running();
    run_ahead(&world, &runtime).await;
    world.crash();
    let before = world.calls().len();
    let (_runtime, _running) = world.running();
    world.until_called(before + 1).await;
    world.disk.hold();
    settle_down().await;
    assert_eq!(world.calls()[before..], [(0, 2)]);
    world.disk.release();
    settle_down().await;
    assert_eq!(world.calls().len(), before + 4);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn the_history_tells_of_every_step_of_a_group() {
    let world = world(20, |_| async { Ok(done()) }).with(|settings| settings.history = HistoryLevel::Full);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    assert_eq!(result_of(&runtime, RUN).await, "done");
    let rows: Vec<_> = runtime.history(RUN).try_collect().await.unwrap();
    let steps: Vec<_> = rows.iter().map(|row: &workflow_runtime::HistoryEntry| row.step).collect();
    assert_eq!(steps, (0..20).collect::<Vec<_>>());
    world.stop();
}

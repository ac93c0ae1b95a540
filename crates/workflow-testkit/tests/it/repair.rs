//! What is promised to an operator who has removed the queue job of a run that goes on: it is missed, and rings again.

use std::future::pending;
use std::time::Duration;

use workflow_runtime::port::{Commit, JobId, JobState, KvStore};
use workflow_runtime::{RunPhase, RunState, StepError, StepOutcome};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, until, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Removes every job that waits, as an operator might.
fn remove_jobs(world: &World) -> usize {
    let waiting = world.disk.jobs().into_iter().filter(|(_, job)| job.state == JobState::Waiting);
    waiting.filter(|(job, _)| world.disk.remove_job(job)).count()
}

/// A script whose step 1 starts as `next` says, which ends as `done`.
fn then(next: fn() -> Result<StepOutcome, StepError>) -> Scripted {
    Scripted::new(move |step| async move {
        match (step.step_number, step.attempts) {
            (0, 1) => next(),
            _ => Ok(StepOutcome::Succeed { result: b"done".to_vec() }),
        }
    })
}

/// Removes the job of a run that is idle, with or without a loop that runs. It starts at its time or with the next look,
/// without a loss of attempts.
async fn check(runner: Scripted, due: Duration, is_running: bool, calls: &[(u32, u32)]) {
    let mut world = World::new(runner);
    let (mut runtime, running) = world.running();
    let mut running = Some(running);
    let start = tokio::time::Instant::now();
    submit(&runtime, RUN).await;
    world.until_called(1).await;
    until(&runtime, RUN, |status| status.phase != RunPhase::Ready).await;
    settle_down().await;
    if !is_running {
        running.take().unwrap().shutdown().await.unwrap();
        world.crash();
        runtime = world.runtime();
    }
    assert_eq!(remove_jobs(&world), 1);
    let _running = running.unwrap_or_else(|| runtime.spawn(pending()));
    assert_eq!(result_of(&runtime, RUN).await, "done");
    let took = start.elapsed();
    let look = if is_running { HOUR } else { Duration::ZERO };
    assert!(due <= took && took < due.max(look) + MINUTE, "{took:?}");
    settle_down().await;
    assert_eq!((world.calls(), world.disk.jobs()), (calls.to_vec(), vec![]));
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_job_is_gone_starts_at_its_time_or_with_the_next_look() {
    let (soon, calls) = (2 * MINUTE, [(0, 1), (1, 1)]);
    for is_running in [false, true] {
        check(then(|| Ok(StepOutcome::continue_after(vec![], 2 * MINUTE))), soon, is_running, &calls).await;
        let waits = || Ok(StepOutcome::continue_on_signal(vec![], "k", 2 * MINUTE));
        check(then(waits), soon, is_running, &calls).await;
        let fails = || Err(StepError::transient("no").retry_after(2 * MINUTE));
        check(then(fails), soon, is_running, &[(0, 1), (0, 2)]).await;
    }
    let late = 70 * MINUTE;
    check(then(|| Ok(StepOutcome::continue_after(vec![], 70 * MINUTE))), late, true, &calls).await;
}

#[tokio::test(start_paused = true)]
async fn runs_that_were_queued_start_however_many_there_are() {
    let world = World::without_hook(then(|| Ok(StepOutcome::Succeed { result: b"done".to_vec() })));
    let runtime = world.runtime();
    for number in 0..600 {
        submit(&runtime, &format!("run-{number}")).await;
    }
    assert_eq!(remove_jobs(&world), 600);
    let _running = runtime.spawn(pending());
    for number in 0..600 {
        assert_eq!(result_of(&runtime, &format!("run-{number}")).await, "done");
    }
    assert_eq!(world.calls(), vec![(0, 1); 600]);
}

/// A step whose job is removed while it executes has lost its lease, and is executed again.
#[tokio::test(start_paused = true)]
async fn a_run_whose_job_is_removed_while_its_step_executes_goes_on() {
    let world = World::new(Scripted::new(|step| async move {
        if step.attempts == 1 {
            pending::<()>().await;
        }
        Ok(StepOutcome::Succeed { result: b"done".to_vec() })
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    world.until_called(1).await;
    let job: JobId = world.disk.jobs()[0].0.clone();
    assert!(world.disk.remove_job(&job));
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert_eq!(world.calls(), [(0, 1), (0, 2)]);
}

/// Runs that need no job: one waits without end, one is paused.
async fn without_jobs(world: &World) -> Runtime {
    let (runtime, running) = world.running();
    for run_id in ["waits", "paused"] {
        submit(&runtime, run_id).await;
        until(&runtime, run_id, |status| status.state == RunState::Waiting || status.step == 1).await;
    }
    runtime.pause("paused").await.unwrap();
    settle_down().await;
    running.shutdown().await.unwrap();
    runtime
}

#[tokio::test(start_paused = true)]
async fn runs_that_need_no_job_are_left_alone() {
    let world = World::new(Scripted::new(|step| async move {
        Ok(match &*step.run_id {
            "waits" => StepOutcome::continue_on_signal(vec![], "k", Duration::MAX),
            _ => StepOutcome::continue_after(vec![], HOUR),
        })
    }));
    let runtime = without_jobs(&world).await;
    assert_eq!(remove_jobs(&world), 1);
    let running = runtime.spawn(pending());
    settle_down().await;
    running.shutdown().await.unwrap();
    let operations = world.disk.operations();
    let _running = runtime.spawn(pending());
    tokio::time::sleep(HOUR + MINUTE).await;
    assert_eq!((world.disk.operations(), world.disk.jobs()), (operations, vec![]));
    runtime.resume("paused").await.unwrap();
    until(&runtime, "paused", |status| status.step > 1).await;
}

/// A wait with an end is over at its time, whether its run is paused or not.
#[tokio::test(start_paused = true)]
async fn a_paused_wait_whose_job_is_gone_ends_at_its_time() {
    let world = World::new(Scripted::waits_for(&["k"], 2 * MINUTE));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    runtime.pause(RUN).await.unwrap();
    settle_down().await;
    running.shutdown().await.unwrap();
    assert_eq!(remove_jobs(&world), 1);
    let _running = runtime.spawn(pending());
    tokio::time::sleep(3 * MINUTE).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.state, status.phase), (RunState::Paused, RunPhase::Ready));
    runtime.resume(RUN).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "-");
}

#[tokio::test(start_paused = true)]
async fn nobody_looks_where_that_is_turned_off() {
    let world = World::new(then(|| Ok(StepOutcome::Succeed { result: b"done".to_vec() }))).with(|s| s.repair = false);
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    assert_eq!(remove_jobs(&world), 1);
    let running = runtime.spawn(pending());
    tokio::time::sleep(HOUR + MINUTE).await;
    assert_eq!(world.calls(), []);
    running.shutdown().await.unwrap();
    let repairing = world.with(|s| s.repair = true);
    let (runtime, _running) = repairing.running();
    assert_eq!(result_of(&runtime, RUN).await, "done");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_read_keeps_no_other_from_being_looked_at() {
    let world = World::new(then(|| Ok(StepOutcome::Succeed { result: b"done".to_vec() })));
    let runtime = world.runtime();
    for run_id in ["a", "b", "c"] {
        submit(&runtime, run_id).await;
    }
    let record = "workflow/workflow-steps/run/a".into();
    let commit = Commit { puts: vec![(record, "none".into())], ..Commit::default() };
    assert!(world.queue.commit(vec![commit]).await.iter().all(Result::is_ok));
    assert_eq!(remove_jobs(&world), 3);
    let _running = runtime.spawn(pending());
    for run_id in ["b", "c"] {
        assert_eq!(result_of(&runtime, run_id).await, "done");
    }
}

/// The run is to be cancelled, its step was in hand, and the process died: nobody is left to end it but who looks.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_to_be_cancelled_and_whose_job_is_gone_ends() {
    let mut world = World::new(Scripted::new(|_| pending()));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    world.until_called(1).await;
    runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap();
    world.crash();
    assert_eq!(remove_jobs(&world), 1);
    let (runtime, _running) = world.running();
    assert_eq!(runtime.wait(RUN).await.unwrap().error.as_deref(), Some("enough"));
    assert_eq!(world.calls().len(), 1);
}

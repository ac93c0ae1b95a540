//! A store that holds many ended runs: what a step, a page of a listing and a sweep cost there. Prints figures when the
//! environment asks for them: `RUNS=1000000 cargo test --release -p workflow-runtime --test it many_ended -- --nocapture`.
//!
//! A process that has ended a million runs has used its heap for a long time, and allocates more slowly than a fresh one.
//! With `STORE=/some/folder` the stores are kept there, runs are not removed, and a second call of the same command
//! measures a process that only opens them.

use std::ops::Range;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use workflow_runtime::{
    NoopTerminalHook, RunFilter, RunOrder, RunState, StepOutcome, Storage, WorkflowRuntime, open_on,
};

use crate::support::{Runner, disk, spec};

type Runtime = WorkflowRuntime<Runner, NoopTerminalHook>;

/// The steps of a run whose steps are timed.
const STEPS: u32 = 100;

/// How long the storage engine is left alone before anything is timed.
const SETTLING: Duration = Duration::from_secs(60);

/// So many runs, and how often each store is timed, in turn: more where the environment asks for them.
fn extent() -> (usize, usize) {
    let asked = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok());
    asked.map_or((300, 1), |runs| (runs, 9))
}

/// Long runs go on step by step; all others succeed at once.
fn runner() -> Runner {
    Runner::sync(|step| {
        Ok(match step.payload.as_slice() {
            b"long" if step.step_number + 1 < STEPS => StepOutcome::continue_now(step.payload.clone()),
            _ => StepOutcome::Succeed { result: Vec::new() },
        })
    })
}

async fn store(name: &str) -> (Storage, Runtime) {
    let storage = open_on(disk(name)).await.unwrap();
    let runtime = storage.runtime(runner(), NoopTerminalHook).retention(None).build().unwrap();
    (storage, runtime)
}

async fn end_many(runtime: &Runtime, numbers: Range<usize>) {
    let ends = stream::iter(numbers).map(|number| async move {
        let id = format!("run-{number}");
        runtime.submit(spec(&id, "short")).await.unwrap();
        runtime.wait(&id).await.unwrap();
    });
    ends.buffer_unordered(512).collect::<Vec<_>>().await;
}

/// How long one step of a long run takes.
async fn step_time(runtime: &Runtime, id: &str) -> Duration {
    let begun = Instant::now();
    runtime.submit(spec(id, "long")).await.unwrap();
    runtime.wait(id).await.unwrap();
    begun.elapsed() / STEPS
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_ended_runs_are_listed_counted_and_removed_beside_running_ones() {
    let (count, rounds) = extent();
    let ((empty, few), (full, many)) = (store("empty").await, store("full").await);
    let (running_few, running_many) = (few.spawn(std::future::pending()), many.spawn(std::future::pending()));
    let succeeded = RunFilter { state: Some(RunState::Succeeded), ..RunFilter::default() };
    let already = many.count(succeeded.clone()).await.unwrap() as usize;
    end_many(&many, already..count).await;
    if rounds > 1 {
        // The storage engine sorts what was written for a while after that, and after each open.
        tokio::time::sleep(SETTLING).await;
    }

    let (mut times_few, mut times_many) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        times_few.push(step_time(&few, &format!("long-{already}-{round}")).await);
        times_many.push(step_time(&many, &format!("long-{already}-{round}")).await);
    }
    let (few_ms, many_ms) = (median(times_few).as_secs_f64() * 1e3, median(times_many).as_secs_f64() * 1e3);
    println!(
        "a step: {few_ms:.3} ms with none, {many_ms:.3} ms with {count} ended runs, ratio {:.2}",
        many_ms / few_ms
    );

    let begun = Instant::now();
    let page: Vec<_> = many.runs(succeeded.clone(), RunOrder::NewestFirst).take(100).try_collect().await.unwrap();
    println!("the latest 100 of them: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    assert_eq!(page.len(), 100);
    let begun = Instant::now();
    assert_eq!(many.count(succeeded).await.unwrap(), (already.max(count) + rounds) as u64);
    println!("counting them: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);

    running_many.shutdown().await.unwrap();
    if std::env::var("STORE").is_ok() {
        running_few.shutdown().await.unwrap();
        return;
    }
    let sweeping = full.runtime(runner(), NoopTerminalHook).retention(Duration::ZERO).build().unwrap();
    let running_many = sweeping.spawn(std::future::pending());
    let begun = Instant::now();
    while sweeping.count(RunFilter::default()).await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("removing them: {:.2} s", begun.elapsed().as_secs_f64());
    let left: Vec<_> = sweeping.check().await.unwrap();
    assert_eq!(left, []);
    for running in [running_few, running_many] {
        running.shutdown().await.unwrap();
    }
    drop((few, many, sweeping));
    empty.close().await.unwrap();
    full.close().await.unwrap();
}

//! How a run moves from step to step, and what that costs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_runtime::{
    NoopTerminalHook, RunPhase, RunSpec, Step, StepOutcome, TaqubaQueue, TerminalStatus, WorkflowRuntime, open,
};
use workflow_testkit::{FaultyPort, Plan};

use crate::support::{Answer, Runner, World, spec, succeed, until};

/// Goes on at once until step `last`, which succeeds with its payload.
fn chain(step: &Step, last: u32) -> Answer {
    if step.step_number == last {
        return succeed(step);
    }
    let mut payload = step.payload.clone();
    payload.push(b'.');
    Ok(StepOutcome::continue_now(payload))
}

/// Runs a chain of `steps` steps; gives commits, enqueues, claims and settlements.
async fn cost_of_chain(steps: u32, inline_steps: u32) -> [u64; 4] {
    let storage = open("memory:").await.unwrap();
    let port = FaultyPort::new(Arc::new(TaqubaQueue::over(storage.queue().clone())), Plan::none());
    let runner = Runner::sync(move |step| chain(step, steps - 1));
    let builder = WorkflowRuntime::over(Arc::new(port.clone()), storage.store().clone(), runner, NoopTerminalHook);
    let runtime = builder.max_concurrent_steps(1).inline_steps(inline_steps).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("chain", "")).await.unwrap();
    let end = runtime.wait("chain").await.unwrap();
    assert_eq!(end.result.map(|result| result.len()), Some(steps as usize - 1));
    handle.shutdown().await.unwrap();
    let counts = port.counts();
    [counts.commits, counts.enqueues, counts.claimed, counts.settlements]
}

#[tokio::test]
async fn a_chain_of_100_steps_costs_100_commits_and_one_claim() {
    let [commits, enqueues, claimed, settled] = cost_of_chain(100, 32).await;
    assert_eq!(commits, 1 + 100, "the submission and one commit a step");
    assert_eq!((enqueues, claimed, settled), (1, 1, 1));
}

#[tokio::test]
async fn without_inline_steps_each_goes_through_the_queue() {
    assert_eq!(cost_of_chain(10, 0).await, [1 + 10, 10, 10, 10]);
}

#[tokio::test]
async fn a_run_with_many_steps_lets_others_in() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let runner = Runner::sync(move |step| {
        seen.lock().unwrap().push(step.run_id.clone());
        if step.run_id == "long" { chain(step, 2_000) } else { succeed(step) }
    });
    let world = World::with(runner, NoopTerminalHook, |builder| builder.max_concurrent_steps(1).inline_steps(4)).await;
    world.runtime.submit(spec("long", "")).await.unwrap();
    world.runtime.submit(spec("short", "")).await.unwrap();
    world.runtime.wait("short").await.unwrap();
    assert_eq!(world.runtime.run_end("long").await.unwrap(), None);
    world.runtime.wait("long").await.unwrap();
    let order = order.lock().unwrap().clone();
    let short = order.iter().position(|id| id == "short").unwrap();
    assert!(order[short..].len() > 1_000, "the short run came at {short} of {}", order.len());
    world.close().await;
}

#[tokio::test]
async fn a_delayed_step_starts_at_or_after_its_time() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = times.clone();
    let world = World::new(Runner::sync(move |step| {
        seen.lock().unwrap().push(std::time::Instant::now());
        match step.step_number {
            0 => Ok(StepOutcome::continue_after(b"later".to_vec(), Duration::from_millis(40))),
            1 => Ok(StepOutcome::continue_after(step.payload.clone(), Duration::ZERO)),
            _ => succeed(step),
        }
    }))
    .await;
    let end = world.end_of(spec("a", "")).await;
    assert_eq!((end.result.as_deref(), end.final_step), (Some(b"later".as_slice()), 2));
    let times = times.lock().unwrap().clone();
    assert!(times[1] - times[0] >= Duration::from_millis(39), "{:?}", times[1] - times[0]);
    world.close().await;
}

#[tokio::test]
async fn a_delay_beyond_all_time_is_never_due() {
    let world = World::new(Runner::sync(|_| Ok(StepOutcome::continue_after(vec![], Duration::MAX)))).await;
    world.runtime.submit(spec("a", "")).await.unwrap();
    until(async || {
        let status = world.runtime.status("a").await.unwrap().unwrap();
        matches!(status.phase, RunPhase::Delayed { .. }) && status.step == 1
    })
    .await;
    world.close().await;
}

#[tokio::test]
async fn payloads_of_every_size_reach_the_next_step_whole() {
    let sizes = [0, 1, 32 * 1024, 32 * 1024 + 1, 256 * 1024 + 1, 3 << 20];
    let world = World::new(Runner::sync(move |step| {
        let filled = |step: u32| vec![step as u8; sizes[step as usize]];
        if step.step_number > 0 {
            assert!(step.payload == filled(step.step_number - 1), "step {}", step.step_number);
        }
        match sizes.get(step.step_number as usize) {
            Some(_) => Ok(StepOutcome::continue_now(filled(step.step_number))),
            None => succeed(step),
        }
    }))
    .await;
    let end = world.end_of(spec("a", "")).await;
    assert_eq!((end.status, end.result.map(|result| result.len())), (TerminalStatus::Succeeded, Some(3 << 20)));
    world.close().await;
}

#[tokio::test]
async fn objects_of_superseded_payloads_are_deleted() {
    let world = World::new(Runner::sync(|step| {
        if step.step_number == 5 {
            return Ok(StepOutcome::Succeed { result: vec![] });
        }
        Ok(StepOutcome::continue_now(vec![1; 100_000]))
    }))
    .await;
    let input = RunSpec { input: vec![1; 100_000], ..spec("a", "") };
    assert_eq!(world.end_of(input).await.error, None);
    until(async || {
        use futures::TryStreamExt;
        let prefix = object_store::path::Path::from("workflow-objects");
        let objects: Vec<_> = world.storage.store().list(Some(&prefix)).try_collect().await.unwrap();
        objects.is_empty()
    })
    .await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_steps_run_at_once_than_there_are_slots() {
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, peak) = (running.clone(), most.clone());
    let runner = Runner::new(move |step| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            chain(&step, 3)
        }
    });
    let world = World::with(runner, NoopTerminalHook, |builder| builder.max_concurrent_steps(4)).await;
    for i in 0..40 {
        world.runtime.submit(spec(&format!("r{i}"), "")).await.unwrap();
    }
    for i in 0..40 {
        world.runtime.wait(&format!("r{i}")).await.unwrap();
    }
    assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    world.close().await;
}

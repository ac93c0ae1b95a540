//! Stores that do not answer for a while, leases that are lost, operators that interfere: runs go on by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use object_store::memory::InMemory;
use tokio::sync::Notify;
use workflow_runtime::{
    Error, NoopTerminalHook, RunSpec, StepOutcome, StepRunner, Storage, TaqubaQueue, WorkflowRuntime,
    WorkflowRuntimeBuilder, open, open_on,
};
use workflow_testkit::{FaultyPort, Health, Plan, PortCalls, PortFault, When};

use crate::support::{Hook, Runner, at_once, spec, succeed};

/// A builder over a port whose health the test sets.
fn over<R: StepRunner + 'static>(storage: &Storage, port: &FaultyPort, runner: R) -> WorkflowRuntimeBuilder<R, Hook> {
    WorkflowRuntime::over(Arc::new(port.clone()), storage.store().clone(), runner, Hook::default())
        .retry_policy(at_once())
}

fn port_of(storage: &Storage) -> FaultyPort {
    FaultyPort::new(Arc::new(TaqubaQueue::over(storage.queue().clone())), Plan::none())
}

/// Steps that wait for the test; each announces itself.
fn paced(begun: &Arc<Notify>, go: &Arc<Notify>) -> Runner {
    let (begun, go) = (begun.clone(), go.clone());
    Runner::new(move |step| {
        let (begun, go) = (begun.clone(), go.clone());
        async move {
            begun.notify_one();
            go.notified().await;
            if step.step_number == 2 { succeed(&step) } else { Ok(StepOutcome::continue_now(vec![])) }
        }
    })
}

#[tokio::test]
async fn a_store_that_is_down_for_a_while_costs_no_run_and_no_attempt() {
    let storage = open("memory:").await.unwrap();
    let port = port_of(&storage);
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let runtime = over(&storage, &port, paced(&begun, &go)).max_attempts_per_step(1).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "")).await.unwrap();
    begun.notified().await;
    port.set_health(Health::Down);
    let refused = runtime.submit(spec("b", "")).await.unwrap_err();
    assert!(!refused.is_permanent(), "{refused}");
    go.notify_one();
    // The step's commit fails again and again; meanwhile the loop asks in vain for more work.
    tokio::time::timeout(Duration::from_millis(100), begun.notified()).await.expect_err("the store is down");
    port.set_health(Health::Well);
    for _ in 1..=2 {
        begun.notified().await;
        go.notify_one();
    }
    assert_eq!(runtime.wait("a").await.unwrap().error, None);
    handle.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_in_time_while_the_store_hangs() {
    let storage = open("memory:").await.unwrap();
    let port = port_of(&storage);
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let runtime = over(&storage, &port, paced(&begun, &go)).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "")).await.unwrap();
    begun.notified().await;
    port.set_health(Health::Hung);
    go.notify_one();
    handle.shutdown().await.unwrap();
    port.set_health(Health::Well);
    assert_eq!(runtime.run_end("a").await.unwrap(), None);
}

#[tokio::test]
async fn nothing_starts_once_the_shutdown_has_begun() {
    let storage = open("memory:").await.unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let runner = Runner::sync(move |step| {
        seen.fetch_add(1, Ordering::SeqCst);
        succeed(step)
    });
    let runtime = storage.runtime(runner, NoopTerminalHook).build().unwrap();
    for i in 0..20 {
        runtime.submit(spec(&format!("r{i}"), "")).await.unwrap();
    }
    runtime.run(std::future::ready(())).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    let handle = runtime.spawn(std::future::pending());
    for i in 0..20 {
        assert_eq!(runtime.wait(&format!("r{i}")).await.unwrap().error, None);
    }
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_lease_that_is_asked_for_is_never_shorter_than_before() {
    let storage = open("memory:").await.unwrap();
    let queue = storage.queue().clone();
    let runner = Runner::sync(move |step| {
        let left = || {
            let expiry = queue.lease_expiry("workflow-steps", &step.job_id).expect("the delivery is claimed");
            Duration::from_millis(expiry - queue.clock().now_ms())
        };
        assert!(left() > Duration::from_secs(20));
        step.lease.ensure_at_least(Duration::from_secs(1))?;
        assert!(left() > Duration::from_secs(20));
        step.lease.ensure_at_least(Duration::from_secs(3600))?;
        assert!(left() > Duration::from_secs(3500));
        step.lease.ensure_at_least(Duration::MAX)?;
        succeed(step)
    });
    let runtime = storage.runtime(runner, NoopTerminalHook).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "")).await.unwrap();
    assert_eq!(runtime.wait("a").await.unwrap().error, None);
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_operator_who_cancels_a_doorbell_in_hand_costs_one_attempt() {
    let storage = open("memory:").await.unwrap();
    let queue = storage.queue().clone();
    let runner = Runner::new(move |step| {
        let queue = queue.clone();
        async move {
            if step.attempts == 1 {
                queue.cancel(&step.job_id).await.unwrap();
                std::future::pending::<()>().await;
            }
            succeed(&step)
        }
    });
    let runtime = storage.runtime(runner, NoopTerminalHook).retry_policy(at_once()).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "")).await.unwrap();
    assert_eq!(runtime.wait("a").await.unwrap().error, None);
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_priority_that_another_runtime_brings_up_is_claimed_too() {
    let storage = open("memory:").await.unwrap();
    let build = || storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let (worker, submitter) = (build(), build());
    let handle = worker.spawn(std::future::pending());
    submitter.submit(spec("first", "")).await.unwrap();
    worker.wait("first").await.unwrap();
    submitter.submit(RunSpec { priority: Some(3), ..spec("urgent", "") }).await.unwrap();
    assert_eq!(worker.wait("urgent").await.unwrap().error, None);
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn priorities_beyond_their_limit_are_refused() {
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    for priority in 0..63 {
        let spec = RunSpec { priority: Some(priority), ..spec(&format!("p{priority}"), "") };
        runtime.submit(spec).await.unwrap();
    }
    let refused = runtime.submit(RunSpec { priority: Some(u32::MAX), ..spec("more", "") }).await;
    assert!(matches!(refused, Err(Error::InvalidOption { option: "priority", .. })));
    runtime.submit(RunSpec { priority: Some(62), ..spec("known", "") }).await.unwrap();
}

#[tokio::test]
async fn a_submission_that_is_overtaken_by_its_own_run_keeps_its_input() {
    let storage = open("memory:").await.unwrap();
    let worker = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let handle = worker.spawn(std::future::pending());
    // Nobody else writes the row of the input's object, so a large one waits so long each time.
    let fault = PortFault::AnswerLostForLong(Duration::from_millis(200));
    let port = port_of(&storage);
    port.follow(Plan::of(PortCalls::CommitEnqueuing, When::Always, fault));
    let submitter =
        WorkflowRuntime::over(Arc::new(port), storage.store().clone(), Runner::sync(succeed), NoopTerminalHook)
            .build()
            .unwrap();
    for round in 0..20 {
        let id = format!("r{round}");
        let input = vec![round; if round % 2 == 0 { 100_000 } else { 1 }];
        let submitted = submitter.submit(RunSpec { input: input.clone(), ..spec(&id, "") }).await.unwrap();
        assert!(submitted.newly_submitted);
        assert!(worker.wait(&id).await.unwrap().result == Some(input));
    }
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_64_tasks_were_answered_survives_a_crash_right_after() {
    let store = InMemory::new();
    let storage = open_on(Arc::new(store.clone())).await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let submissions = (0..64).map(|task| {
        let (runtime, store) = (runtime.clone(), store.clone());
        async move {
            let input = ["even", "odd"][task % 2];
            let answer = runtime.submit(spec("one", input)).await;
            (input, answer.is_ok(), store.fork())
        }
    });
    let answers = futures::future::join_all(submissions).await;
    let accepted: Vec<_> = answers.iter().filter(|(_, accepted, _)| *accepted).map(|(input, ..)| *input).collect();
    assert!(accepted.len() == 32 && accepted.iter().all(|input| *input == accepted[0]));
    for (input, accepted, crashed) in [0, 1, 31, 62, 63].map(|task: usize| &answers[task]) {
        let reopened = open_on(Arc::new(crashed.fork())).await.unwrap();
        let after = reopened.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
        match after.submit(spec("one", input)).await {
            Ok(again) => assert!(*accepted && !again.newly_submitted),
            Err(error) => assert!(!accepted && matches!(error, Error::InputMismatch(_))),
        }
    }
}

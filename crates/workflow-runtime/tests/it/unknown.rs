//! Commits whose answer gets lost, and commits that can never succeed: the runtime finds out, and no run is stuck.

use std::sync::Arc;

use futures::TryStreamExt;
use workflow_runtime::{RunOutcome, StepError, StepOutcome, TaqubaQueue, TerminalStatus, WorkflowRuntime, open};
use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, PortPlan, When};

use crate::support::{Hook, Runner, at_once, spec, succeed, until};

/// Steps with effects, memos, a large payload and a failed attempt; the result counts them.
fn runner() -> Runner {
    Runner::new(|step| async move {
        let number: u32 = step.memo.memoized("number", async { Ok::<_, StepError>(step.step_number) }).await?;
        step.effects.put(format!("{}/{number}", step.run_id), step.attempts.to_string())?;
        match (step.step_number, step.attempts) {
            (1, 1) => Err(StepError::transient("again")),
            (0..=3, _) => Ok(StepOutcome::continue_now(vec![number as u8; 40_000])),
            _ => {
                assert_eq!(step.payload, vec![3; 40_000]);
                Ok(StepOutcome::Succeed { result: vec![9; 50_000] })
            }
        }
    })
}

/// Ends `runs` runs over a port whose calls meet the faults of `plan`; gives their ends and all application KV.
async fn ends_of(runs: usize, plan: PortPlan) -> (Vec<RunOutcome>, Vec<(String, String)>) {
    let storage = open("memory:").await.unwrap();
    let port = Arc::new(FaultyPort::new(Arc::new(TaqubaQueue::over(storage.queue().clone())), plan));
    let hook = Hook::default();
    let builder = WorkflowRuntime::over(port, storage.store().clone(), runner(), hook.clone());
    let runtime = builder.retry_policy(at_once()).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    let mut ends = Vec::new();
    for run in 0..runs {
        let id = format!("run-{run}");
        until(async || runtime.submit(spec(&id, "")).await.is_ok()).await;
        ends.push(runtime.wait(&id).await.unwrap());
    }
    until(async || {
        let told: Vec<_> = runtime.kv().scan(b"told/").try_collect().await.unwrap();
        told.len() == runs
    })
    .await;
    let rows: Vec<_> = runtime.kv().scan(b"").try_collect().await.unwrap();
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    handle.shutdown().await.unwrap();
    (ends, rows.into_iter().map(|(key, value)| (text(key), text(value))).collect())
}

#[tokio::test]
async fn a_commit_of_unknown_outcome_changes_nothing_of_what_happens() {
    let undisturbed = ends_of(3, Plan::none()).await;
    for seed in 0..12 {
        // Of the commits that the first rule lets pass, a third do not happen.
        let rates = [(PortCalls::Commit, 400, PortFault::AnswerLost), (PortCalls::Commit, 333, PortFault::Fails)];
        assert_eq!(ends_of(3, Plan::random(seed, rates)).await, undisturbed, "seed {seed}");
    }
}

#[tokio::test]
async fn a_commit_that_can_never_succeed_ends_its_run_with_a_clear_error() {
    let storage = open("memory:").await.unwrap();
    let cursed = Plan::of(PortCalls::CommitWriting("cursed".into()), When::Always, PortFault::Refused);
    let port = Arc::new(FaultyPort::new(Arc::new(TaqubaQueue::over(storage.queue().clone())), cursed));
    let runner = Runner::sync(|step| {
        step.effects.put(if step.run_id == "bad" { "cursed" } else { "fine" }, "x")?;
        succeed(step)
    });
    let runtime = WorkflowRuntime::over(port, storage.store().clone(), runner, Hook::default()).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    for (id, status) in [("bad", TerminalStatus::Failed), ("good", TerminalStatus::Succeeded)] {
        runtime.submit(spec(id, "")).await.unwrap();
        let end = runtime.wait(id).await.unwrap();
        assert_eq!(end.status, status);
        assert_eq!(end.error.is_some_and(|error| error.contains("can never succeed")), id == "bad");
    }
    handle.shutdown().await.unwrap();
}

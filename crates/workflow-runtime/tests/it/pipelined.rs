//! Pipelined commits over a store that does not write for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use workflow_runtime::{CommitMode, NoopTerminalHook, Step, StepOutcome, Storage, WorkflowRuntime, open_on};
use workflow_testkit::Gate;

use crate::support::{Answer, Runner, spec, succeed, until};

const STEPS: u32 = 100;

/// Counts in the application's keys, as far as the last step.
fn counts(step: &Step, calls: &AtomicU32) -> Answer {
    calls.fetch_add(1, Ordering::SeqCst);
    if step.step_number + 1 == STEPS {
        return succeed(step);
    }
    step.effects.put(format!("step/{:03}", step.step_number), "")?;
    Ok(StepOutcome::continue_now(Vec::new()))
}

async fn opened(
    store: Arc<dyn ObjectStore>,
    calls: &Arc<AtomicU32>,
) -> (Storage, WorkflowRuntime<Runner, NoopTerminalHook>) {
    let (storage, calls) = (open_on(store).await.unwrap(), calls.clone());
    let runner = Runner::sync(move |step| counts(step, &calls));
    let runtime = storage.runtime(runner, NoopTerminalHook).commit_mode(CommitMode::Pipelined).build().unwrap();
    (storage, runtime)
}

#[tokio::test]
async fn steps_run_ahead_of_a_store_that_does_not_write_and_are_executed_again_after_the_process_has_died() {
    let (disk, calls): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), Arc::new(AtomicU32::new(0)));
    let slow = Gate::new(disk.clone());
    let (_abandoned, runtime) = opened(Arc::new(slow.clone()), &calls).await;
    runtime.submit(spec("chain", "")).await.unwrap();
    slow.close();
    let _abandoned_loop = runtime.spawn(std::future::pending());
    until(async || calls.load(Ordering::SeqCst) == STEPS).await;

    let (storage, runtime) = opened(disk, &calls).await;
    let running = runtime.spawn(std::future::pending());
    assert_eq!(runtime.wait("chain").await.unwrap().final_step, STEPS - 1);
    assert_eq!(calls.load(Ordering::SeqCst), 2 * STEPS, "nothing had landed");
    let steps: Vec<_> = runtime.kv().scan(b"step/").try_collect().await.unwrap();
    assert_eq!(steps.len(), STEPS as usize - 1);
    running.shutdown().await.unwrap();
    drop(runtime);
    storage.close().await.unwrap();
}

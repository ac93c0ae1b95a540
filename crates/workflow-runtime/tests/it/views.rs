//! Reading runs: status, ends, waits.

use std::time::Duration;

use workflow_runtime::{Error, RunPhase, StepOutcome, TerminalStatus};

use crate::support::{Runner, World, spec, succeed, until};

#[tokio::test]
async fn what_does_not_exist_is_told_as_such() {
    let world = World::new(Runner::sync(succeed)).await;
    assert_eq!(world.runtime.status("nobody").await.unwrap(), None);
    assert_eq!(world.runtime.run_end("nobody").await.unwrap(), None);
    assert!(matches!(world.runtime.wait("nobody").await, Err(Error::NotFound(id)) if id == "nobody"));
    assert!(matches!(world.runtime.wait_timeout("nobody", Duration::MAX).await, Err(Error::NotFound(_))));
    for id in ["", "a/b"] {
        assert!(matches!(world.runtime.status(id).await, Err(Error::InvalidRunId { .. })));
        assert!(matches!(world.runtime.run_end(id).await, Err(Error::InvalidRunId { .. })));
        assert!(matches!(world.runtime.wait(id).await, Err(Error::InvalidRunId { .. })));
    }
    world.close().await;
}

#[tokio::test]
async fn a_status_follows_the_run() {
    let world = World::new(Runner::sync(|step| match step.step_number {
        0 => Ok(StepOutcome::continue_after(vec![], Duration::from_secs(600))),
        _ => succeed(step),
    }))
    .await;
    world.runtime.submit(spec("a", "")).await.unwrap();
    until(async || world.runtime.status("a").await.unwrap().unwrap().step == 1).await;
    let status = world.runtime.status("a").await.unwrap().unwrap();
    assert!(matches!(status.phase, RunPhase::Delayed { until } if until > status.submitted_at));
    assert_eq!((status.run_id.as_str(), status.max_attempts), ("a", 5));
    world.close().await;
}

#[tokio::test]
async fn an_end_is_told_the_same_by_every_call() {
    let world = World::new(Runner::sync(succeed)).await;
    let end = world.end_of(spec("a", "out")).await;
    assert_eq!(world.runtime.run_end("a").await.unwrap().as_ref(), Some(&end));
    assert_eq!(world.runtime.wait_timeout("a", Duration::ZERO).await.unwrap().as_ref(), Some(&end));
    let status = world.runtime.status("a").await.unwrap().unwrap();
    assert!(matches!(status.phase, RunPhase::Ended { status: TerminalStatus::Succeeded, .. }));
    world.close().await;
}

#[tokio::test]
async fn a_wait_ends_in_time_when_the_run_does_not() {
    let world = World::new(Runner::sync(|_| Ok(StepOutcome::continue_after(vec![], Duration::MAX)))).await;
    world.runtime.submit(spec("a", "")).await.unwrap();
    assert_eq!(world.runtime.wait_timeout("a", Duration::from_millis(5)).await.unwrap(), None);
    world.close().await;
}

#[tokio::test]
async fn many_wait_for_one_run() {
    let world = World::new(Runner::new(|step| async move {
        tokio::task::yield_now().await;
        if step.step_number == 3 { succeed(&step) } else { Ok(StepOutcome::continue_now(vec![])) }
    }))
    .await;
    world.runtime.submit(spec("a", "")).await.unwrap();
    let waits = (0..100).map(|_| world.runtime.wait("a"));
    let ends = futures::future::try_join_all(waits).await.unwrap();
    assert!(ends.iter().all(|end| end.final_step == 3));
    world.close().await;
}

#[tokio::test]
async fn a_record_that_does_not_decode_is_its_runs_problem_alone() {
    let world = World::new(Runner::sync(succeed)).await;
    let key = [b"workflow/workflow-steps/run/broken".as_slice()].concat();
    world.overwrite(&key, Some(b"\xff\xff not a record")).await;
    for error in [
        world.runtime.status("broken").await.unwrap_err(),
        world.runtime.wait("broken").await.unwrap_err(),
        world.runtime.submit(spec("broken", "")).await.unwrap_err(),
    ] {
        assert!(error.is_permanent() && error.to_string().contains("broken"), "{error}");
    }
    assert_eq!(world.end_of(spec("healthy", "")).await.error, None);
    world.close().await;
}

#[tokio::test]
async fn foreign_jobs_in_the_queue_are_buried_alone() {
    let world = World::new(Runner::sync(succeed)).await;
    for payload in [b"".to_vec(), b"not a doorbell".to_vec(), vec![0xff; 1000]] {
        world.storage.queue().enqueue("workflow-steps", payload).await.unwrap();
    }
    until(async || world.dead_jobs().await.len() == 3).await;
    assert_eq!(world.end_of(spec("healthy", "")).await.error, None);
    world.close().await;
}

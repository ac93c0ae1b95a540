//! Rows and jobs that nobody of ours wrote: each is its own run's problem.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use workflow_core::{Incarnation, RunId};
use workflow_effects::{BellTarget, Doorbell, encode_doorbell};
use workflow_runtime::{RunPhase, RunSpec, StepOutcome, TerminalStatus};

use crate::support::{Hook, Runner, World, spec, succeed, until};

fn forged(run_id: &str, target: BellTarget) -> Vec<u8> {
    let doorbell = Doorbell {
        run_id: RunId::parse(run_id).unwrap(),
        incarnation: Incarnation::new(7),
        queue_name: "workflow-steps".to_owned(),
        open: 0,
        target,
    };
    encode_doorbell(&doorbell).to_vec()
}

/// Nothing happens to a run that waits, until it is signalled.
async fn until_it_waits(world: &World, run_id: &str) {
    until(async || {
        let status = world.runtime.status(run_id).await.unwrap().unwrap();
        matches!(status.phase, RunPhase::Waiting { .. })
    })
    .await;
}

/// The key of a run's record.
fn record(run_id: &str) -> Vec<u8> {
    format!("workflow/workflow-steps/run/{run_id}").into_bytes()
}

#[tokio::test]
async fn forged_doorbells_change_nothing() {
    let hook = Hook::default();
    let world = World::with(Runner::sync(succeed), hook.clone(), |builder| builder).await;
    let end = world.end_of(spec("real", "x")).await;
    until(async || hook.told().len() == 1).await;
    let notification = BellTarget::Notification { redrive: 0 };
    for (queue, payload) in [
        ("workflow-steps", forged("real", BellTarget::Step)),
        ("workflow-steps", forged("nobody", BellTarget::Step)),
        ("workflow-steps", forged("real", notification)),
        ("workflow-steps.notifications", forged("real", notification)),
        ("workflow-steps.notifications", forged("real", BellTarget::Step)),
    ] {
        world.storage.queue().enqueue(queue, payload).await.unwrap();
    }
    until(async || {
        let view = world.storage.queue().view();
        let waiting =
            [view.stats("workflow-steps").await.unwrap(), view.stats("workflow-steps.notifications").await.unwrap()];
        waiting.iter().all(|stats| stats.pending == 0 && stats.claimed == 0)
    })
    .await;
    assert_eq!(world.runtime.run_end("real").await.unwrap(), Some(end));
    assert_eq!(world.runtime.status("nobody").await.unwrap(), None);
    assert_eq!(hook.told().len(), 1);
    world.close().await;
}

#[tokio::test]
async fn a_run_whose_record_is_overwritten_is_buried_alone() {
    let world = World::new(Runner::sync(|step| match (step.run_id.as_str(), step.step_number) {
        ("bad", 0) => Ok(StepOutcome::continue_on_signal(vec![], "go", Duration::MAX)),
        _ => succeed(step),
    }))
    .await;
    world.runtime.submit(spec("bad", "")).await.unwrap();
    until_it_waits(&world, "bad").await;
    world.overwrite(&record("bad"), Some(b"\xffgarbage")).await;
    // A doorbell makes somebody look at it.
    world.storage.queue().enqueue("workflow-steps", forged("bad", BellTarget::Step)).await.unwrap();
    until(async || world.dead_jobs().await.len() == 1).await;
    assert!(world.runtime.status("bad").await.unwrap_err().is_permanent());
    assert_eq!(world.end_of(spec("good", "")).await.status, TerminalStatus::Succeeded);
    world.close().await;
}

#[tokio::test]
async fn a_run_without_its_specification_is_told_as_corrupt_by_every_call() {
    let world = World::new(Runner::sync(succeed)).await;
    world.end_of(spec("bad", "")).await;
    let prefix = b"workflow/workflow-steps/of/bad/".as_slice();
    let view = world.storage.queue().view();
    let page = view.kv_scan(prefix, .., ::taquba::KvOrder::Ascending, 9).await.unwrap();
    let (spec_row, _) = page.entries.iter().find(|(key, _)| key.ends_with(b"/spec")).unwrap();
    world.overwrite(spec_row, None).await;
    for error in [
        world.runtime.status("bad").await.unwrap_err(),
        world.runtime.run_end("bad").await.unwrap_err(),
        world.runtime.submit(spec("bad", "")).await.unwrap_err(),
    ] {
        assert!(error.is_permanent() && error.to_string().contains("bad"), "{error}");
    }
    world.close().await;
}

#[tokio::test]
async fn a_run_whose_payload_is_lost_fails_with_a_dead_letter() {
    let world = World::new(Runner::sync(|step| match (step.run_id.as_str(), step.step_number) {
        ("bad", 0) => Ok(StepOutcome::continue_on_signal(vec![1; 100_000], "go", Duration::MAX)),
        _ => succeed(step),
    }))
    .await;
    world.runtime.submit(spec("bad", "")).await.unwrap();
    until_it_waits(&world, "bad").await;
    let objects: Vec<_> = world.storage.store().list(Some(&"workflow-objects".into())).try_collect().await.unwrap();
    world.storage.store().delete(&objects[0].location).await.unwrap();
    world.runtime.signal("go", Vec::new()).await.unwrap();
    let end = world.runtime.wait("bad").await.unwrap();
    assert_eq!(end.status, TerminalStatus::Failed);
    assert!(end.error.unwrap().contains("payload lost"));
    until(async || world.dead_jobs().await.len() == 1).await;
    assert_eq!(world.end_of(RunSpec { input: vec![2; 100_000], ..spec("good", "") }).await.error, None);
    world.close().await;
}

#[tokio::test]
async fn records_of_other_runs_in_the_wrong_place_start_nothing() {
    let world = World::new(Runner::sync(succeed)).await;
    world.end_of(spec("real", "")).await;
    let stolen: Bytes = world.storage.queue().view().kv_get(&record("real")).await.unwrap().unwrap();
    world.overwrite(&record("copy"), Some(&stolen)).await;
    assert!(world.runtime.run_end("copy").await.unwrap_err().is_permanent());
    assert!(world.runtime.submit(spec("copy", "")).await.unwrap_err().is_permanent());
    world.close().await;
}

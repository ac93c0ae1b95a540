//! The rows that tell whose objects there are: what they say at each moment, and where objects are written.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::{CorrelationKey, Incarnation, RunId};
use workflow_effects::{
    Commit, KeySpace, KvStore, ObjectsRow, ObjectsState, SignalObjectsRow, SignalObjectsState, decode_objects_row,
    decode_run, decode_signal_objects_row, encode_objects_row,
};
use workflow_runtime::{RunSpec, SignalOutcome, StepOutcome, WorkflowRuntime};
use workflow_testkit::Gate;

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until_it_waits};

const LARGE: usize = 100_000;

fn keys() -> KeySpace {
    KeySpace::new("workflow-steps")
}

fn run_id() -> RunId {
    RunId::parse(RUN).unwrap()
}

/// Which submission of the run there is.
fn incarnation(world: &World) -> Option<Incarnation> {
    let (key, id) = (keys().run(&run_id()), run_id());
    let record = world.disk.entries().into_iter().find_map(|(found, record)| (found == key).then_some(record));
    decode_run(&id, record.as_deref()).unwrap().incarnation()
}

/// The rows of the objects of runs, with their keys.
pub(crate) fn run_rows(world: &World) -> Vec<(bytes::Bytes, ObjectsRow)> {
    let is_row = |key: &[u8]| key.starts_with(b"workflow/workflow-steps/objects/");
    let rows = world.disk.entries().into_iter().filter(|(key, _)| is_row(key));
    rows.map(|(key, row)| (key, decode_objects_row(&run_id(), &row).unwrap())).collect()
}

/// The rows of the objects of signals.
pub(crate) fn signal_rows(world: &World) -> Vec<SignalObjectsRow> {
    let is_row = |key: &[u8]| key.starts_with(b"workflow/workflow-steps/objects-signal/");
    let rows = world.disk.entries().into_iter().filter(|(key, _)| is_row(key));
    rows.map(|(_, row)| decode_signal_objects_row(&row).unwrap()).collect()
}

fn large_submission() -> RunSpec {
    RunSpec { run_id: Some(RUN.to_owned()), input: vec![1; LARGE], ..RunSpec::default() }
}

/// Waits on `k` and answers how long the signal is, once the test says so.
fn measures() -> Scripted {
    Scripted::new(|step| async move {
        Ok(match step.step_number {
            0 => StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX),
            1 => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                StepOutcome::continue_now(step.signal.unwrap_or_default().len().to_string().into())
            }
            _ => StepOutcome::Succeed { result: step.payload },
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_submission_names_its_input() {
    let world = World::without_hook(measures());
    let runtime = world.runtime();
    submit(&runtime, "small").await;
    assert!(run_rows(&world).is_empty());
    for newly in [true, false] {
        assert_eq!(runtime.submit(large_submission()).await.unwrap().newly_submitted, newly);
        let [(key, row)] = run_rows(&world).try_into().unwrap();
        assert_eq!(key, keys().objects(&run_id(), incarnation(&world).unwrap()));
        assert_eq!((row.prefix.as_str(), row.state), ("workflow-objects", ObjectsState::Named));
    }
}

/// A runtime whose objects wait at a gate.
fn slow(world: &World) -> (Runtime, Gate) {
    let gate = Gate::new(world.objects.clone());
    let (port, store) = (Arc::new(world.queue.clone()), Arc::new(gate.clone()));
    let built = WorkflowRuntime::over(port, store, world.runner.clone(), world.hook.clone());
    gate.close();
    (built.ids(world.ids.clone()).build().unwrap(), gate)
}

/// Whoever removes what nothing names may overtake a submission that takes very long.
#[tokio::test(start_paused = true)]
async fn a_submission_whose_row_is_condemned_makes_no_run_and_the_next_does() {
    let world = World::without_hook(measures());
    let (slow, gate) = slow(&world);
    let submitter = slow.clone();
    let submission = tokio::spawn(async move { submitter.submit(large_submission()).await });
    gate.until_waiting(1).await;
    let [(key, row)] = run_rows(&world).try_into().unwrap();
    assert_eq!(row.state, ObjectsState::Fresh);
    let condemned = encode_objects_row(&ObjectsRow { state: ObjectsState::Condemned, ..row });
    let commit = Commit { puts: vec![(key, condemned)], ..Commit::default() };
    world.queue.commit(vec![commit]).await.remove(0).unwrap();
    gate.open();
    let error = submission.await.unwrap().unwrap_err();
    assert!(!error.is_permanent(), "{error}");
    assert_eq!(incarnation(&world), None);
    assert!(slow.submit(large_submission()).await.unwrap().newly_submitted);
    assert_eq!(run_rows(&world).len(), 2, "of another submission");
}

/// The row is removed before the object is there: then nobody would look for it.
#[tokio::test(start_paused = true)]
async fn a_signal_whose_row_is_gone_is_not_sent_and_leaves_no_object() {
    let world = World::without_hook(measures());
    let (slow, gate) = slow(&world);
    let sending = tokio::spawn(async move { slow.signal("k", vec![1; LARGE]).await });
    gate.until_waiting(1).await;
    let (row, _) = world.disk.entries().remove(0);
    let commit = Commit { deletes: vec![row], ..Commit::default() };
    world.queue.commit(vec![commit]).await.remove(0).unwrap();
    gate.open();
    let error = sending.await.unwrap().unwrap_err();
    assert!(!error.is_permanent(), "{error}");
    assert_eq!((world.disk.entries(), world.objects().await), (Vec::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn the_row_of_a_signal_says_who_has_it() {
    let world = World::without_hook(measures());
    let (runtime, _running) = world.running();
    assert_eq!(runtime.signal("k", vec![1; LARGE]).await.unwrap(), SignalOutcome::Buffered);
    let buffered = SignalObjectsState::Buffered { key: CorrelationKey::parse("k").unwrap() };
    let before = signal_rows(&world);
    assert_eq!((before[0].prefix.as_str(), &before[0].state), ("workflow-objects", &buffered));
    submit(&runtime, RUN).await;
    until_taken(&world, 1).await;
    let owner = SignalObjectsState::Owned { run_id: run_id(), incarnation: incarnation(&world).unwrap() };
    assert_eq!(signal_rows(&world), [SignalObjectsRow { state: owner, ..before[0].clone() }]);
    assert_eq!(result_of(&runtime, RUN).await, LARGE.to_string());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((signal_rows(&world), world.objects().await), (Vec::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn the_row_of_a_signal_that_is_awaited_names_the_run_at_once() {
    let world = World::without_hook(measures());
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    assert_eq!(runtime.signal("k", vec![1; LARGE]).await.unwrap(), SignalOutcome::Delivered);
    let owner = SignalObjectsState::Owned { run_id: run_id(), incarnation: incarnation(&world).unwrap() };
    assert_eq!(signal_rows(&world)[0].state, owner);
    assert_eq!(result_of(&runtime, RUN).await, LARGE.to_string());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((signal_rows(&world), world.objects().await), (Vec::new(), 0));
}

/// Waits until step 1 has begun.
async fn until_taken(world: &World, step: u32) {
    while !world.runner.seen().iter().any(|seen| seen.step == step) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_folder_when_the_prefix_is_set_anew() {
    let runner = Scripted::new(|step| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        step.run_memo.put("k", &vec![step.step_number as u8; LARGE]).await?;
        Ok(match step.step_number {
            0 => StepOutcome::continue_now(vec![9; LARGE]),
            _ => StepOutcome::Succeed { result: step.payload },
        })
    });
    let mut world = World::without_hook(runner);
    world.runtime().submit(large_submission()).await.unwrap();
    world.crash();
    world.settings.prefix = "elsewhere".to_owned();
    let (runtime, _running) = world.running();
    assert_eq!(runtime.wait(RUN).await.unwrap().result, Some(vec![9; LARGE]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let folder = format!("workflow-objects/{RUN}/{}", incarnation(&world).unwrap());
    let paths = world.paths().await;
    assert!(paths.len() == 2 && paths.iter().all(|path| path.starts_with(&folder)), "{paths:?}");
}

//! A run that is half removed is no violation; what is left of it when nobody goes on is.

use std::sync::Arc;
use std::time::Duration;

use workflow_runtime::ViolationKind::Corrupt;
use workflow_runtime::port::{Commit, KvStore};
use workflow_runtime::{RunSpec, Step, StepError, StepOutcome};
use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, When};

use super::store::is_clean;
use crate::scripted::{Runtime, Scripted, World};

const HOUR: Duration = Duration::from_secs(3_600);
const LARGE: usize = 100;

fn world() -> World {
    World::new(Scripted::new(run)).with(|settings| {
        settings.retention = Some(HOUR);
        settings.inline_limit = 64;
    })
}

async fn run(step: Step) -> Result<StepOutcome, StepError> {
    step.run_memo.memoized("m", async { Ok::<_, StepError>("m".repeat(LARGE)) }).await?;
    match (step.run_id.as_str(), step.step_number) {
        ("fails", _) => Err(StepError::permanent("it fails")),
        (_, 0) => Ok(StepOutcome::continue_on_signal(vec![1; LARGE], step.run_id, Duration::MAX)),
        (_, _) => Ok(StepOutcome::Succeed { result: vec![1; LARGE] }),
    }
}

/// Runs a few runs to their ends.
async fn fill(world: &World) {
    let (runtime, running) = world.running();
    for run_id in ["one", "two", "fails"] {
        let headers = [("team".to_owned(), "blue".to_owned())].into();
        runtime.submit(RunSpec { run_id: Some(run_id.to_owned()), headers, ..RunSpec::default() }).await.unwrap();
        if run_id != "fails" {
            runtime.signal(run_id, vec![2; LARGE]).await.unwrap();
        }
        runtime.wait(run_id).await.unwrap();
    }
    while world.hook.ends().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.shutdown().await.unwrap();
}

/// How many records, rows of submissions, places and marks of objects there are.
fn left(world: &World) -> [usize; 4] {
    ["run", "of", "listed", "objects"].map(|kind| world.rows(kind))
}

async fn is_removed(world: &World) {
    while left(world) != [0; 4] {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_the_power_is_cut_it_is_clean() {
    let mut cuts = 0;
    loop {
        let mut world = world();
        fill(&world).await;
        tokio::time::sleep(2 * HOUR).await;
        world.crash();
        world.disk.cut_power_after(cuts);
        let disk = world.disk.clone();
        let (runtime, running) = world.running();
        let is_done = tokio::select! {
            biased;
            () = disk.cut() => false,
            () = is_removed(&world) => true,
        };
        is_clean_after(&mut world, runtime, is_done, cuts).await;
        drop(running);
        if is_done {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 2, "{cuts}");
}

async fn is_clean_after(world: &mut World, runtime: Runtime, is_done: bool, cuts: u64) {
    if is_done {
        return is_clean(&runtime, "after the removal").await;
    }
    drop(runtime);
    world.crash();
    is_clean(&world.runtime(), format!("after a cut of {cuts}")).await;
    let (runtime, running) = world.running();
    is_removed(world).await;
    is_clean(&runtime, format!("after a cut of {cuts} and the removal")).await;
    running.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_without_its_record_is_being_removed_for_as_long_as_it_has_a_place() {
    let world = world();
    fill(&world).await;
    tokio::time::sleep(2 * HOUR).await;
    let rows = PortCalls::CommitWriting("workflow/workflow-steps/of/".into());
    let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::of(rows, When::Always, PortFault::Fails));
    let runtime = world.over(Arc::new(port.clone()));
    let running = runtime.spawn(std::future::pending());
    // It gets no further than the records of those that succeeded.
    while world.rows("run") > 1 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let [_, rows, places, _] = left(&world);
    assert!(rows >= 9 && places == 3, "{rows} {places}");
    is_clean(&world.runtime(), "in the middle of the removal").await;
    port.follow(Plan::none());
    is_removed(&world).await;
    is_clean(&world.runtime(), "after the removal").await;
    running.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_does_not_read_keeps_no_other_run_from_being_removed() {
    let world = world();
    fill(&world).await;
    let prefix = b"workflow/workflow-steps/objects/one/";
    let (mark, _) = world.disk.entries().into_iter().find(|(key, _)| key.starts_with(prefix)).unwrap();
    let commit = Commit { puts: vec![(mark.clone(), "not a row".into())], ..Commit::default() };
    assert!(world.queue.commit(vec![commit]).await.iter().all(Result::is_ok));
    let (runtime, running) = world.running();
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!((world.rows("run"), world.rows("listed")), (0, 1));
    let found = runtime.check().await.unwrap();
    assert_eq!(found.iter().map(|found| (found.kind, &found.keys)).collect::<Vec<_>>(), [(Corrupt, &vec![mark])]);
    running.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_forgotten_leaves_nothing() {
    let world = world();
    fill(&world).await;
    let runtime = world.runtime();
    for run_id in ["one", "two", "fails"] {
        assert!(runtime.forget(run_id).await.unwrap());
        is_clean(&runtime, run_id).await;
    }
    assert_eq!(world.rows("run"), 0);
    // One of them has left a job among the dead, which is the loop's to remove.
    let running = runtime.spawn(std::future::pending());
    is_removed(&world).await;
    running.shutdown().await.unwrap();
    assert_eq!((world.rows("objects-signal"), world.objects().await), (0, 0));
    is_clean(&runtime, "after all").await;
}

//! Whoever is interrupted while it removes runs, or finds what does not read, leaves the rest to a later pass.

use std::future::pending;
use std::sync::Arc;

use workflow_runtime::WorkflowRuntime;
use workflow_runtime::port::{Commit, KvStore};
use workflow_testkit::{FaultyStore, Plan, StoreCalls, StoreFault, When};

use super::zoo::{KEPT, ZOO, live_all, outlive, world};
use crate::scripted::{World, settle_down};

/// All runs of the zoo have ended, and there is no loop.
async fn ended() -> World {
    let world = world();
    let (runtime, running) = world.running();
    live_all(&runtime).await;
    settle_down().await;
    running.shutdown().await.unwrap();
    world
}

/// The process dies after so many operations of the sweep; the next one goes on. Whether it had power for all of it.
async fn check_cut(operations: u64) -> bool {
    let mut world = ended().await;
    tokio::time::sleep(KEPT).await;
    let runtime = world.runtime();
    world.disk.cut_power_after(operations);
    let is_done = tokio::select! {
        biased;
        ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
        () = world.disk.cut() => false,
        () = outlive(&world) => true,
    };
    world.crash();
    let (runtime, _running) = world.running();
    // An id is free as soon as nobody finds the run any more.
    for run_id in ZOO {
        let found = runtime.status(run_id).await.unwrap();
        assert_eq!(found.is_some(), runtime.run_end(run_id).await.unwrap().is_some(), "{run_id}");
    }
    outlive(&world).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new(), "cut after {operations} operations");
    world.stop();
    is_done
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_dies_at_any_operation_is_gone_on_with() {
    let mut operations = 0;
    while !check_cut(operations).await {
        operations += 1;
    }
    assert!(operations > 4, "{operations}");
}

/// The process dies while it forgets: the run is there, whole, or it is gone, and the rest of it goes.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_being_forgotten_is_there_or_not() {
    for run_id in ["succeeds", "redriven"] {
        for operations in 0..4 {
            let mut world = ended().await;
            world.settings.retention = None;
            let runtime = world.runtime();
            world.disk.cut_power_after(operations);
            let answered = tokio::select! {
                biased;
                () = world.disk.cut() => false,
                answer = runtime.forget(run_id) => answer.unwrap(),
            };
            world.crash();
            let (runtime, _running) = world.running();
            let is_there = runtime.run_end(run_id).await.unwrap().is_some();
            assert!(!(answered && is_there), "{run_id} is found again");
            tokio::time::sleep(KEPT * 2).await;
            let left = world.leftovers().await;
            let of_run = left.iter().filter(|name| name.contains(&format!("{run_id}/"))).count();
            assert_eq!(of_run > 0, is_there, "{run_id}: {left:?}");
            world.stop();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_store_that_fails_delays_what_has_objects_and_a_later_pass_removes_it() {
    let world = ended().await;
    let store = FaultyStore::new(world.objects.clone(), Plan::of(StoreCalls::Any, When::Always, StoreFault::Fails));
    let built = WorkflowRuntime::over(
        Arc::new(world.queue.clone()),
        Arc::new(store.clone()),
        world.runner.clone(),
        world.hook.clone(),
    );
    let runtime = built.settings(world.settings.clone()).ids(world.ids.clone()).build().unwrap();
    let _running = runtime.spawn(pending());
    outlive(&world).await;
    assert!(world.objects().await > ZOO.len());
    for run_id in ZOO {
        assert_eq!(runtime.status(run_id).await.unwrap(), None, "the records go first");
    }
    store.follow(Plan::random(7, [(StoreCalls::Any, 300, StoreFault::Fails)]));
    outlive(&world).await;
    store.follow(Plan::none());
    outlive(&world).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// Replaces the first row whose key holds `part`.
async fn spoil(world: &World, part: &str) {
    let entries = world.disk.entries();
    let found = entries.iter().find(|(key, _)| key.escape_ascii().to_string().contains(part));
    let (key, _) = found.unwrap_or_else(|| panic!("there is no {part}"));
    let commit = Commit { puts: vec![(key.clone(), "not a row".into())], ..Commit::default() };
    assert!(world.queue.commit(vec![commit]).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_read_keeps_its_run_and_no_other() {
    let world = ended().await;
    spoil(&world, "/run/fails").await;
    let (runtime, _running) = world.running();
    outlive(&world).await;
    outlive(&world).await;
    let left = world.leftovers().await;
    let others: Vec<_> = left.iter().filter(|name| !name.contains("fails")).collect();
    assert_eq!(others, Vec::<&String>::new());
    assert!(left.iter().any(|name| name.contains("/of/fails/")) && world.objects().await > 0);
    assert!(runtime.status("fails").await.unwrap_err().is_permanent());
    assert!(runtime.forget("fails").await.unwrap_err().is_permanent());
}

/// Other rows of a run that do not read keep nothing but what they alone know of.
#[tokio::test(start_paused = true)]
async fn a_row_that_does_not_read_keeps_no_run() {
    for (part, spoilt) in [("/of/fails/", "fails"), ("/objects/redriven/", "redriven")] {
        let world = ended().await;
        spoil(&world, part).await;
        let (runtime, _running) = world.running();
        outlive(&world).await;
        outlive(&world).await;
        for run_id in ZOO {
            assert_eq!(runtime.status(run_id).await.unwrap(), None, "{part}: {run_id}");
        }
        let left = world.leftovers().await;
        let others: Vec<_> = left.iter().filter(|name| !name.contains(spoilt)).collect();
        assert_eq!(others, Vec::<&String>::new(), "{part}");
        world.stop();
    }
}

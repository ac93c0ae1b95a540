//! Runs come, go and move while they are listed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use workflow_runtime::{RunFilter, RunOrder, RunState};
use workflow_testkit::Chance;

use super::of;
use crate::scripted::{Runtime, Scripted, World, settle_down, submit};

const RUNS: u64 = 540;

fn name(number: u64) -> String {
    format!("run-{number:03}")
}

/// Moves some of the runs, or ends them, and submits others. Gives those that were moved.
async fn stir(runtime: &Runtime, chance: &mut Chance, moved: &mut BTreeSet<String>) {
    for _ in 0..10 {
        let run_id = name(chance.below(RUNS));
        match chance.below(4) {
            0 => drop(runtime.pause(&run_id).await.unwrap()),
            1 => drop(runtime.resume(&run_id).await.unwrap()),
            2 => {
                runtime.cancel(&run_id, None).await.unwrap();
                runtime.forget(&run_id).await.unwrap();
            }
            _ => drop(runtime.cancel(&run_id, None).await.unwrap()),
        }
        moved.insert(run_id);
        submit(runtime, &format!("new-{}", chance.draw())).await;
    }
}

async fn check(filter: RunFilter, order: RunOrder, seed: u64) {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let runtime = world.runtime();
    for number in 0..RUNS {
        submit(&runtime, &name(number)).await;
    }
    settle_down().await;
    let (mut chance, mut moved, mut found) = (Chance::of(seed), BTreeSet::new(), Vec::new());
    let mut runs = Box::pin(runtime.runs(filter.clone(), order));
    while let Some(run) = runs.next().await {
        let run = run.unwrap();
        assert!(filter.state.is_none_or(|state| run.state == state));
        found.push(run.run_id);
        if found.len() % 50 == 0 {
            stir(&runtime, &mut chance, &mut moved).await;
        }
    }
    let once: BTreeSet<_> = found.iter().collect();
    let stayed: Vec<_> = (0..RUNS).map(name).filter(|run_id| !moved.contains(run_id)).collect();
    assert!(moved.len() > 50 && stayed.len() > 100);
    assert!(stayed.iter().all(|run_id| once.contains(run_id)), "a run that kept its place is missing");
    let of_stayed = found.iter().filter(|run_id| !moved.contains(*run_id));
    assert_eq!(of_stayed.count(), once.iter().filter(|run_id| !moved.contains(**run_id)).count());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_keeps_its_place_is_listed_once_whatever_becomes_of_others() {
    let filters = [RunFilter::default(), of(RunState::Active)];
    for (seed, filter) in (0..).zip(filters) {
        check(filter.clone(), RunOrder::OldestFirst, seed).await;
        check(filter, RunOrder::NewestFirst, seed).await;
    }
}

//! Listings and counts agree with the runs one by one, whatever is combined.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use workflow_runtime::{RunFilter, RunOrder, RunSpec, RunStatus, StepError, StepOutcome};
use workflow_testkit::Chance;

use super::{STATES, listed};
use crate::scripted::{Runtime, Scripted, World, settle_down};

/// Ends, waits or goes on later as the first letter of the id says.
fn script() -> Scripted {
    Scripted::new(|step| async move {
        match step.run_id.as_bytes()[0] {
            b's' => Ok(StepOutcome::Succeed { result: Vec::new() }),
            b'f' => Err(StepError::permanent("no")),
            b'd' => Ok(StepOutcome::continue_after(Vec::new(), Duration::from_secs(1_000_000))),
            _ => Ok(StepOutcome::continue_on_signal(Vec::new(), step.run_id, Duration::MAX)),
        }
    })
}

/// Submits runs, moves them about, and lets a little time pass in between, or none.
async fn live(runtime: &Runtime, chance: &mut Chance) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..40 {
        let kind = ["s", "f", "d", "w"][chance.below(4) as usize];
        let run_id = format!("{kind}{number}");
        let headers: HashMap<_, _> =
            ["h", "i"].iter().map(|name| ((*name).to_owned(), chance.below(3).to_string())).collect();
        runtime.submit(RunSpec { run_id: Some(run_id.clone()), headers, ..RunSpec::default() }).await.unwrap();
        ids.push(run_id);
        tokio::time::sleep(Duration::from_millis(chance.below(20))).await;
        let other = &ids[chance.below(ids.len() as u64) as usize];
        match chance.below(6) {
            0 => drop(runtime.pause(other).await.unwrap()),
            1 => drop(runtime.resume(other).await.unwrap()),
            2 => drop(runtime.cancel(other, None).await.unwrap()),
            3 => drop(runtime.redrive(other, Default::default()).await),
            4 => drop(runtime.signal(other, Vec::new()).await.unwrap()),
            _ => drop(runtime.forget(other).await),
        }
    }
    settle_down().await;
    ids
}

/// A time at, just before or just after one of those that matter, or none.
fn time(chance: &mut Chance, times: &[SystemTime]) -> Option<SystemTime> {
    let at = times[chance.below(times.len() as u64) as usize];
    match chance.below(8) {
        0 => Some(at),
        1 => Some(at + Duration::from_millis(1)),
        2 => Some(at - Duration::from_millis(1)),
        3 => Some([SystemTime::UNIX_EPOCH, at + Duration::from_secs(1 << 40)][chance.below(2) as usize]),
        _ => None,
    }
}

fn filter(chance: &mut Chance, times: &[SystemTime]) -> RunFilter {
    let header = (chance.below(3) == 0)
        .then(|| (["h", "i", "j"][chance.below(3) as usize].to_owned(), chance.below(3).to_string()));
    let state = (chance.below(2) == 0).then(|| STATES[chance.below(6) as usize]);
    RunFilter {
        header,
        state,
        since: time(chance, times),
        since_before: time(chance, times),
        submitted: time(chance, times),
        submitted_before: time(chance, times),
    }
}

fn takes(filter: &RunFilter, run: &RunStatus) -> bool {
    filter.header.as_ref().is_none_or(|(name, value)| run.headers.get(name) == Some(value))
        && filter.state.is_none_or(|state| run.state == state)
        && filter.since.is_none_or(|since| since <= run.since)
        && filter.since_before.is_none_or(|before| run.since < before)
        && filter.submitted.is_none_or(|submitted| submitted <= run.submitted_at)
        && filter.submitted_before.is_none_or(|before| run.submitted_at < before)
}

async fn check(seed: u64) -> usize {
    let (world, mut chance) = (World::without_hook(script()), Chance::of(seed));
    let (runtime, _running) = world.running();
    let mut runs = Vec::new();
    for run_id in live(&runtime, &mut chance).await {
        runs.extend(runtime.status(&run_id).await.unwrap());
    }
    let times: Vec<_> = runs.iter().flat_map(|run| [run.since, run.submitted_at]).collect();
    let mut found = 0;
    for _ in 0..100 {
        let filter = filter(&mut chance, &times);
        let by_state = filter.header.is_none() && filter.state.is_some();
        let at = |run: &RunStatus| if by_state { run.since } else { run.submitted_at };
        let mut expected: Vec<_> = runs.iter().filter(|run| takes(&filter, run)).cloned().collect();
        expected.sort_by_key(|run| (at(run), run.run_id.clone()));
        assert_eq!(listed(&runtime, filter.clone(), RunOrder::OldestFirst).await, expected, "seed {seed}: {filter:?}");
        assert_eq!(runtime.count(filter.clone()).await.unwrap(), expected.len() as u64, "seed {seed}: {filter:?}");
        found += expected.len();
        expected.reverse();
        assert_eq!(listed(&runtime, filter.clone(), RunOrder::NewestFirst).await, expected, "seed {seed}: {filter:?}");
    }
    found
}

#[tokio::test(start_paused = true)]
async fn listings_and_counts_agree_with_the_runs_one_by_one() {
    for seed in 0..5 {
        assert!(check(seed).await > 100);
    }
}

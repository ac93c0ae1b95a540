//! What a listing reads depends on what it tells of, not on how many runs there are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use workflow_runtime::port::Clock;
use workflow_runtime::{RunFilter, RunOrder, RunSpec, RunState};

use super::{listed, of};
use crate::scripted::{Runtime, Scripted, World};
use crate::watched::Watched;

const RUNS: usize = 1_000;
/// How many of them are listed.
const SOME: usize = 20;
/// Places in an index that are read at once.
const PAGE: usize = 256;

/// Many runs, some of which have a header of their own, some are paused, and some came last. When these came.
async fn many(world: &World, runtime: &Runtime) -> SystemTime {
    for number in 0..RUNS - SOME {
        let headers = HashMap::from([("kind".to_owned(), (if number < SOME { "rare" } else { "common" }).to_owned())]);
        let run_id = format!("run-{number}");
        runtime.submit(RunSpec { run_id: Some(run_id.clone()), headers, ..RunSpec::default() }).await.unwrap();
        if number % (RUNS / SOME) == 0 {
            runtime.pause(&run_id).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let came = SystemTime::from(world.disk.clock().now());
    for number in 0..SOME {
        let run_id = Some(format!("late-{number}"));
        runtime.submit(RunSpec { run_id, ..RunSpec::default() }).await.unwrap();
    }
    came
}

async fn check(port: &Watched, runtime: &Runtime, filter: RunFilter) {
    for order in [RunOrder::OldestFirst, RunOrder::NewestFirst] {
        port.take();
        let found = listed(runtime, filter.clone(), order).await.len();
        assert!((SOME - 1..=SOME).contains(&found), "{found}");
        let log = port.take();
        let read: usize = log.scans.iter().map(|(_, entries)| entries).sum();
        assert_eq!((log.commits.len(), log.scans.len()), (0, 1), "{filter:?}");
        assert!(read <= PAGE, "{read} places for {filter:?}");
        assert!(log.gets.len() <= 2 * found + 2, "{} rows for {filter:?}", log.gets.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_by_state_header_or_time_reads_the_runs_that_it_tells_of() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let port = Watched::new(Arc::new(world.queue.clone()));
    let runtime = world.over(Arc::new(port.clone()));
    let came = many(&world, &runtime).await;
    check(&port, &runtime, of(RunState::Paused)).await;
    let header = Some(("kind".to_owned(), "rare".to_owned()));
    check(&port, &runtime, RunFilter { header, ..RunFilter::default() }).await;
    check(&port, &runtime, RunFilter { submitted: Some(came), ..RunFilter::default() }).await;
    check(&port, &runtime, RunFilter { since: Some(came), ..of(RunState::Active) }).await;
    let first = RunFilter { submitted_before: Some(came), ..RunFilter::default() };
    let all = RunFilter::default();
    for (filter, count) in
        [(of(RunState::Paused), SOME), (of(RunState::Active), RUNS - SOME), (all, RUNS), (first, RUNS - SOME)]
    {
        port.take();
        assert!(runtime.count(filter.clone()).await.unwrap().abs_diff(count as u64) <= 1);
        let log = port.take();
        assert_eq!(log.gets.len(), 0, "a count reads an index and nothing else: {filter:?}");
        assert!(log.scans.len() <= count / PAGE + 1);
    }
}

/// Who takes only the first of many reads only the first of many.
#[tokio::test(start_paused = true)]
async fn a_listing_that_is_not_read_to_its_end_reads_no_more_than_it_has_to() {
    use futures::StreamExt;
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let port = Watched::new(Arc::new(world.queue.clone()));
    let runtime = world.over(Arc::new(port.clone()));
    many(&world, &runtime).await;
    port.take();
    let found = runtime.runs(RunFilter::default(), RunOrder::NewestFirst).take(10).collect::<Vec<_>>().await;
    assert!(found.iter().all(|run| run.as_ref().unwrap().run_id.starts_with("late-")));
    let log = port.take();
    assert!(log.scans.len() == 1 && log.gets.len() <= 60, "{} rows", log.gets.len());
}

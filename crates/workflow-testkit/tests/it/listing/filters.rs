//! Which runs a filter takes, in which order, and that a count says the same.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use workflow_runtime::port::{Clock, Commit, KvStore};
use workflow_runtime::{Error, RunFilter, RunOrder, RunSpec, RunState, StepError, StepOutcome};

use super::{STATES, ids, listed, of};
use crate::scripted::{Runtime, Scripted, World, settle_down, submit, until};

const MINUTE: Duration = Duration::from_secs(60);

/// Ends or waits as the id says.
fn script() -> Scripted {
    Scripted::new(|step| async move {
        match &*step.run_id {
            "succeeded" => Ok(StepOutcome::Succeed { result: Vec::new() }),
            "failed" => Err(StepError::permanent("no")),
            "active" => Ok(StepOutcome::continue_after(Vec::new(), 1_000 * MINUTE)),
            _ => Ok(StepOutcome::continue_on_signal(Vec::new(), step.run_id, Duration::MAX)),
        }
    })
}

fn name(state: RunState) -> String {
    format!("{state:?}").to_lowercase()
}

/// A run in each state.
async fn one_in_each(runtime: &Runtime) {
    for state in STATES {
        let run_id = name(state);
        submit(runtime, &run_id).await;
        match state {
            RunState::Paused => drop(runtime.pause(&run_id).await.unwrap()),
            RunState::Cancelled => drop(runtime.cancel(&run_id, None).await.unwrap()),
            _ => {}
        }
        until(runtime, &run_id, |status| status.state == state).await;
    }
    settle_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_is_listed_in_its_state_and_in_no_other() {
    let mut world = World::without_hook(script());
    let (runtime, running) = world.running();
    one_in_each(&runtime).await;
    running.shutdown().await.unwrap();
    world.crash();
    let runtime = world.runtime();
    for state in STATES {
        for order in [RunOrder::OldestFirst, RunOrder::NewestFirst] {
            let found = listed(&runtime, of(state), order).await;
            assert_eq!(found.len(), 1, "{state:?}: {found:?}");
            assert_eq!(found[0], runtime.status(&name(state)).await.unwrap().unwrap());
        }
        assert_eq!(runtime.count(of(state)).await.unwrap(), 1);
    }
    let all = ids(&runtime, RunFilter::default(), RunOrder::OldestFirst).await;
    assert_eq!(all, STATES.map(name));
    assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), 6);
}

/// The listing of a reader that writes nothing.
#[tokio::test(start_paused = true)]
async fn what_never_was_is_listed_nowhere() {
    let world = World::without_hook(script());
    let runtime = world.runtime();
    let header = Some(("a".to_owned(), "b".to_owned()));
    let filters = [RunFilter::default(), of(RunState::Failed), RunFilter { header, ..RunFilter::default() }];
    for filter in filters {
        assert_eq!(ids(&runtime, filter.clone(), RunOrder::default()).await, Vec::<String>::new());
        assert_eq!(runtime.count(filter).await.unwrap(), 0);
    }
    assert_eq!(world.disk.operations(), 0);
}

/// Several pages, in both orders, by submission, state and header.
#[tokio::test(start_paused = true)]
async fn a_listing_of_many_pages_is_whole_and_in_order() {
    let world = World::without_hook(script());
    let runtime = world.runtime();
    let names: Vec<_> = (0..600).map(|number| format!("run-{number:03}")).collect();
    let headers = HashMap::from([("h".to_owned(), "v".to_owned())]);
    for run_id in &names {
        let spec = RunSpec { run_id: Some(run_id.clone()), headers: headers.clone(), ..RunSpec::default() };
        runtime.submit(spec).await.unwrap();
    }
    let header = Some(("h".to_owned(), "v".to_owned()));
    let by_header = RunFilter { header, ..RunFilter::default() };
    let both = RunFilter { state: Some(RunState::Active), ..by_header.clone() };
    for filter in [RunFilter::default(), of(RunState::Active), by_header, both] {
        assert_eq!(ids(&runtime, filter.clone(), RunOrder::OldestFirst).await, names);
        let mut newest = ids(&runtime, filter.clone(), RunOrder::NewestFirst).await;
        newest.reverse();
        assert_eq!(newest, names);
        assert_eq!(runtime.count(filter).await.unwrap(), 600);
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_is_its_name_and_its_whole_value() {
    let world = World::without_hook(script());
    let runtime = world.runtime();
    let headers = [("a", "b"), ("a", ""), ("ab", ""), ("a", "bc"), ("b", "a"), ("a", "b "), ("A", "b"), ("a/", "b")];
    for (number, (name, value)) in headers.iter().enumerate() {
        let headers = HashMap::from([((*name).to_owned(), (*value).to_owned())]);
        let spec = RunSpec { run_id: Some(number.to_string()), headers, ..RunSpec::default() };
        runtime.submit(spec).await.unwrap();
    }
    for (number, (name, value)) in headers.iter().enumerate() {
        let header = Some(((*name).to_owned(), (*value).to_owned()));
        let filter = RunFilter { header, ..RunFilter::default() };
        assert_eq!(ids(&runtime, filter, RunOrder::default()).await, [number.to_string()]);
    }
}

#[tokio::test(start_paused = true)]
async fn times_are_from_the_first_and_before_the_second() {
    let world = World::without_hook(script());
    let runtime = world.runtime();
    let now = || SystemTime::from(world.disk.clock().now());
    let mut submitted = Vec::new();
    for run_id in ["0", "1", "2"] {
        submitted.push(now());
        submit(&runtime, run_id).await;
        tokio::time::sleep(MINUTE).await;
    }
    let between = |from: Option<SystemTime>, before: Option<SystemTime>| RunFilter {
        submitted: from,
        submitted_before: before,
        ..RunFilter::default()
    };
    let cases = [
        (between(Some(submitted[1]), None), "12"),
        (between(None, Some(submitted[1])), "0"),
        (between(Some(submitted[1]), Some(submitted[2])), "1"),
        (between(Some(submitted[1]), Some(submitted[1])), ""),
        (between(Some(submitted[2]), Some(submitted[0])), ""),
        (between(Some(SystemTime::UNIX_EPOCH), None), "012"),
        (between(Some(SystemTime::UNIX_EPOCH - MINUTE), Some(SystemTime::UNIX_EPOCH)), ""),
        (between(Some(submitted[2] + Duration::from_millis(1)), None), ""),
    ];
    for (filter, expected) in cases {
        for filter in [filter.clone(), RunFilter { state: Some(RunState::Active), ..filter }] {
            assert_eq!(ids(&runtime, filter.clone(), RunOrder::OldestFirst).await.concat(), expected, "{filter:?}");
            assert_eq!(runtime.count(filter).await.unwrap(), expected.len() as u64);
        }
    }
}

async fn write(world: &World, commit: Commit) {
    assert!(world.queue.commit(vec![commit]).await.iter().all(Result::is_ok));
}

/// One run's record does not read, another's specification, and a key of the index is none.
#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_read_is_an_error_in_its_place_and_the_listing_goes_on() {
    let world = World::without_hook(script());
    let runtime = world.runtime();
    for run_id in ["0", "1", "2", "3", "4"] {
        submit(&runtime, run_id).await;
        tokio::time::sleep(MINUTE).await;
    }
    let record = "workflow/workflow-steps/run/1".into();
    let entries = world.disk.entries();
    let of_run = |key: &[u8]| key.escape_ascii().to_string().contains("/of/3/");
    let spec = entries.iter().map(|(key, _)| key).find(|key| of_run(key)).unwrap().clone();
    let strange = "workflow/workflow-steps/submitted/strange".into();
    let puts = vec![(record, "none".into()), (spec, "none".into()), (strange, "".into())];
    write(&world, Commit { puts, ..Commit::default() }).await;
    let header_less = [RunFilter::default(), of(RunState::Active)];
    for filter in header_less {
        let mut found = Vec::new();
        let mut runs = Box::pin(runtime.runs(filter.clone(), RunOrder::OldestFirst));
        loop {
            match runs.try_next().await {
                Ok(Some(run)) => found.push(run.run_id),
                Ok(None) => break,
                Err(error) => {
                    assert!(error.is_permanent() && matches!(error, Error::Effects(_)), "{error:?}");
                    found.push("corrupt".to_owned());
                }
            }
        }
        assert_eq!(found, ["0", "corrupt", "2", "corrupt", "4"]);
        assert!(runtime.count(filter).await.unwrap() >= 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_a_transient_error() {
    let world = World::without_hook(script());
    let port =
        workflow_testkit::FaultyPort::new(std::sync::Arc::new(world.queue.clone()), workflow_testkit::Plan::none());
    let runtime = world.over(std::sync::Arc::new(port.clone()));
    submit(&runtime, "0").await;
    port.set_health(workflow_testkit::Health::Down);
    let found: Result<Vec<_>, _> = runtime.runs(RunFilter::default(), RunOrder::default()).try_collect().await;
    assert!(!found.unwrap_err().is_permanent());
    assert!(!runtime.count(RunFilter::default()).await.unwrap_err().is_permanent());
    port.set_health(workflow_testkit::Health::Well);
    assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), 1);
}

//! What `submit` promises: one run per id, durable, refused whole when a part is out of bounds.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use workflow_runtime::{Error, NoopTerminalHook, RunSpec, StepOutcome, open};

use crate::support::{Runner, World, spec, succeed};

#[tokio::test]
async fn the_same_submission_again_is_a_duplicate() {
    let world = World::new(Runner::sync(succeed)).await;
    let first = world.runtime.submit(spec("a", "1")).await.unwrap();
    assert!(first.newly_submitted);
    let again = world.runtime.submit(RunSpec { priority: Some(1), ..spec("a", "1") }).await.unwrap();
    assert!(!again.newly_submitted);
    let end = world.runtime.wait("a").await.unwrap();
    let after = world.runtime.submit(spec("a", "1")).await.unwrap();
    assert_eq!((after.newly_submitted, after.end), (false, Some(end)));
    world.close().await;
}

#[tokio::test]
async fn another_input_is_a_mismatch_before_and_after_the_end() {
    let world = World::new(Runner::sync(succeed)).await;
    let delayed = RunSpec { run_at: Some(SystemTime::now() + Duration::from_secs(600)), ..spec("later", "1") };
    world.runtime.submit(delayed).await.unwrap();
    world.end_of(spec("ended", "1")).await;
    for id in ["later", "ended"] {
        let refused = world.runtime.submit(spec(id, "2")).await.unwrap_err();
        assert!(matches!(&refused, Error::InputMismatch(named) if named == id) && refused.is_permanent());
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_tasks_one_makes_the_run() {
    let world = World::new(Runner::sync(succeed)).await;
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let runtime = world.runtime.clone();
        let input = if task % 2 == 0 { "even" } else { "odd" };
        tasks.spawn(async move { (input, runtime.submit(spec("one", input)).await) });
    }
    let (mut made, mut duplicates, mut mismatches) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut jobs = 0;
    while let Some(answer) = tasks.join_next().await {
        match answer.unwrap() {
            (input, Ok(outcome)) if outcome.newly_submitted => {
                made.insert(input);
                jobs += 1;
            }
            (input, Ok(_)) => drop(duplicates.insert(input)),
            (input, Err(Error::InputMismatch(_))) => drop(mismatches.insert(input)),
            (_, Err(error)) => panic!("{error}"),
        }
    }
    assert_eq!((made.len(), jobs), (1, 1));
    assert_eq!(duplicates, made);
    assert!(mismatches.is_disjoint(&made) && mismatches.len() == 1);
    let end = world.runtime.wait("one").await.unwrap();
    assert_eq!(end.result.as_deref(), made.iter().next().map(|input| input.as_bytes()));
    world.close().await;
}

#[tokio::test]
async fn kv_writes_commit_with_the_run_and_are_dropped_on_a_duplicate() {
    let world = World::new(Runner::sync(succeed)).await;
    let writes = |value: &str| HashMap::from([(b"order".to_vec(), value.into())]);
    world.runtime.submit(RunSpec { kv_writes: writes("first"), ..spec("a", "1") }).await.unwrap();
    assert_eq!(world.value("order").await.as_deref(), Some("first"));
    world.runtime.submit(RunSpec { kv_writes: writes("second"), ..spec("a", "1") }).await.unwrap();
    assert_eq!(world.value("order").await.as_deref(), Some("first"));
    world.close().await;
}

#[tokio::test]
async fn run_ids_are_made_when_none_is_given() {
    let world = World::new(Runner::sync(succeed)).await;
    let mut ids = HashSet::new();
    for _ in 0..100 {
        ids.insert(world.runtime.submit(RunSpec::default()).await.unwrap().run_id);
    }
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| id.len() == 26));
    world.close().await;
}

#[tokio::test]
async fn bad_input_is_refused_with_nothing_written() {
    let world = World::new(Runner::sync(succeed)).await;
    let refused = async |spec: RunSpec| {
        let error = world.runtime.submit(spec).await.expect_err("out of bounds");
        assert!(error.is_permanent(), "{error}");
        error
    };
    for id in ["", "a/b", "..", "a b", "é", "a\0", &"x".repeat(129)] {
        assert!(matches!(refused(spec(id, "")).await, Error::InvalidRunId { .. }));
    }
    let attempts = RunSpec { max_attempts_per_step: Some(0), ..spec("a", "") };
    assert!(matches!(refused(attempts).await, Error::InvalidOption { .. }));
    let headers = HashMap::from([("workflow.x".to_owned(), String::new())]);
    assert!(matches!(refused(RunSpec { headers, ..spec("a", "") }).await, Error::InvalidHeader { .. }));
    for key in [b"".to_vec(), b"workflow/run".to_vec(), vec![b'k'; 1025]] {
        let kv_writes = HashMap::from([(key, b"v".to_vec())]);
        assert!(matches!(refused(RunSpec { kv_writes, ..spec("a", "") }).await, Error::Effects(_)));
    }
    let input = vec![0; 64 * 1024 * 1024 + 1];
    assert!(matches!(refused(RunSpec { input, ..spec("a", "") }).await, Error::Effects(_)));
    assert_eq!(world.runtime.status("a").await.unwrap(), None);
    assert!(world.runtime.submit(spec(&"x".repeat(128), "")).await.unwrap().newly_submitted);
    world.close().await;
}

#[tokio::test]
async fn inputs_of_every_size_come_back_whole() {
    let world = World::new(Runner::sync(succeed)).await;
    for len in [0, 1, 32 * 1024, 32 * 1024 + 1, 300 * 1024, 64 * 1024 * 1024] {
        let input: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let submitted = world.runtime.submit(RunSpec { input: input.clone(), ..RunSpec::default() }).await.unwrap();
        let end = world.runtime.wait(&submitted.run_id).await.unwrap();
        assert!(end.result == Some(input), "{len} bytes");
    }
    world.close().await;
}

#[tokio::test]
async fn extreme_attempts_and_times_are_taken_as_they_are() {
    let world = World::new(Runner::sync(succeed)).await;
    let many = RunSpec { max_attempts_per_step: Some(u32::MAX), ..spec("many", "") };
    assert!(world.end_of(many).await.error.is_none());
    let past = RunSpec { run_at: Some(SystemTime::UNIX_EPOCH - Duration::from_secs(9)), ..spec("past", "") };
    assert!(world.end_of(past).await.error.is_none());
    let never = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1 << 40));
    world.runtime.submit(RunSpec { run_at: never, ..spec("never", "") }).await.unwrap();
    let status = world.runtime.status("never").await.unwrap().unwrap();
    assert!(matches!(status.phase, workflow_runtime::RunPhase::Delayed { .. }));
    world.close().await;
}

#[tokio::test]
async fn lower_priorities_run_first_and_survive_a_new_runtime() {
    let storage = open("memory:").await.unwrap();
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let runner = {
        let order = order.clone();
        Runner::sync(move |step| {
            order.lock().unwrap().push(step.run_id.clone());
            succeed(step)
        })
    };
    let submitter = storage.runtime(runner.clone(), NoopTerminalHook).build().unwrap();
    for (id, priority) in [("last", Some(5_000)), ("middle", None), ("also-middle", Some(1_000)), ("first", Some(7))] {
        submitter.submit(RunSpec { priority, ..spec(id, "") }).await.unwrap();
    }
    let worker = storage.runtime(runner, NoopTerminalHook).max_concurrent_steps(1).build().unwrap();
    let handle = worker.spawn(std::future::pending());
    for id in ["first", "middle", "also-middle", "last"] {
        worker.wait(id).await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), ["first", "middle", "also-middle", "last"]);
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn headers_reach_every_step() {
    let world = World::new(Runner::sync(|step| {
        assert_eq!(step.headers["tenant"], "a");
        if step.step_number == 0 { Ok(StepOutcome::continue_now(vec![])) } else { succeed(step) }
    }))
    .await;
    let headers = HashMap::from([("tenant".to_owned(), "a".to_owned())]);
    let end = world.end_of(RunSpec { headers: headers.clone(), ..spec("a", "") }).await;
    assert_eq!((end.error, end.headers), (None, headers));
    world.close().await;
}

//! Reading a store beside the process that writes it, and the history of runs.

use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{
    Error, HistoryEntry, HistoryLevel, NoopTerminalHook, RunPhase, RunSpec, StepEnd, StepError, StepOutcome, Storage,
    TerminalStatus, WorkflowRuntime, open, open_reader,
};

use crate::support::{Runner, World, at_once, spec, succeed};

/// A store in a directory of its own.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self) -> String {
        format!("file://{}", self.0.path().display())
    }

    async fn open(&self) -> (Storage, WorkflowRuntime<Runner, NoopTerminalHook>) {
        let storage = open(&self.url()).await.unwrap();
        let builder = storage.runtime(timeline(), NoopTerminalHook).retry_policy(at_once());
        let runtime = builder.history(HistoryLevel::Full).build().unwrap();
        (storage, runtime)
    }
}

/// A step at once, a step later with a failed attempt and a large payload, a success; two effects.
fn timeline() -> Runner {
    Runner::sync(|step| match (step.step_number, step.attempts) {
        (0, _) => {
            step.effects.put("first", "1")?;
            Ok(StepOutcome::continue_now(vec![7; 100_000]))
        }
        (1, 1) => Err(StepError::transient("again")),
        (1, _) => Ok(StepOutcome::continue_after(b"last".to_vec(), Duration::from_millis(5))),
        _ => {
            step.effects.put("second", "2")?;
            succeed(step)
        }
    })
}

fn shape(history: &[HistoryEntry]) -> Vec<(u32, u32, StepEnd, Option<usize>)> {
    history.iter().map(|row| (row.step, row.attempt, row.end, row.payload.as_ref().map(Vec::len))).collect()
}

#[tokio::test]
async fn a_full_history_tells_of_every_step_and_keeps_its_payload() {
    let directory = Directory::new();
    let (storage, runtime) = directory.open().await;
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "in")).await.unwrap();
    runtime.wait("a").await.unwrap();
    let history: Vec<_> = runtime.history("a").try_collect().await.unwrap();
    assert_eq!(
        shape(&history),
        [
            (0, 1, StepEnd::Continued, Some(2)),
            (1, 2, StepEnd::Delayed, Some(100_000)),
            (2, 1, StepEnd::Succeeded, Some(4)),
        ]
    );
    assert!(history.iter().all(|row| row.started_at <= row.ended_at));
    assert!(history.windows(2).all(|rows| rows[0].ended_at <= rows[1].started_at));
    assert!(runtime.history("nobody").try_collect::<Vec<_>>().await.unwrap().is_empty());
    assert!(runtime.history("a/b").try_collect::<Vec<_>>().await.is_err());
    handle.shutdown().await.unwrap();
    drop(runtime);
    storage.close().await.unwrap();
}

#[tokio::test]
async fn the_other_levels_tell_of_the_end_or_of_nothing() {
    for (level, rows) in [(HistoryLevel::Ends, 1), (HistoryLevel::Off, 0)] {
        let world = World::with(timeline(), NoopTerminalHook, |builder| builder.history(level)).await;
        world.end_of(spec("a", "in")).await;
        let history: Vec<_> = world.runtime.history("a").try_collect().await.unwrap();
        assert_eq!(shape(&history), [(2, 1, StepEnd::Succeeded, None)][..rows]);
        world.close().await;
    }
}

#[tokio::test]
async fn a_long_history_comes_in_order() {
    let runner =
        Runner::sync(
            |step| {
                if step.step_number == 599 { succeed(step) } else { Ok(StepOutcome::continue_now(vec![])) }
            },
        );
    let world = World::with(runner, NoopTerminalHook, |builder| builder.history(HistoryLevel::Full)).await;
    world.end_of(spec("a", "")).await;
    let steps: Vec<_> = world.runtime.history("a").map_ok(|row| row.step).try_collect().await.unwrap();
    assert_eq!(steps, (0..600).collect::<Vec<_>>());
    world.close().await;
}

#[tokio::test]
async fn a_failed_run_ends_its_history_with_the_failure() {
    let runner = Runner::sync(|_| Err(StepError::transient("never")));
    let world = World::with(runner, NoopTerminalHook, |builder| builder.max_attempts_per_step(3)).await;
    world.end_of(spec("a", "")).await;
    let history: Vec<_> = world.runtime.history("a").try_collect().await.unwrap();
    assert_eq!(shape(&history), [(0, 3, StepEnd::Failed, None)]);
    world.close().await;
}

#[tokio::test]
async fn a_reader_sees_what_is_durable_and_disturbs_nobody() {
    let directory = Directory::new();
    let (storage, runtime) = directory.open().await;
    let handle = runtime.spawn(std::future::pending());
    for round in 0..20 {
        let id = format!("run-{round}");
        runtime.submit(spec(&id, "in")).await.unwrap();
        let end = runtime.wait(&id).await.unwrap();
        let reader = open_reader(&directory.url()).await.unwrap();
        let runs = reader.runs("workflow-steps").unwrap();
        assert_eq!(runs.run_end(&id).await.unwrap().as_ref(), Some(&end));
        let status = runs.status(&id).await.unwrap().unwrap();
        assert!(matches!(status.phase, RunPhase::Ended { status: TerminalStatus::Succeeded, .. }));
        let history: Vec<_> = runs.history(&id).try_collect().await.unwrap();
        assert_eq!(history, runtime.history(&id).try_collect::<Vec<_>>().await.unwrap());
        let rows: Vec<_> = reader.kv().scan(b"").try_collect().await.unwrap();
        assert_eq!(rows, runtime.kv().scan(b"").try_collect::<Vec<_>>().await.unwrap());
        assert_eq!(runs.status("nobody").await.unwrap(), None);
        assert_eq!(reader.runs("another").unwrap().status(&id).await.unwrap(), None);
        reader.close().await.unwrap();
    }
    handle.shutdown().await.unwrap();
    drop(runtime);
    storage.close().await.unwrap();
}

#[tokio::test]
async fn a_reader_that_stays_open_catches_up() {
    let directory = Directory::new();
    let (storage, runtime) = directory.open().await;
    runtime.submit(spec("first", "in")).await.unwrap();
    let reader = open_reader(&directory.url()).await.unwrap();
    let runs = reader.runs("workflow-steps").unwrap();
    assert!(runs.status("first").await.unwrap().is_some());
    assert_eq!(runs.status("second").await.unwrap(), None);
    runtime.submit(RunSpec { run_id: Some("second".to_owned()), ..RunSpec::default() }).await.unwrap();
    crate::support::until(async || runs.status("second").await.unwrap().is_some()).await;
    drop(runtime);
    storage.close().await.unwrap();
    assert!(runs.status("second").await.unwrap().is_some());
}

#[tokio::test]
async fn a_reader_reads_a_store_that_nobody_has_open() {
    let directory = Directory::new();
    let (storage, runtime) = directory.open().await;
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "in")).await.unwrap();
    let end = runtime.wait("a").await.unwrap();
    handle.shutdown().await.unwrap();
    drop(runtime);
    storage.close().await.unwrap();
    let reader = open_reader(&directory.url()).await.unwrap();
    assert_eq!(reader.runs("workflow-steps").unwrap().run_end("a").await.unwrap(), Some(end));
}

#[tokio::test]
async fn where_there_is_no_store_there_is_nothing_to_read() {
    let directory = Directory::new();
    let missing = format!("{}/missing", directory.url());
    for url in [directory.url(), missing] {
        assert!(matches!(open_reader(&url).await, Err(Error::NoStore { .. })));
    }
    assert!(matches!(open_reader("memory:").await, Err(Error::InvalidUrl { .. })));
    assert!(!directory.0.path().join("missing").exists());
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_who_holds_the_store() {
    let directory = Directory::new();
    let (storage, runtime) = directory.open().await;
    let refused = open(&directory.url()).await.unwrap_err();
    assert!(matches!(refused, Error::Held { .. }) && !refused.is_permanent());
    let line = refused.to_string();
    assert!(line.contains(&format!("process {}", std::process::id())) && !line.contains('\n'), "{line}");
    drop(storage);
    assert!(matches!(open(&directory.url()).await, Err(Error::Held { .. })), "a runtime still holds it");
    runtime.submit(spec("a", "in")).await.unwrap();
    drop(runtime);
    let (storage, runtime) = directory.open().await;
    assert!(!runtime.submit(spec("a", "in")).await.unwrap().newly_submitted);
    drop(runtime);
    storage.close().await.unwrap();
    open(&directory.url()).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn urls_that_look_like_something_else_are_refused() {
    for url in
        ["", "/tmp/x", "file:relative", "file:relative/path", "memory:x", "memory://", "ftp://host", "file://host/x"]
    {
        assert!(matches!(open(url).await, Err(Error::InvalidUrl { .. })), "{url}");
        assert!(matches!(open_reader(url).await, Err(Error::InvalidUrl { .. })), "{url}");
    }
}

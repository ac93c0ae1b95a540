//! A store with a run in every state, signals of every kind, and objects of every size from 101 to 106 bytes.

use std::time::{Duration, SystemTime};

use workflow_runtime::{
    HistoryLevel, PauseOutcome, RunSpec, SignalOptions, Step, StepError, StepOutcome, TerminalStatus, Violation,
};

use crate::scripted::{Runtime, Scripted, World, until_it_waits};

const HOUR: Duration = Duration::from_secs(3_600);

/// A world whose runs do what their ids say.
pub(super) fn world() -> World {
    World::new(Scripted::new(run)).with(|settings| {
        settings.inline_limit = 64;
        settings.history = HistoryLevel::Full;
        settings.replay = true;
    })
}

async fn run(step: Step) -> Result<StepOutcome, StepError> {
    Ok(match (step.run_id.as_str(), step.step_number) {
        ("done", 0) => {
            // Two more with its quotes.
            step.run_memo.memoized("large", async { Ok::<_, StepError>("m".repeat(102)) }).await?;
            step.memo.memoized("small", async { Ok::<_, StepError>(7) }).await?;
            StepOutcome::continue_now(vec![1; 105])
        }
        ("done", _) => StepOutcome::Succeed { result: vec![1; 101] },
        ("failed", 0) => StepOutcome::continue_now(vec![1; 103]),
        ("failed", _) => return Err(StepError::permanent("it fails")),
        ("waiting", _) => StepOutcome::continue_on_any_signal(Vec::new(), ["k", "l"], Duration::MAX),
        ("timed", _) => StepOutcome::continue_on_signal(Vec::new(), "t", HOUR),
        (other, _) => panic!("{other} does not start"),
    })
}

/// A run that starts tomorrow.
fn later(world: &World, run_id: &str) -> RunSpec {
    let now: SystemTime = workflow_runtime::port::Clock::now(world.disk.clock()).into();
    RunSpec { run_id: Some(run_id.to_owned()), run_at: Some(now + 24 * HOUR), ..RunSpec::default() }
}

/// Fills the store and leaves it at rest.
pub(super) async fn fill(world: &World) -> Runtime {
    let (runtime, running) = world.running();
    for run_id in ["done", "failed", "waiting", "timed"] {
        let input = b"in".to_vec();
        runtime.submit(RunSpec { run_id: Some(run_id.to_owned()), input, ..RunSpec::default() }).await.unwrap();
    }
    for run_id in ["waiting", "timed"] {
        until_it_waits(&runtime, run_id).await;
    }
    assert_eq!(runtime.wait("done").await.unwrap().status, TerminalStatus::Succeeded);
    assert_eq!(runtime.wait("failed").await.unwrap().status, TerminalStatus::Failed);
    while world.hook.ends().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.shutdown().await.unwrap();
    let headers = [("team".to_owned(), "blue".to_owned())].into();
    runtime.submit(RunSpec { priority: Some(7), headers, ..later(world, "delayed") }).await.unwrap();
    for run_id in ["paused", "cancelled"] {
        runtime.submit(later(world, run_id)).await.unwrap();
    }
    assert_eq!(runtime.pause("paused").await.unwrap(), PauseOutcome::Paused);
    runtime.cancel("cancelled", None).await.unwrap();
    runtime.signal("b", vec![1; 106]).await.unwrap();
    runtime.signal_with("b", b"x".to_vec(), SignalOptions { id: Some("i".to_owned()) }).await.unwrap();
    runtime.signal("b", b"y".to_vec()).await.unwrap();
    runtime
}

/// Fails unless the store is clean.
pub(super) async fn is_clean(runtime: &Runtime, when: impl std::fmt::Display) {
    let found: Vec<String> = runtime.check().await.unwrap().iter().map(Violation::to_string).collect();
    assert!(found.is_empty(), "{when}: {found:#?}");
}

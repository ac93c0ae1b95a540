//! Runs of every kind, each with something of its own that has to go with it.

use std::collections::HashMap;
use std::time::Duration;

use workflow_runtime::port::Clock;
use workflow_runtime::{
    HistoryLevel, RedriveOptions, RedriveOutcome, RunSpec, Step, StepError, StepOutcome, TerminalStatus,
};

use crate::scripted::{Runtime, Scripted, Told, World, until_it_waits};

/// How long the runs of the zoo are kept.
pub(super) const KEPT: Duration = Duration::from_secs(60);

/// The runs, by name.
pub(super) const ZOO: [&str; 9] =
    ["succeeds", "fails", "gives-up", "panics", "signalled", "waits", "delayed", "redriven", "unheard"];

fn large(letter: u8) -> Vec<u8> {
    vec![letter; 100_000]
}

async fn script(step: Step) -> Result<StepOutcome, StepError> {
    if step.step_number == 0 {
        step.effects.put(format!("app/{}", step.run_id), "stays")?;
        step.memo.put("small", b"m").await?;
        step.memo.put("large", &large(b'm')).await?;
        step.run_memo.put("large", &large(b'r')).await?;
        return Ok(match &*step.run_id {
            "signalled" | "waits" => {
                StepOutcome::continue_on_signal(large(1), step.run_id.clone(), Duration::from_secs(100_000))
            }
            "delayed" => StepOutcome::continue_after(large(1), Duration::from_secs(100_000)),
            _ => StepOutcome::continue_now(large(1)),
        });
    }
    match &*step.run_id {
        "fails" => Ok(StepOutcome::Fail { reason: "no".to_owned() }),
        "gives-up" => Ok(StepOutcome::Cancel { reason: "no".to_owned() }),
        "panics" => panic!("of its own"),
        "signalled" | "redriven" | "unheard" => Err(StepError::permanent("no")),
        _ => Ok(StepOutcome::Succeed { result: large(2) }),
    }
}

/// A world in which everything is written down that can be, and whose hook never hears of one run.
pub(super) fn world() -> World {
    let mut world = World::new(Scripted::new(script)).with(|s| {
        s.retention = Some(KEPT);
        s.history = HistoryLevel::Full;
        s.replay = true;
        s.max_attempts_per_step = 1;
    });
    world.hook = Told::answering(|end| match &*end.run_id {
        "unheard" => Err(StepError::permanent("never")),
        _ => Ok(()),
    });
    world
}

/// Submits a run of the zoo and brings it to its end.
pub(super) async fn live(runtime: &Runtime, run_id: &str) {
    let headers = HashMap::from([("kind".to_owned(), run_id.to_owned()), ("of".to_owned(), "the zoo".to_owned())]);
    let input = large(0);
    let spec = RunSpec { run_id: Some(run_id.to_owned()), input, headers, priority: Some(7), ..RunSpec::default() };
    runtime.submit(spec).await.unwrap();
    match run_id {
        "signalled" => {
            until_it_waits(runtime, run_id).await;
            runtime.signal(run_id, large(3)).await.unwrap();
        }
        "waits" => {
            until_it_waits(runtime, run_id).await;
            runtime.cancel(run_id, None).await.unwrap();
        }
        "delayed" => {
            crate::scripted::until(runtime, run_id, |status| status.step == 1).await;
            runtime.cancel(run_id, Some("enough".to_owned())).await.unwrap();
        }
        "redriven" => {
            for step in [None, Some(0)] {
                assert_eq!(runtime.wait(run_id).await.unwrap().status, TerminalStatus::Failed);
                let options = RedriveOptions { step, payload: Some(large(4)) };
                assert_eq!(runtime.redrive(run_id, options).await.unwrap(), RedriveOutcome::Redriven);
            }
        }
        _ => {}
    }
    runtime.wait(run_id).await.unwrap();
}

/// Brings all runs of the zoo to their ends.
pub(super) async fn live_all(runtime: &Runtime) {
    futures::future::join_all(ZOO.map(|run_id| live(runtime, run_id))).await;
}

/// Waits until the queue's clock shows that all runs of the zoo are to be gone, and a little longer.
pub(super) async fn outlive(world: &World) {
    let end = world.disk.clock().now().after(KEPT);
    while world.disk.clock().now() < end.after(Duration::from_secs(130)) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

//! A busy life leaves nothing behind that must not be, whenever it is looked at and wherever the power is cut.

use std::cell::Cell;
use std::time::Duration;

use workflow_runtime::{
    HistoryLevel, RedriveOptions, RedriveOutcome, ResumeOutcome, RunSpec, SignalOptions, Step, StepError, StepOutcome,
};

use super::store::is_clean;
use crate::scripted::{Runtime, Scripted, World, until_it_waits};

/// Long enough for everything that happens at once.
const WHILE: Duration = Duration::from_secs(2);
const LARGE: usize = 100;

fn world() -> World {
    World::new(Scripted::new(run)).with(|settings| {
        settings.inline_limit = 64;
        settings.history = HistoryLevel::Full;
        settings.replay = true;
        settings.retention = None;
        settings.signal_ttl = 10 * WHILE;
    })
}

async fn run(step: Step) -> Result<StepOutcome, StepError> {
    step.effects.put(format!("log/{}", step.run_id), step.step_number.to_string())?;
    Ok(match (step.run_id.as_str(), step.step_number) {
        ("goes", 4) => StepOutcome::Succeed { result: vec![4; LARGE] },
        ("goes", number) => {
            step.memo.memoized("large", async { Ok::<_, StepError>("m".repeat(LARGE)) }).await?;
            step.run_memo.memoized("shared", async { Ok::<_, StepError>(number) }).await?;
            StepOutcome::continue_now(vec![1; LARGE + number as usize])
        }
        ("fails", 0) => StepOutcome::continue_now(vec![1; LARGE]),
        ("fails", _) if step.attempts == 1 => return Err(StepError::transient("it fails").retry_after(WHILE)),
        ("fails", _) => return Err(StepError::permanent("it fails")),
        ("delays", 0) => StepOutcome::continue_after(vec![1; LARGE], 2 * WHILE),
        (_, 0) => StepOutcome::continue_on_any_signal(vec![1; LARGE], ["a", "b"], 3 * WHILE),
        (_, 1) => StepOutcome::continue_on_signal(step.signal.unwrap_or_default(), "c", 3 * WHILE),
        (_, _) => StepOutcome::Succeed { result: step.payload },
    })
}

async fn send(runtime: &Runtime, key: &str, len: usize, id: Option<&str>) {
    let options = SignalOptions { id: id.map(str::to_owned) };
    runtime.signal_with(key, vec![7; len], options).await.unwrap();
}

/// Lives, and tells at each rest how far it is.
async fn live(world: &World, rest: impl AsyncFn(&'static str, &Runtime)) {
    let (runtime, _running) = world.running();
    for (run_id, priority) in [("goes", None), ("fails", Some(7)), ("delays", None), ("asks", None), ("lasts", Some(3))]
    {
        let headers = [("team".to_owned(), "blue".to_owned()), ("of".to_owned(), run_id.to_owned())].into();
        let input = b"in".to_vec();
        let spec = RunSpec { run_id: Some(run_id.to_owned()), input, headers, priority, ..RunSpec::default() };
        runtime.submit(spec).await.unwrap();
        if run_id == "asks" {
            until_it_waits(&runtime, run_id).await;
        }
    }
    runtime.wait("goes").await.unwrap();
    rest("one run has ended, two wait, one of them in vain", &runtime).await;
    send(&runtime, "b", LARGE, Some("i")).await;
    send(&runtime, "b", LARGE, Some("i")).await;
    for len in [1, LARGE, 2, LARGE] {
        send(&runtime, "x", len, None).await;
    }
    send(&runtime, "c", LARGE, Some("j")).await;
    rest("signals were received and buffered", &runtime).await;
    runtime.pause("delays").await.unwrap();
    runtime.wait("fails").await.unwrap();
    rest("one run is paused", &runtime).await;
    assert_eq!(runtime.clear_signal("x").await.unwrap(), 4);
    assert_eq!(runtime.redrive("fails", RedriveOptions::default()).await.unwrap(), RedriveOutcome::Redriven);
    rest("a buffer was cleared, and a run brought back", &runtime).await;
    runtime.wait("fails").await.unwrap();
    assert_eq!(runtime.resume("delays").await.unwrap(), ResumeOutcome::Resumed);
    runtime.cancel("delays", None).await.unwrap();
    rest("a run was resumed and cancelled", &runtime).await;
    let from_the_first = RedriveOptions { step: Some(0), payload: Some(vec![9; LARGE]) };
    assert_eq!(runtime.redrive("fails", from_the_first).await.unwrap(), RedriveOutcome::Redriven);
    runtime.redrive("delays", RedriveOptions::default()).await.unwrap();
    runtime.wait("asks").await.unwrap();
    runtime.wait("lasts").await.unwrap();
    runtime.wait("delays").await.unwrap();
    runtime.wait("fails").await.unwrap();
    rest("everything has ended", &runtime).await;
    send(&runtime, "y", LARGE, Some("i")).await;
    send(&runtime, "y", LARGE, None).await;
    tokio::time::sleep(20 * WHILE).await;
    rest("signals were forgotten", &runtime).await;
}

#[tokio::test(start_paused = true)]
async fn at_every_rest_it_is_clean() {
    let world = world();
    live(&world, async |when, runtime: &Runtime| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        is_clean(runtime, when).await;
    })
    .await;
    assert_eq!(world.rows("signal-item") + world.rows("signal-id") + world.rows("signal-expiry"), 0);
}

#[tokio::test(start_paused = true)]
async fn wherever_the_power_is_cut_it_is_clean() {
    let mut cuts = 0;
    loop {
        let mut world = world();
        world.disk.cut_power_after(cuts);
        let disk = world.disk.clone();
        let has_lived = tokio::select! {
            biased;
            () = disk.cut() => false,
            () = live(&world, async |_, _| ()) => true,
        };
        if has_lived {
            break;
        }
        world.crash();
        is_clean(&world.runtime(), format!("after a cut of {cuts}")).await;
        let (runtime, running) = world.running();
        tokio::time::sleep(10 * WHILE).await;
        is_clean(&runtime, format!("a while after a cut of {cuts}")).await;
        running.shutdown().await.unwrap();
        cuts += 1;
    }
    assert!(cuts > 100, "only {cuts} operations");
}

/// What is in somebody's hands is not at rest, and nothing is wrong all the same.
#[tokio::test(start_paused = true)]
async fn in_the_middle_of_everything_it_is_clean() {
    let world = world();
    let runtime = world.runtime();
    let checks = Cell::new(0);
    let checking = async {
        loop {
            is_clean(&runtime, format!("check {}", checks.get())).await;
            checks.set(checks.get() + 1);
            tokio::time::sleep(Duration::from_millis(7 + checks.get())).await;
        }
    };
    tokio::select! {
        biased;
        () = live(&world, async |_, _| ()) => {}
        () = checking => unreachable!("it goes on for ever"),
    }
    assert!(checks.get() > 100, "{}", checks.get());
}

//! One id, used again and again: no life of it sees anything of an earlier one.

use std::future::pending;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use workflow_runtime::port::Clock;
use workflow_runtime::{
    Error, HistoryEntry, HistoryLevel, RunSpec, RunState, SignalOutcome, Step, StepError, StepOutcome,
};
use workflow_testkit::Chance;

use crate::scripted::{RUN, Runtime, Scripted, World, text_of};

const MINUTE: Duration = Duration::from_secs(60);

/// Checks that a memo holds nothing, or what this life has put there.
async fn check_memo(memo: &workflow_runtime::Memo, key: &str, life: &[u8]) -> Result<(), StepError> {
    if let Some(found) = memo.get(key).await? {
        assert_eq!(found.get(..life.len()), Some(life), "of an earlier life");
    }
    Ok(())
}

/// What a life puts at a key: large in every third life.
fn of_life(life: &[u8]) -> Vec<u8> {
    let number: usize = std::str::from_utf8(life).unwrap().trim().parse().unwrap();
    let mut value = life.to_vec();
    value.resize(if number.is_multiple_of(3) { 40_000 } else { 10 }, b'.');
    value
}

async fn live(step: Step) -> Result<StepOutcome, StepError> {
    let life = step.payload.clone();
    check_memo(&step.memo, "m", &life).await?;
    check_memo(&step.run_memo, "r", &life).await?;
    step.memo.put("m", &of_life(&life)).await?;
    step.run_memo.put("r", &of_life(&life)).await?;
    if step.step_number == 0 {
        return Ok(StepOutcome::continue_on_signal(life, "k", Duration::MAX));
    }
    let told = text_of(&step);
    assert_eq!(told, format!("k={}", String::from_utf8_lossy(&life)), "the signal of another life");
    match life.last() {
        Some(b'0'..=b'2') => Err(StepError::permanent(told)),
        Some(b'3' | b'4') => Ok(StepOutcome::Fail { reason: told }),
        Some(b'5') => Ok(StepOutcome::Cancel { reason: told }),
        _ => Ok(StepOutcome::Succeed { result: of_life(&life) }),
    }
}

/// Lives to the end, which a process before this one may have brought. It may have been removed since: then the life is
/// lived once more.
async fn live_on(runtime: &Runtime, life: &str) {
    let spec = RunSpec { run_id: Some(RUN.to_owned()), input: life.into(), ..RunSpec::default() };
    let end = loop {
        // The life before may not be forgotten yet.
        if let Err(Error::InputMismatch(_)) = runtime.submit(spec.clone()).await {
            tokio::time::sleep(MINUTE).await;
            continue;
        }
        let state = runtime.status(RUN).await.unwrap().map(|status| status.state);
        if state == Some(RunState::Waiting) {
            assert_eq!(runtime.signal("k", life.into()).await.unwrap(), SignalOutcome::Delivered);
        }
        match runtime.run_end(RUN).await.unwrap() {
            Some(end) => break end,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    let told = end.error.unwrap_or_else(|| String::from_utf8(end.result.unwrap_or_default()).unwrap());
    assert!(told.contains(life), "{told:?} is not of life {life}");
}

/// Removes the run, or lets its time pass.
async fn end_of(runtime: &Runtime, forgets: bool) {
    if !forgets {
        return tokio::time::sleep(2 * MINUTE).await;
    }
    loop {
        match runtime.forget(RUN).await {
            Ok(_) => return,
            Err(Error::NotDone(_)) => tokio::time::sleep(Duration::from_secs(1)).await,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_life_of_an_id_sees_anything_of_an_earlier_one() {
    let (mut chance, mut deaths) = (Chance::of(23), 0);
    let mut world = World::new(Scripted::new(live)).with(|s| {
        (s.retention, s.history, s.replay) = (Some(MINUTE), HistoryLevel::Full, true);
        s.max_attempts_per_step = u32::MAX;
    });
    for number in 0..100 {
        let (life, begun) = (format!("{number:3}"), SystemTime::from(world.disk.clock().now()));
        let (power, forgets) = (chance.below(40), chance.below(2) == 0);
        let runtime = world.runtime();
        world.disk.cut_power_after(power);
        let whole = async {
            live_on(&runtime, &life).await;
            end_of(&runtime, forgets).await;
        };
        tokio::select! {
            biased;
            ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
            () = world.disk.cut() => deaths += 1,
            () = whole => {}
        }
        world.crash();
        let (runtime, running) = world.running();
        live_on(&runtime, &life).await;
        let history: Vec<HistoryEntry> = runtime.history(RUN).try_collect().await.unwrap();
        assert!(history.iter().all(|row| row.started_at >= begun && row.payload.as_deref() == Some(life.as_bytes())));
        end_of(&runtime, forgets).await;
        running.shutdown().await.unwrap();
        world.crash();
    }
    assert!(deaths > 30, "{deaths}");
    let (_runtime, _running) = world.running();
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

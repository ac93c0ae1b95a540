//! The object of a signal that a redriven step was called with: it stays for as long as a redrive may need it, or the
//! history tells of it, and no longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workflow_runtime::{HistoryLevel, RedriveOptions, RedriveOutcome, StepError, StepOutcome, TerminalStatus};

use crate::scripted::{RUN, Scripted, World, result_of, settle_down, submit, until_it_waits};

const LARGE: usize = 100_000;

/// Step 1 is called with a large signal, and fails in the first life of the run; step 2 fails in the second.
fn world(history: HistoryLevel) -> (World, Arc<AtomicU32>) {
    let lives = Arc::new(AtomicU32::new(1));
    let life = lives.clone();
    let world = World::new(Scripted::new(move |step| {
        let life = life.load(Ordering::Relaxed);
        async move {
            let len = step.signal.map_or(0, |signal| signal.len());
            match step.step_number {
                0 => Ok(StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX)),
                number if number == life => Err(StepError::permanent("no")),
                1 => Ok(StepOutcome::continue_now(len.to_string().into_bytes())),
                _ => Ok(StepOutcome::Succeed { result: step.payload }),
            }
        }
    }));
    (world.with(|settings| (settings.history, settings.retention) = (history, None)), lives)
}

/// Brings the run back from each of these steps, and expects so many objects after each of its ends. Then nothing is left
/// of it that is not gone with it.
async fn check(history: HistoryLevel, from: &[Option<u32>], objects: &[usize]) {
    let (world, lives) = world(history);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    runtime.signal("k", vec![1; LARGE]).await.unwrap();
    let mut found = Vec::new();
    for step in from {
        assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
        settle_down().await;
        found.push(world.objects().await);
        lives.fetch_add(1, Ordering::Relaxed);
        let options = RedriveOptions { step: *step, ..RedriveOptions::default() };
        assert_eq!(runtime.redrive(RUN, options).await.unwrap(), RedriveOutcome::Redriven, "{step:?}");
        if *step == Some(0) {
            until_it_waits(&runtime, RUN).await;
            runtime.signal("k", vec![2; LARGE]).await.unwrap();
        }
    }
    assert_eq!(result_of(&runtime, RUN).await, LARGE.to_string());
    settle_down().await;
    found.push(world.objects().await);
    assert_eq!(found, objects, "{history:?} {from:?}");
    assert!(runtime.forget(RUN).await.unwrap());
    // Its dead jobs go with the next sweep.
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new(), "{history:?} {from:?}");
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn the_signal_of_a_redriven_step_goes_with_the_step_or_with_the_history() {
    for history in [HistoryLevel::Off, HistoryLevel::Ends] {
        check(history, &[None, None], &[1, 0, 0]).await;
    }
    check(HistoryLevel::Full, &[None, None], &[1, 1, 1]).await;
    check(HistoryLevel::Full, &[None, Some(1)], &[1, 1, 1]).await;
    // The step is called with another, and the history tells of that.
    check(HistoryLevel::Full, &[Some(0), Some(0)], &[1, 1, 1]).await;
}

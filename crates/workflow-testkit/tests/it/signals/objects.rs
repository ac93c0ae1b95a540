//! Payloads too large for a row: stored before the commit that names them, gone with whoever needed them.

use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{
    CancelOutcome, HistoryEntry, HistoryLevel, RedriveOptions, RedriveOutcome, RunPhase, SignalOutcome, StepError,
    StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Scripted, World, result_of, submit, until, until_it_waits};

const LARGE: usize = 100_000;

fn large(letter: u8) -> Vec<u8> {
    vec![letter; LARGE]
}

/// Answers the length of the signal and its first byte.
fn measures() -> Scripted {
    Scripted::new(|step| async move {
        Ok(match (step.step_number, step.attempts) {
            (0, _) => StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX),
            (_, 1) => return Err(StepError::transient("the first attempt fails")),
            _ => {
                let signal = step.signal.unwrap_or_default();
                StepOutcome::Succeed { result: format!("{} {:?}", signal.len(), signal.first()).into() }
            }
        })
    })
}

async fn nothing_is_left(world: &World) {
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((world.objects().await, world.rows("objects-signal")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_large_signal_is_delivered_buffered_and_gone_with_its_step() {
    let world = World::without_hook(measures());
    let (runtime, _running) = world.running();
    submit(&runtime, "waits").await;
    until_it_waits(&runtime, "waits").await;
    assert_eq!(runtime.signal("k", large(1)).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, "waits").await, format!("{LARGE} Some(1)"));
    nothing_is_left(&world).await;
    assert_eq!(runtime.signal("k", large(2)).await.unwrap(), SignalOutcome::Buffered);
    submit(&runtime, "later").await;
    assert_eq!(result_of(&runtime, "later").await, format!("{LARGE} Some(2)"));
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn the_largest_and_the_smallest_signal_arrive() {
    let world = World::without_hook(measures());
    let (runtime, _running) = world.running();
    for (run_id, len) in [("nothing", 0), ("inline", 32 * 1024), ("object", 32 * 1024 + 1)] {
        runtime.signal("k", vec![9; len]).await.unwrap();
        submit(&runtime, run_id).await;
        assert!(result_of(&runtime, run_id).await.starts_with(&format!("{len} ")), "{run_id}");
    }
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_is_cleared_or_forgotten_with_its_run_takes_its_object_along() {
    let world = World::without_hook(measures());
    let runtime = world.runtime();
    runtime.signal("k", large(1)).await.unwrap();
    runtime.signal("k", large(2)).await.unwrap();
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 2);
    nothing_is_left(&world).await;
    let running = runtime.spawn(std::future::pending());
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    running.shutdown().await.unwrap();
    runtime.signal("k", large(3)).await.unwrap();
    assert_eq!(world.objects().await, 1);
    runtime.cancel(RUN, None).await.unwrap();
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Cancelled);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.objects().await, 1, "a redrive needs it");
    assert!(runtime.forget(RUN).await.unwrap());
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_outlives_a_cancelled_step_and_goes_with_the_redriven_one() {
    let world = World::without_hook(measures());
    let runtime = world.runtime();
    runtime.signal("k", large(4)).await.unwrap();
    let running = runtime.spawn(std::future::pending());
    submit(&runtime, RUN).await;
    // The first attempt of the step that has the signal fails, and the run is cancelled before the second.
    until(&runtime, RUN, |status| matches!(status.phase, RunPhase::BackingOff { .. })).await;
    assert_eq!(runtime.cancel(RUN, None).await.unwrap(), CancelOutcome::Ended);
    assert_eq!(world.objects().await, 1);
    assert_eq!(runtime.redrive(RUN, RedriveOptions::default()).await.unwrap(), RedriveOutcome::Redriven);
    assert_eq!(result_of(&runtime, RUN).await, format!("{LARGE} Some(4)"));
    nothing_is_left(&world).await;
    running.shutdown().await.unwrap();
}

/// The history keeps what steps were called with, for a redrive from any of them, and no answers that were discarded.
#[tokio::test(start_paused = true)]
async fn a_full_history_keeps_payloads_and_signals_and_no_discarded_answer() {
    let runner = Scripted::new(|step| async move {
        Ok(match step.step_number {
            0 => StepOutcome::continue_on_signal(large(0), "k", Duration::MAX),
            _ => {
                step.cancel_token.cancelled().await;
                StepOutcome::Succeed { result: large(9) }
            }
        })
    });
    let world = World::without_hook(runner).with(|s| s.history = HistoryLevel::Full);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    runtime.signal("k", large(1)).await.unwrap();
    while world.runner.seen().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    runtime.cancel(RUN, None).await.unwrap();
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Cancelled);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let history: Vec<HistoryEntry> = runtime.history(RUN).try_collect().await.unwrap();
    let payloads: Vec<_> = history.into_iter().map(|row| row.payload.unwrap()).collect();
    assert_eq!(payloads, [b"in".to_vec(), large(0)]);
    assert_eq!(world.objects().await, 2);
    assert!(runtime.forget(RUN).await.unwrap());
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_skips_what_is_taken_while_it_reads() {
    use futures::StreamExt;
    let world = World::without_hook(measures());
    let runtime = world.runtime();
    for letter in 0..3 {
        runtime.signal("k", large(letter)).await.unwrap();
    }
    let reader = runtime.clone();
    let listing = reader.buffered_signals("k");
    tokio::pin!(listing);
    let first = listing.next().await.unwrap().unwrap();
    assert_eq!(first.payload.len(), LARGE);
    runtime.clear_signal("k").await.unwrap();
    while let Some(signal) = listing.next().await {
        assert_eq!(signal.unwrap().payload.len(), LARGE);
    }
}

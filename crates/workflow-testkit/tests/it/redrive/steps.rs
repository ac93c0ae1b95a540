//! A run goes on from an earlier step, or with another payload.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{
    Error, HistoryEntry, HistoryLevel, RedriveOptions, RedriveOutcome, StepEnd, StepError, StepOutcome, TerminalStatus,
};
use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, When};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, settle_down, submit, text_of, until_it_waits};

const LARGE: usize = 100_000;

/// Carries its payload on, a letter per step, waits before step 2, and fails in step 3 until it is well. Its result
/// tells what steps 2 and 3 saw.
fn world(history: HistoryLevel) -> (World, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let world = World::new(Scripted::new(move |step| {
        let well = well.clone();
        async move {
            let signal = text_of(&step);
            let mut payload = step.payload;
            payload.push(b'0' + step.step_number as u8);
            Ok(match step.step_number {
                1 => StepOutcome::continue_on_signal(payload, "k", Duration::from_secs(3_600)),
                2 => StepOutcome::continue_now([&payload, signal.as_bytes()].concat()),
                3 if !well.load(Ordering::Relaxed) => return Err(StepError::permanent("no")),
                3 => StepOutcome::Succeed { result: payload },
                _ => StepOutcome::continue_now(payload),
            })
        }
    }));
    (world.with(|s| s.history = history), is_well)
}

/// Lets the run fail in step 3. It was called with `in`, and step 2 with the signal `x`.
async fn failed(world: &World) -> (Runtime, workflow_runtime::RunnerHandle) {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    runtime.signal("k", b"x".to_vec()).await.unwrap();
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!((end.status, end.final_step), (TerminalStatus::Failed, 3));
    settle_down().await;
    (runtime, running)
}

fn from(step: u32, payload: Option<Vec<u8>>) -> RedriveOptions {
    RedriveOptions { step: Some(step), payload }
}

/// Brings the run back so; a wait on the way ends with the signal `y`. Its result, and the steps that are called.
async fn check(options: RedriveOptions, result: &str, steps: &[u32]) {
    let (world, is_well) = world(HistoryLevel::Full);
    let (runtime, _running) = failed(&world).await;
    is_well.store(true, Ordering::Relaxed);
    assert_eq!(runtime.redrive(RUN, options).await.unwrap(), RedriveOutcome::Redriven);
    if steps.contains(&1) {
        until_it_waits(&runtime, RUN).await;
        runtime.signal("k", b"y".to_vec()).await.unwrap();
    }
    assert_eq!(result_of(&runtime, RUN).await, result);
    let calls: Vec<_> = steps.iter().map(|step| (*step, 1)).collect();
    assert_eq!(world.calls().split_off(4), calls);
    let history: Vec<HistoryEntry> = runtime.history(RUN).try_collect().await.unwrap();
    let ends: Vec<_> = history.iter().map(|row| (row.step, row.end)).collect();
    let expected = [StepEnd::Continued, StepEnd::Waited, StepEnd::Continued, StepEnd::Succeeded];
    assert_eq!(ends, (0..).zip(expected).collect::<Vec<_>>());
    settle_down().await;
    assert_eq!(world.disk.jobs(), []);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_from_any_step_that_is_recorded_with_what_it_was_called_with() {
    check(RedriveOptions::default(), "in012k=x3", &[3]).await;
    check(from(3, None), "in012k=x3", &[3]).await;
    check(from(2, None), "in012k=x3", &[2, 3]).await;
    check(from(1, None), "in012k=y3", &[1, 2, 3]).await;
    check(from(0, None), "in012k=y3", &[0, 1, 2, 3]).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_with_another_payload() {
    check(RedriveOptions { payload: Some(b"new".to_vec()), ..RedriveOptions::default() }, "new3", &[3]).await;
    check(from(2, Some(b"new".to_vec())), "new2k=x3", &[2, 3]).await;
    check(from(0, Some(Vec::new())), "012k=y3", &[0, 1, 2, 3]).await;
    let large = "l".repeat(LARGE);
    check(from(3, Some(large.clone().into())), &format!("{large}3"), &[3]).await;
    check(from(2, Some(large.clone().into())), &format!("{large}2k=x3"), &[2, 3]).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_recorded_cannot_be_gone_on_from() {
    for history in [HistoryLevel::Off, HistoryLevel::Ends, HistoryLevel::Full] {
        let (world, _) = world(history);
        let (runtime, _running) = failed(&world).await;
        let entries = world.disk.entries();
        let unrecorded: &[u32] = if history == HistoryLevel::Full { &[4, u32::MAX] } else { &[0, 1, 2, 4, u32::MAX] };
        for step in unrecorded {
            for payload in [None, Some(vec![7; LARGE])] {
                let error = runtime.redrive(RUN, from(*step, payload)).await.unwrap_err();
                assert!(matches!(error, Error::InvalidOption { option: "step", .. }), "{error:?}");
                assert!(error.is_permanent());
            }
        }
        assert_eq!((world.disk.entries(), world.objects().await), (entries, 0));
        assert_eq!(runtime.redrive(RUN, from(3, None)).await.unwrap(), RedriveOutcome::Redriven, "{history:?}");
        world.stop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_beyond_the_limit_is_an_error_and_nothing_is_written() {
    let (world, _) = world(HistoryLevel::Ends);
    let world = world.with(|s| s.max_value_size = 1_000);
    let (runtime, _running) = failed(&world).await;
    let entries = world.disk.entries();
    let options = RedriveOptions { payload: Some(vec![7; 1_001]), ..RedriveOptions::default() };
    let error = runtime.redrive(RUN, options).await.unwrap_err();
    assert!(error.is_permanent(), "{error:?}");
    assert_eq!(world.disk.entries(), entries);
}

/// What the steps after the one that a run goes on from had recorded is theirs until they are executed again.
#[tokio::test(start_paused = true)]
async fn a_run_can_be_brought_back_to_earlier_and_earlier_steps_and_to_later_ones_not() {
    let (world, _) = world(HistoryLevel::Full);
    let (runtime, _running) = failed(&world).await;
    assert_eq!(runtime.redrive(RUN, from(0, None)).await.unwrap(), RedriveOutcome::Redriven);
    until_it_waits(&runtime, RUN).await;
    runtime.cancel(RUN, None).await.unwrap();
    // The run has ended before step 2, which waits for its signal again. Step 3 is not recorded any more.
    let error = runtime.redrive(RUN, from(3, None)).await.unwrap_err();
    assert!(matches!(error, Error::InvalidOption { option: "step", .. }), "{error:?}");
    assert_eq!(runtime.redrive(RUN, from(2, None)).await.unwrap(), RedriveOutcome::Redriven);
    until_it_waits(&runtime, RUN).await;
    assert_eq!(world.calls().split_off(4), [(0, 1), (1, 1)]);
}

/// Of a run whose payloads and signals are objects nothing is lost that a redrive needs.
#[tokio::test(start_paused = true)]
async fn what_a_redrive_needs_is_kept_and_what_nothing_names_is_gone() {
    let is_well = Arc::new(AtomicBool::new(false));
    for history in [HistoryLevel::Ends, HistoryLevel::Full] {
        is_well.store(false, Ordering::Relaxed);
        let well = is_well.clone();
        let world = World::new(Scripted::new(move |step| {
            let well = well.clone();
            async move {
                Ok(match step.step_number {
                    0 => StepOutcome::continue_on_signal(vec![1; LARGE], "k", Duration::MAX),
                    _ if !well.load(Ordering::Relaxed) => return Err(StepError::permanent("no")),
                    _ => {
                        let signal = step.signal.unwrap_or_default();
                        let result = format!("{}x{} {}", step.payload.len(), step.payload[0], signal.len());
                        StepOutcome::Succeed { result: result.into() }
                    }
                })
            }
        }));
        let world = world.with(|s| (s.history, s.retention) = (history, Some(Duration::from_secs(60))));
        let (runtime, _running) = world.running();
        submit(&runtime, RUN).await;
        until_it_waits(&runtime, RUN).await;
        runtime.signal("k", vec![2; LARGE]).await.unwrap();
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
        assert_eq!(world.objects().await, 2, "the payload and the signal of the step that failed");
        let replaced = RedriveOptions { payload: Some(vec![3; LARGE + 1]), ..RedriveOptions::default() };
        assert_eq!(runtime.redrive(RUN, replaced).await.unwrap(), RedriveOutcome::Redriven);
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
        assert_eq!(runtime.redrive(RUN, RedriveOptions::default()).await.unwrap(), RedriveOutcome::Redriven);
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
        is_well.store(true, Ordering::Relaxed);
        assert_eq!(runtime.redrive(RUN, RedriveOptions::default()).await.unwrap(), RedriveOutcome::Redriven);
        assert_eq!(result_of(&runtime, RUN).await, format!("{}x3 {LARGE}", LARGE + 1));
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(world.leftovers().await, Vec::<String>::new());
        world.stop();
    }
}

/// The run has moved on when the redrive learns what became of its commit, and the history names the payload.
#[tokio::test(start_paused = true)]
async fn a_large_payload_stays_that_a_commit_without_an_answer_has_named() {
    let script = Scripted::new(|step| async move {
        match (step.step_number, step.payload.len()) {
            (0, 0..100) => Err(StepError::permanent("too little")),
            (0, _) => Ok(StepOutcome::continue_now(Vec::new())),
            _ => Ok(StepOutcome::Succeed { result: Vec::new() }),
        }
    });
    let world = World::without_hook(script).with(|s| s.history = HistoryLevel::Full);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    let lost = PortFault::AnswerLostForLong(Duration::from_secs(60));
    let plan = Plan::of(PortCalls::CommitEnqueuing, When::Nth(1), lost);
    let caller = world.over(Arc::new(FaultyPort::new(Arc::new(world.queue.clone()), plan)));
    let options = RedriveOptions { payload: Some(vec![7; LARGE]), ..RedriveOptions::default() };
    caller.redrive(RUN, options).await.unwrap();
    runtime.wait(RUN).await.unwrap();
    assert_eq!(world.objects().await, 1);
    assert_eq!(runtime.check().await.unwrap(), []);
}

//! A run that failed, in whatever way, goes on from the step that failed, with all its attempts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow_runtime::{
    Error, RedriveOptions, RedriveOutcome, RunFilter, RunPhase, RunState, StepError, StepOutcome, TerminalStatus,
};

use super::redrive;
use crate::scripted::{RUN, Scripted, World, result_of, settle_down, submit, until, until_it_waits};

type Answer = Result<StepOutcome, StepError>;

/// Its step 1 answers so until it is well, and counts what its memo and the store say.
fn breaks(answer: fn() -> Answer) -> (World, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let runner = Scripted::new(move |step| {
        let well = well.clone();
        async move {
            if step.step_number == 0 {
                step.effects.put("staged", "0")?;
                step.run_memo.put("run", b"r").await?;
                return Ok(StepOutcome::continue_now(b"payload".to_vec()));
            }
            assert_eq!(step.payload, b"payload");
            step.memo.memoized("step", async { Ok::<_, StepError>(step.attempts) }).await?;
            if !well.load(Ordering::Relaxed) {
                step.effects.put("lost", "")?;
                return answer();
            }
            let memo: u32 = step.memo.memoized("step", async { Err(StepError::permanent("it is lost")) }).await?;
            let of_run = step.run_memo.get("run").await?.unwrap();
            let staged = step.kv.get(b"staged").await?.unwrap();
            let result = format!("{memo} {} {}", of_run.escape_ascii(), staged.escape_ascii());
            Ok(StepOutcome::Succeed { result: result.into() })
        }
    });
    let world = World::new(runner).with(|s| s.max_attempts_per_step = 2);
    (world, is_well)
}

/// Lets the run fail with `error`, and brings it back.
async fn check(answer: fn() -> Answer, error: &str, calls: &[(u32, u32)], dead_jobs: usize) {
    let (world, is_well) = breaks(answer);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    settle_down().await;
    assert_eq!((end.status, end.error.as_deref(), end.final_step), (TerminalStatus::Failed, Some(error), 1));
    assert_eq!((world.calls(), world.disk.jobs().len()), (calls.to_vec(), dead_jobs));
    is_well.store(true, Ordering::Relaxed);
    redrive(&runtime).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    assert_eq!((status.redrives, status.attempts_used), (1, 0));
    assert_eq!(result_of(&runtime, RUN).await, "1 r 0");
    settle_down().await;
    assert_eq!(world.calls().split_off(calls.len()), [(1, 1)]);
    let entries = world.disk.entries();
    let is_staged = entries.iter().any(|(key, _)| &key[..] == b"lost");
    assert_eq!(is_staged, dead_jobs == 0, "what a failed attempt has staged is gone, what an answer has is not");
    assert_eq!(world.disk.jobs(), [], "the dead job of the first end is gone");
    let statuses: Vec<_> = world.hook.ends().iter().map(|end| end.status).collect();
    assert_eq!(statuses, [TerminalStatus::Failed, TerminalStatus::Succeeded]);
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_goes_on_from_the_step_that_failed() {
    let twice = [(0, 1), (1, 1), (1, 2)];
    check(|| Err(StepError::transient("no").retry_after(Duration::ZERO)), "no", &twice, 1).await;
    check(|| panic!("no"), "panicked: no", &twice, 1).await;
    check(|| Err(StepError::permanent("no")), "no", &twice[..2], 1).await;
    check(|| Ok(StepOutcome::Fail { reason: "no".to_owned() }), "no", &twice[..2], 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_redriven_step_has_all_its_attempts_again() {
    let (world, _) = breaks(|| Err(StepError::transient("no").retry_after(Duration::ZERO)));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    for redrives in 0..4 {
        runtime.wait(RUN).await.unwrap();
        settle_down().await;
        assert_eq!(world.calls().len(), 1 + 2 * (redrives + 1));
        assert_eq!(runtime.status(RUN).await.unwrap().unwrap().redrives, redrives as u32);
        assert_eq!(world.disk.jobs().len(), 1, "one dead job, of the last end");
        redrive(&runtime).await;
    }
}

/// Every process dies in the step until its attempts are used up.
#[tokio::test(start_paused = true)]
async fn a_run_whose_attempts_were_lost_goes_on() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let mut world = World::new(Scripted::new(move |_| {
        let well = well.clone();
        async move {
            if !well.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            Ok(StepOutcome::Succeed { result: b"done".to_vec() })
        }
    }));
    let mut runtime = world.runtime();
    submit(&runtime, RUN).await;
    let end = loop {
        let running = runtime.spawn(std::future::pending());
        let ended = runtime.wait_timeout(RUN, Duration::from_secs(10)).await.unwrap();
        if let Some(end) = ended {
            drop(running);
            break end;
        }
        world.crash();
        runtime = world.runtime();
    };
    assert_eq!(end.status, TerminalStatus::Failed);
    assert!(end.error.as_deref().is_some_and(|error| error.contains("used up its 5 attempts")), "{end:?}");
    is_well.store(true, Ordering::Relaxed);
    settle_down().await;
    let calls = world.calls().len();
    redrive(&runtime).await;
    assert_eq!(result_of(&runtime, RUN).await, "done");
    settle_down().await;
    assert_eq!((world.calls().split_off(calls), world.disk.jobs()), (vec![(0, 1)], vec![]));
}

/// A second waiter on a key fails. Brought back, its step asks again, and waits once the key is free.
#[tokio::test(start_paused = true)]
async fn a_run_that_failed_for_a_taken_key_asks_for_it_again() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    submit(&runtime, "first").await;
    until_it_waits(&runtime, "first").await;
    submit(&runtime, RUN).await;
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Failed);
    redrive(&runtime).await;
    let end = runtime.wait(RUN).await.unwrap();
    assert!(end.error.as_deref().is_some_and(|error| error.contains("has a waiter already")), "{end:?}");
    runtime.cancel("first", None).await.unwrap();
    redrive(&runtime).await;
    until_it_waits(&runtime, RUN).await;
    runtime.signal("k", b"x".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, RUN).await, "k=x");
}

#[tokio::test(start_paused = true)]
async fn a_step_sees_the_signal_that_it_was_called_with_before() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let world = World::new(Scripted::new(move |step| {
        let well = well.clone();
        async move {
            match (step.step_number, well.load(Ordering::Relaxed)) {
                (0, _) => Ok(StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX)),
                (_, false) => Err(StepError::permanent("no")),
                (_, true) => Ok(StepOutcome::Succeed { result: step.signal.unwrap() }),
            }
        }
    }));
    let (runtime, _running) = world.running();
    for payload in [b"small".to_vec(), vec![b'l'; 100_000]] {
        let run_id = format!("of-{}", payload.len());
        submit(&runtime, &run_id).await;
        until_it_waits(&runtime, &run_id).await;
        is_well.store(false, Ordering::Relaxed);
        runtime.signal("k", payload.clone()).await.unwrap();
        assert_eq!(runtime.wait(&run_id).await.unwrap().status, TerminalStatus::Failed);
        settle_down().await;
        is_well.store(true, Ordering::Relaxed);
        let answer = runtime.redrive(&run_id, RedriveOptions::default()).await.unwrap();
        assert_eq!(answer, RedriveOutcome::Redriven);
        assert_eq!(result_of(&runtime, &run_id).await.as_bytes(), payload);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_answers_is_so() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    let ask = async |run_id: &str| runtime.redrive(run_id, RedriveOptions::default()).await;
    assert_eq!(ask(RUN).await.unwrap(), RedriveOutcome::NotFound);
    for id in ["", "a/b", "..", &"x".repeat(129)] {
        let error = ask(id).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRunId { .. }) && error.is_permanent());
    }
    submit(&runtime, RUN).await;
    assert_eq!(ask(RUN).await.unwrap(), RedriveOutcome::Active);
    until_it_waits(&runtime, RUN).await;
    settle_down().await;
    let operations = world.disk.operations();
    assert_eq!(ask(RUN).await.unwrap(), RedriveOutcome::Active);
    runtime.pause(RUN).await.unwrap();
    assert_eq!(ask(RUN).await.unwrap(), RedriveOutcome::Active);
    runtime.resume(RUN).await.unwrap();
    assert_eq!(world.disk.operations(), operations + 2);
    runtime.signal("k", b"x".to_vec()).await.unwrap();
    let end = runtime.wait(RUN).await.unwrap();
    settle_down().await;
    let entries = world.disk.entries();
    assert_eq!(ask(RUN).await.unwrap(), RedriveOutcome::Succeeded(end));
    assert_eq!(world.disk.entries(), entries);
}

#[tokio::test(start_paused = true)]
async fn a_redrive_moves_the_run_among_the_listed_and_keeps_its_submission() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    let before = runtime.status(RUN).await.unwrap().unwrap();
    runtime.cancel(RUN, None).await.unwrap();
    let of = |state| RunFilter { state: Some(state), ..RunFilter::default() };
    assert_eq!(runtime.count(of(RunState::Cancelled)).await.unwrap(), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    redrive(&runtime).await;
    let after = until(&runtime, RUN, |status| matches!(status.phase, RunPhase::Waiting { .. })).await;
    assert_eq!((after.submitted_at, &after.headers), (before.submitted_at, &before.headers));
    assert!(after.since >= before.since + Duration::from_secs(60));
    assert_eq!(runtime.count(of(RunState::Cancelled)).await.unwrap(), 0);
    assert_eq!(runtime.count(of(RunState::Waiting)).await.unwrap(), 1);
    assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), 1);
    let again = submit(&runtime, RUN).await;
    assert!(!again.newly_submitted && again.end.is_none());
}

//! A step in hand is asked to stop; whatever it does, its run ends as cancelled, and nothing of it counts.

use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use workflow_runtime::{
    CancelOutcome, HistoryEntry, HistoryLevel, RunOutcome, RunStatus, StepEnd, StepError, StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Runtime, Scripted, World, submit, until};

const SECOND: Duration = Duration::from_secs(1);

/// Starts the run and lets it work for a while.
async fn in_hand(world: &World) -> (Runtime, workflow_runtime::RunnerHandle) {
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    while world.runner.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (runtime, running)
}

async fn request(runtime: &Runtime) {
    assert_eq!(runtime.cancel(RUN, Some("enough".to_owned())).await.unwrap(), CancelOutcome::Requested);
}

/// The run has ended as asked, nothing of the step counts, and everybody is told the same, once.
async fn check_end(world: &World, runtime: &Runtime, calls: usize) -> RunOutcome {
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!((end.status, end.error.as_deref(), &end.result), (TerminalStatus::Cancelled, Some("enough"), &None));
    while world.hook.ends().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(world.hook.ends(), std::slice::from_ref(&end));
    assert_eq!(world.runner.seen().len(), calls, "{:?}", world.runner.seen());
    assert_eq!((world.disk.jobs(), world.objects().await), (Vec::new(), 0));
    let staged = |(key, _): &(bytes::Bytes, bytes::Bytes)| key.starts_with(b"staged");
    assert!(!world.disk.entries().iter().any(staged));
    assert_eq!(runtime.cancel(RUN, Some("again".to_owned())).await.unwrap(), CancelOutcome::AlreadyEnded(end.clone()));
    end
}

/// A runner that stages something, watches its token, and answers `answer` once it has fired.
fn watches(answer: impl Fn() -> Result<StepOutcome, StepError> + Clone + Send + Sync + 'static) -> Scripted {
    Scripted::new(move |step| {
        let answer = answer.clone();
        async move {
            step.effects.put("staged", "")?;
            step.cancel_token.cancelled().await;
            answer()
        }
    })
}

#[tokio::test(start_paused = true)]
async fn whatever_a_step_that_watches_its_token_answers_is_discarded() {
    let large = || vec![7; 100_000];
    let answers: [fn() -> Result<StepOutcome, StepError>; 7] = [
        || Ok(StepOutcome::Succeed { result: b"done".to_vec() }),
        || Ok(StepOutcome::Fail { reason: "no".to_owned() }),
        || Ok(StepOutcome::Cancel { reason: "mine".to_owned() }),
        || Ok(StepOutcome::continue_now(Vec::new())),
        || Ok(StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX)),
        || Err(StepError::transient("stopped")),
        || panic!("stopped"),
    ];
    for answer in answers {
        let world = World::new(watches(answer));
        let (runtime, _running) = in_hand(&world).await;
        let start = tokio::time::Instant::now();
        request(&runtime).await;
        runtime.wait(RUN).await.unwrap();
        assert!(start.elapsed() < Duration::from_millis(50), "{:?}", start.elapsed());
        check_end(&world, &runtime, 1).await;
        assert_eq!(world.rows("signal"), 0);
    }
    let world = World::new(watches(move || Ok(StepOutcome::Succeed { result: large() })));
    let (runtime, _running) = in_hand(&world).await;
    request(&runtime).await;
    check_end(&world, &runtime, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_ignores_its_token_is_discarded_when_it_returns_within_the_grace() {
    let world = World::new(Scripted::new(|step| async move {
        step.effects.put("staged", "")?;
        tokio::time::sleep(10 * SECOND).await;
        Ok(StepOutcome::continue_now(Vec::new()))
    }));
    let (runtime, _running) = in_hand(&world).await;
    request(&runtime).await;
    assert!(until(&runtime, RUN, |status| status.cancel_requested).await.step == 0);
    let start = tokio::time::Instant::now();
    runtime.wait(RUN).await.unwrap();
    assert!((9 * SECOND..11 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
    check_end(&world, &runtime, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_never_returns_is_ended_after_the_grace() {
    for grace in [Duration::ZERO, 5 * SECOND, 30 * SECOND] {
        let world = World::new(Scripted::new(|step| async move {
            step.effects.put("staged", "")?;
            pending().await
        }));
        let world = world.with(|s| s.cancel_grace = grace);
        let (runtime, _running) = in_hand(&world).await;
        request(&runtime).await;
        let start = tokio::time::Instant::now();
        runtime.wait(RUN).await.unwrap();
        assert!((grace..grace + SECOND).contains(&start.elapsed()), "{grace:?}: {:?}", start.elapsed());
        check_end(&world, &runtime, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_the_step_fires_itself_cancels_nothing() {
    let world = World::new(Scripted::new(|step| async move {
        step.cancel_token.cancel();
        tokio::time::sleep(100 * SECOND).await;
        Ok(StepOutcome::Succeed { result: Vec::new() })
    }));
    let (runtime, _running) = in_hand(&world).await;
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Succeeded);
}

/// A runner whose first step cancels its own run, and goes on.
fn cancels_itself(outcome: fn() -> StepOutcome) -> (Scripted, Arc<OnceLock<Runtime>>) {
    let cell = Arc::new(OnceLock::<Runtime>::new());
    let handle = cell.clone();
    let runner = Scripted::new(move |step| {
        let handle = handle.clone();
        async move {
            step.effects.put("staged", "")?;
            request(handle.get().unwrap()).await;
            Ok(outcome())
        }
    });
    (runner, cell)
}

#[tokio::test(start_paused = true)]
async fn no_step_follows_inline_once_a_run_is_cancelled() {
    let (runner, cell) = cancels_itself(|| StepOutcome::continue_now(Vec::new()));
    let world = World::new(runner);
    let (runtime, _running) = world.running();
    assert!(cell.set(runtime.clone()).is_ok());
    submit(&runtime, RUN).await;
    check_end(&world, &runtime, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_during_the_commit_of_the_end_is_told_the_end() {
    let world = World::new(Scripted::new(|_| async move {
        tokio::time::sleep(SECOND).await;
        Ok(StepOutcome::Succeed { result: b"done".to_vec() })
    }));
    let (runtime, _running) = in_hand(&world).await;
    world.disk.hold();
    tokio::time::sleep(2 * SECOND).await;
    // The end is committed, and a crash can still undo it.
    let asked = runtime.clone();
    let mut call = tokio::spawn(async move { asked.cancel(RUN, None).await.unwrap() });
    tokio::select! {
        biased;
        answer = &mut call => panic!("answered too early: {answer:?}"),
        () = tokio::time::sleep(10 * SECOND) => {}
    }
    world.disk.release();
    let CancelOutcome::AlreadyEnded(end) = call.await.unwrap() else { panic!("the end was first") };
    assert_eq!((end.status, end.result.as_deref()), (TerminalStatus::Succeeded, Some(&b"done"[..])));
}

/// The shutdown waits for the step; the cancellation ends it sooner, or the end of the grace does.
#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_while_the_runtime_shuts_down() {
    for (shutdown_grace, cancel_grace) in [(30, 5), (5, 30)] {
        let world = World::new(Scripted::new(|step| async move {
            step.effects.put("staged", "")?;
            pending().await
        }));
        let world =
            world.with(|s| (s.shutdown_grace, s.cancel_grace) = (shutdown_grace * SECOND, cancel_grace * SECOND));
        let (runtime, running) = in_hand(&world).await;
        let stopping = tokio::spawn(running.shutdown());
        tokio::time::sleep(SECOND).await;
        request(&runtime).await;
        let start = tokio::time::Instant::now();
        runtime.wait(RUN).await.unwrap();
        assert!(start.elapsed() < 6 * SECOND, "{:?}", start.elapsed());
        stopping.await.unwrap().unwrap();
        let _running = runtime.spawn(pending());
        check_end(&world, &runtime, 1).await;
    }
}

/// A step that waits for its turn among the suspects has not begun again: its run ends at once.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_claimed_again_after_its_process_died_ends_without_a_call() {
    let mut world = World::new(Scripted::new(|_| pending()));
    let (runtime, _running) = in_hand(&world).await;
    request(&runtime).await;
    world.crash();
    let (runtime, _running) = world.running();
    check_end(&world, &runtime, 1).await;
}

#[tokio::test(start_paused = true)]
async fn the_history_and_the_status_show_a_cancellation() {
    for history in [HistoryLevel::Off, HistoryLevel::Ends, HistoryLevel::Full] {
        let runner = Scripted::new(|step| async move {
            match step.step_number {
                0 => Ok(StepOutcome::continue_now(b"next".to_vec())),
                _ => pending().await,
            }
        });
        let world = World::new(runner).with(|s| (s.history, s.cancel_grace) = (history, SECOND));
        let (runtime, _running) = world.running();
        submit(&runtime, RUN).await;
        while world.runner.seen().len() < 2 {
            tokio::time::sleep(SECOND).await;
        }
        request(&runtime).await;
        let status: RunStatus = runtime.status(RUN).await.unwrap().unwrap();
        assert_eq!((status.step, status.cancel_requested), (1, true));
        let end = runtime.wait(RUN).await.unwrap();
        assert_eq!(end.final_step, 1);
        let rows: Vec<HistoryEntry> = futures::TryStreamExt::try_collect(runtime.history(RUN)).await.unwrap();
        let rows: Vec<_> = rows.into_iter().map(|row| (row.step, row.attempt, row.end, row.payload)).collect();
        let kept = |payload: &str| (history == HistoryLevel::Full).then(|| payload.as_bytes().to_vec());
        let last = (1, 1, StepEnd::Cancelled, kept("next"));
        match history {
            HistoryLevel::Off => assert_eq!(rows, []),
            HistoryLevel::Ends => assert_eq!(rows, [last]),
            _ => assert_eq!(rows, [(0, 1, StepEnd::Continued, kept("in")), last]),
        }
    }
}

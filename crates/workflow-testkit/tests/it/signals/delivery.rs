//! A signal reaches whoever waits, before the wait, during it, or after the next restart; of several keys the first
//! signal counts.

use std::sync::Arc;
use std::time::Duration;

use workflow_runtime::{RunPhase, SignalOutcome, StepEnd, StepOutcome, TerminalStatus};
use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, When};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until_it_waits};

const NEVER: Duration = Duration::MAX;

async fn signal(runtime: &Runtime, key: &str, payload: &str) -> SignalOutcome {
    runtime.signal(key, payload.into()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_a_wait_in_one_commit() {
    for timeout in [NEVER, Duration::from_secs(60)] {
        let world = World::without_hook(Scripted::waits_for(&["k"], timeout));
        let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::none());
        let (runtime, sender) = (world.runtime(), world.over(Arc::new(port.clone())));
        let _running = runtime.spawn(std::future::pending());
        submit(&runtime, RUN).await;
        until_it_waits(&runtime, RUN).await;
        let told = tokio::time::Instant::now();
        assert_eq!(signal(&sender, "k", "yes").await, SignalOutcome::Delivered);
        assert_eq!((port.counts().commits, port.counts().scans), (1, 0));
        assert_eq!(result_of(&runtime, RUN).await, "k=yes");
        // Two commits become durable: the signal's and the end's. Nobody slept.
        assert!(told.elapsed() < Duration::from_millis(10), "{:?}", told.elapsed());
        assert_eq!((world.rows("signal"), world.rows("signal-item"), world.disk.jobs().len()), (0, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_comes_before_the_wait_is_seen_at_once() {
    let world = World::without_hook(Scripted::waits_for(&["k"], NEVER));
    let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::none());
    let sender = world.over(Arc::new(port.clone()));
    assert_eq!(signal(&sender, "k", "early").await, SignalOutcome::Buffered);
    assert_eq!(port.counts().commits, 1);
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    assert_eq!(result_of(&runtime, RUN).await, "k=early");
    for kind in ["signal", "signal-item", "signal-id", "signal-expiry"] {
        assert_eq!(world.rows(kind), 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_was_taken_before_its_sender_had_an_answer_is_not_sent_again() {
    let world = World::without_hook(Scripted::waits_for(&["k"], NEVER));
    let lost = Plan::of(PortCalls::Commit, When::Nth(1), PortFault::AnswerLostForLong(Duration::from_secs(60)));
    let sender = world.over(Arc::new(FaultyPort::new(Arc::new(world.queue.clone()), lost)));
    let (runtime, _running) = world.running();
    let taken = async {
        submit(&runtime, RUN).await;
        result_of(&runtime, RUN).await
    };
    let (answer, taken) = tokio::join!(sender.signal("k", b"once".to_vec()), taken);
    assert_eq!(taken, "k=once");
    assert!(answer.is_err_and(|error| !error.is_permanent()), "nothing tells that it was sent");
    assert_eq!((world.rows("signal"), world.rows("signal-item")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_comes_while_the_step_before_the_wait_executes_is_seen() {
    let world = World::without_hook(Scripted::new(|step| async move {
        Ok(match step.step_number {
            0 => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                StepOutcome::continue_on_signal(step.payload, "k", NEVER)
            }
            _ => StepOutcome::Succeed { result: step.signal.unwrap_or_default() },
        })
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(signal(&runtime, "k", "meanwhile").await, SignalOutcome::Buffered);
    assert_eq!(result_of(&runtime, RUN).await, "meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_signal_is_sent_without_a_loop_and_seen_after_a_restart() {
    let mut world = World::without_hook(Scripted::waits_for(&["k"], NEVER));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    running.shutdown().await.unwrap();
    assert_eq!(signal(&runtime, "k", "kept").await, SignalOutcome::Delivered);
    world.crash();
    let (runtime, _running) = world.running();
    assert_eq!(result_of(&runtime, RUN).await, "k=kept");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_repeated_sees_the_same_signal() {
    let world = World::without_hook(Scripted::new(|step| async move {
        match (step.step_number, step.attempts) {
            (0, _) => Ok(StepOutcome::continue_on_signal(step.payload, "k", NEVER)),
            (_, 1) => Err(workflow_runtime::StepError::transient("again")),
            _ => Ok(StepOutcome::Succeed { result: step.signal.unwrap_or_default() }),
        }
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    signal(&runtime, "k", "one").await;
    assert_eq!(signal(&runtime, "k", "two").await, SignalOutcome::Buffered);
    assert_eq!(result_of(&runtime, RUN).await, "one");
}

#[tokio::test(start_paused = true)]
async fn a_second_waiter_fails_for_good_and_leaves_the_first_alone() {
    let world = World::new(Scripted::waits_for(&["other", "k"], NEVER));
    let (runtime, _running) = world.running();
    submit(&runtime, "first").await;
    until_it_waits(&runtime, "first").await;
    submit(&runtime, "second").await;
    let end = runtime.wait("second").await.unwrap();
    assert_eq!((end.status, end.final_step), (TerminalStatus::Failed, 0));
    assert_eq!(end.error.as_deref(), Some("correlation key \"other\" has a waiter already"));
    assert_eq!(world.runner.seen().len(), 2, "no second attempt");
    assert_eq!(signal(&runtime, "k", "yes").await, SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, "first").await, "k=yes");
    // Both keys are free again.
    submit(&runtime, "third").await;
    until_it_waits(&runtime, "third").await;
}

#[tokio::test(start_paused = true)]
async fn the_first_signal_on_any_key_wins_and_frees_the_others_with_it() {
    let world = World::without_hook(Scripted::waits_for(&["a", "b", "c"], NEVER))
        .with(|s| s.history = workflow_runtime::HistoryLevel::Full);
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    let status = runtime.status(RUN).await.unwrap().unwrap();
    let keys = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(status.phase, RunPhase::Waiting { keys, until: None });
    assert_eq!(world.rows("signal"), 3);
    running.shutdown().await.unwrap();
    assert_eq!(signal(&runtime, "b", "won").await, SignalOutcome::Delivered);
    assert_eq!(world.rows("signal"), 0, "free in the commit of the signal");
    assert_eq!(runtime.status(RUN).await.unwrap().unwrap().phase, RunPhase::Ready);
    for key in ["a", "b", "c"] {
        assert_eq!(signal(&runtime, key, "late").await, SignalOutcome::Buffered);
    }
    let _running = runtime.spawn(std::future::pending());
    assert_eq!(result_of(&runtime, RUN).await, "b=won");
    let history: Vec<_> = futures::TryStreamExt::try_collect(runtime.history(RUN)).await.unwrap();
    let rows: Vec<_> =
        history.iter().map(|row: &workflow_runtime::HistoryEntry| (row.end, row.signal_key.as_deref())).collect();
    assert_eq!(rows, [(StepEnd::Waited, None), (StepEnd::Succeeded, Some("b"))]);
}

#[tokio::test(start_paused = true)]
async fn of_buffered_signals_the_one_of_the_key_named_first_is_taken() {
    let world = World::without_hook(Scripted::waits_for(&["a", "b"], NEVER));
    let (runtime, _running) = world.running();
    signal(&runtime, "b", "older").await;
    signal(&runtime, "a", "newer").await;
    submit(&runtime, RUN).await;
    assert_eq!(result_of(&runtime, RUN).await, "a=newer");
    submit(&runtime, "next").await;
    assert_eq!(result_of(&runtime, "next").await, "b=older");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_left_its_wait_does_not_keep_the_key() {
    let world = World::without_hook(Scripted::waits_for(&["k"], NEVER));
    let (runtime, _running) = world.running();
    submit(&runtime, "first").await;
    until_it_waits(&runtime, "first").await;
    runtime.cancel("first", None).await.unwrap();
    assert_eq!(world.rows("signal"), 0);
    submit(&runtime, "second").await;
    until_it_waits(&runtime, "second").await;
    assert_eq!(signal(&runtime, "k", "yes").await, SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, "second").await, "k=yes");
}

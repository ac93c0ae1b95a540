//! Whatever was acknowledged of signals and cancellations is in force after a crash, wherever it comes.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{CancelOutcome, SignalOptions, StepOutcome, TerminalStatus};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

/// The run `r` collects signals until the last. The run `busy` works until it is asked to stop, and long after. Every
/// other one waits on a key of its own.
fn script() -> Scripted {
    Scripted::new(|mut step| async move {
        if step.run_id == "busy" {
            tokio::time::sleep(MINUTE).await;
            return Ok(StepOutcome::Succeed { result: Vec::new() });
        }
        if step.run_id != RUN {
            return Ok(StepOutcome::continue_on_signal(Vec::new(), step.run_id, MINUTE));
        }
        match step.signal {
            Some(signal) if signal == b"last" => return Ok(StepOutcome::Succeed { result: step.payload }),
            Some(signal) => step.payload.extend(signal),
            None => step.payload.clear(),
        }
        Ok(StepOutcome::continue_on_signal(step.payload, "k", Duration::MAX))
    })
}

/// Does this and that, and writes down what was acknowledged.
async fn act(runtime: &Runtime, signals: &Mutex<String>, cancels: &Mutex<Vec<(&'static str, CancelOutcome)>>) {
    let signal = async |letter: char, options| {
        runtime.signal_with("k", letter.to_string().into(), options).await.unwrap();
        signals.lock().unwrap().push(letter);
    };
    let cancel = async |run_id| {
        let answer = runtime.cancel(run_id, Some("no more".to_owned())).await.unwrap();
        cancels.lock().unwrap().push((run_id, answer));
    };
    signal('a', SignalOptions::default()).await;
    signal('b', SignalOptions { id: Some("b".to_owned()) }).await;
    for run_id in [RUN, "waits", "busy"] {
        submit(runtime, run_id).await;
    }
    cancel("nobody").await;
    until_it_waits(runtime, "waits").await;
    cancel("waits").await;
    until_it_waits(runtime, RUN).await;
    signal('c', SignalOptions::default()).await;
    signal('d', SignalOptions { id: Some("d".to_owned()) }).await;
    cancel("busy").await;
    until_it_waits(runtime, RUN).await;
    signal('e', SignalOptions::default()).await;
}

/// What holds after a process that had power for so many operations. Whether it did all it had to.
async fn check(operations: u64) -> bool {
    let mut world = World::without_hook(script());
    let (signals, cancels) = (Mutex::default(), Mutex::default());
    let runtime = world.runtime();
    world.disk.cut_power_after(operations);
    let is_done = tokio::select! {
        biased;
        ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
        () = world.disk.cut() => false,
        () = act(&runtime, &signals, &cancels) => true,
    };
    world.crash();
    let calls = || world.runner.seen().iter().filter(|seen| seen.run_id == "busy").count();
    let calls_before = calls();
    let runtime = world.runtime();
    let acknowledged = std::mem::take(&mut *cancels.lock().unwrap());
    for (run_id, answer) in &acknowledged {
        match answer {
            CancelOutcome::Ended => {
                let end = runtime.run_end(run_id).await.unwrap().expect("it has ended");
                assert_eq!((end.status, end.error.as_deref()), (TerminalStatus::Cancelled, Some("no more")));
            }
            CancelOutcome::Requested => {
                let is_so = |status: &workflow_runtime::RunStatus| status.cancel_requested;
                until(&runtime, run_id, is_so).await;
            }
            CancelOutcome::NotFound => assert_eq!(*run_id, "nobody"),
            other => panic!("{run_id}: {other:?}"),
        }
    }
    let _running = runtime.spawn(pending());
    if acknowledged.iter().any(|(run_id, _)| *run_id == "busy") {
        assert_eq!(runtime.wait("busy").await.unwrap().status, TerminalStatus::Cancelled);
        assert_eq!(calls(), calls_before, "nothing of it starts any more");
    }
    submit(&runtime, RUN).await;
    runtime.signal("k", b"last".to_vec()).await.unwrap();
    let (seen, acknowledged) = (result_of(&runtime, RUN).await, signals.into_inner().unwrap());
    // The next signal may have been sent, and its answer lost.
    assert!(seen.starts_with(&acknowledged) && "abcde".starts_with(&seen), "{acknowledged:?} {seen:?}");
    assert!(seen.len() <= acknowledged.len() + 1, "{acknowledged:?} {seen:?}");
    is_done
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_is_in_force_after_a_crash_at_every_operation() {
    let mut operations = 0;
    while !check(operations).await {
        operations += 1;
    }
    assert!(operations > 15, "{operations}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_acknowledged_that_a_crash_undoes() {
    let mut world = World::without_hook(script());
    let runtime = world.runtime();
    submit(&runtime, "queued").await;
    runtime.signal("k", b"a".to_vec()).await.unwrap();
    world.disk.hold();
    let calls = async {
        tokio::select! {
            answer = runtime.cancel("queued", None) => panic!("{answer:?}"),
            answer = runtime.signal("k", b"b".to_vec()) => panic!("{answer:?}"),
            answer = runtime.clear_signal("k") => panic!("{answer:?}"),
            () = tokio::time::sleep(MINUTE) => {}
        }
    };
    calls.await;
    world.crash();
    let runtime = world.runtime();
    assert!(runtime.run_end("queued").await.unwrap().is_none());
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_a_signal_is_gone_which_a_crash_brings_back() {
    let mut world = World::without_hook(Scripted::new(|step| async move {
        tokio::time::sleep(MINUTE).await;
        Ok(StepOutcome::continue_on_signal(step.payload, "k", Duration::MAX))
    }));
    let (runtime, _running) = world.running();
    for payload in ["a", "b"] {
        runtime.signal("k", payload.into()).await.unwrap();
    }
    submit(&runtime, RUN).await;
    world.until_called(1).await;
    world.disk.hold();
    while world.rows("signal-item") == 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::select! {
        kept = runtime.buffered_signals("k").try_collect::<Vec<_>>() => panic!("{kept:?}"),
        cleared = runtime.clear_signal("k") => panic!("{cleared:?}"),
        () = tokio::time::sleep(MINUTE) => {}
    }
    world.crash();
    let runtime = world.runtime();
    assert_eq!(runtime.buffered_signals("k").try_collect::<Vec<_>>().await.unwrap().len(), 2);
    assert_eq!(runtime.clear_signal("k").await.unwrap(), 2);
}

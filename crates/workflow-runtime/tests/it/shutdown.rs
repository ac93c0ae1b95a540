//! The loop's beginning and end: draining, handing back, starting again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use workflow_runtime::{Error, NoopTerminalHook, RunSpec, StepOutcome, WorkflowRuntime, open};

use crate::support::{Runner, spec, succeed, until};

#[tokio::test]
async fn a_running_step_finishes_in_its_grace() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, released) = (begun.clone(), go.clone());
    let runner = Runner::new(move |step| {
        let (started, released) = (started.clone(), released.clone());
        async move {
            started.notify_one();
            released.notified().await;
            if step.step_number == 0 { Ok(StepOutcome::continue_now(vec![])) } else { succeed(&step) }
        }
    });
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(runner, NoopTerminalHook).build().unwrap();
    let (stop, stopping) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (asked, told) = (stop.clone(), stopping.clone());
    let handle = runtime.spawn(async move {
        asked.notified().await;
        told.notify_one();
    });
    runtime.submit(spec("a", "")).await.unwrap();
    begun.notified().await;
    stop.notify_one();
    stopping.notified().await;
    go.notify_one();
    handle.wait().await.unwrap();
    let status = runtime.status("a").await.unwrap().unwrap();
    assert_eq!((status.step, status.attempts_used), (1, 0), "step 0 committed, step 1 did not start");
    let again = runtime.spawn(std::future::pending());
    go.notify_one();
    assert_eq!(runtime.wait("a").await.unwrap().error, None);
    again.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_step_that_outlasts_the_grace_is_handed_back_uncounted() {
    let attempts = Arc::new(AtomicU32::new(0));
    let seen = attempts.clone();
    let runner = Runner::new(move |step| {
        let seen = seen.clone();
        async move {
            assert_eq!(step.attempts, 1);
            if seen.fetch_add(1, Ordering::SeqCst) < 3 {
                std::future::pending::<()>().await;
            }
            succeed(&step)
        }
    });
    let storage = open("memory:").await.unwrap();
    let builder = storage.runtime(runner, NoopTerminalHook).shutdown_grace(Duration::ZERO);
    let runtime = builder.max_attempts_per_step(1).build().unwrap();
    runtime.submit(spec("a", "")).await.unwrap();
    for starts in 1..=3 {
        let handle = runtime.spawn(std::future::pending());
        until(async || attempts.load(Ordering::SeqCst) == starts).await;
        handle.shutdown().await.unwrap();
        assert_eq!(runtime.status("a").await.unwrap().unwrap().attempts_used, 0);
    }
    let handle = runtime.spawn(std::future::pending());
    assert_eq!(runtime.wait("a").await.unwrap().error, None);
    handle.shutdown().await.unwrap();
}

#[tokio::test]
async fn running_twice_on_one_handle_is_an_error() {
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let handle = runtime.spawn(std::future::pending());
    runtime.submit(spec("a", "")).await.unwrap();
    runtime.wait("a").await.unwrap();
    let refused = runtime.clone().run(std::future::pending()).await;
    assert!(matches!(refused, Err(Error::AlreadyRunning(_))));
    handle.shutdown().await.unwrap();
    runtime.run(std::future::ready(())).await.unwrap();
}

#[tokio::test]
async fn two_runtimes_of_one_queue_share_the_work() {
    let storage = open("memory:").await.unwrap();
    let runtimes: Vec<WorkflowRuntime<_, _>> = (0..2)
        .map(|_| storage.runtime(Runner::sync(succeed), NoopTerminalHook).max_concurrent_steps(2).build().unwrap())
        .collect();
    let handles: Vec<_> = runtimes.iter().map(|runtime| runtime.spawn(std::future::pending())).collect();
    for i in 0..50 {
        let runtime = &runtimes[i % 2];
        runtime.submit(RunSpec { run_id: Some(format!("r{i}")), ..RunSpec::default() }).await.unwrap();
    }
    for i in 0..50 {
        assert_eq!(runtimes[(i + 1) % 2].wait(&format!("r{i}")).await.unwrap().error, None);
    }
    for handle in handles {
        handle.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn runtimes_of_other_names_never_see_each_others_runs() {
    let storage = open("memory:").await.unwrap();
    let named = |name: &str| {
        let answer = name.to_owned();
        let runner = Runner::sync(move |_| Ok(StepOutcome::Succeed { result: answer.clone().into() }));
        storage.runtime(runner, NoopTerminalHook).queue_name(name).build().unwrap()
    };
    let (one, two) = (named("one"), named("one.two"));
    let handles = [one.spawn(std::future::pending()), two.spawn(std::future::pending())];
    for runtime in [&one, &two] {
        assert!(runtime.submit(spec("same", "")).await.unwrap().newly_submitted);
        let end = runtime.wait("same").await.unwrap();
        assert_eq!(end.result.as_deref(), Some(runtime.settings().queue_name.as_bytes()));
    }
    two.submit(spec("other", "")).await.unwrap();
    assert_eq!(one.status("other").await.unwrap(), None);
    for handle in handles {
        handle.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_loop_that_is_dropped_leaves_its_runs_to_the_next() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let runner = Runner::new(move |step| {
        let seen = seen.clone();
        async move {
            if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                std::future::pending::<()>().await;
            }
            succeed(&step)
        }
    });
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(runner, NoopTerminalHook).lease(Duration::from_secs(1)).build().unwrap();
    runtime.submit(spec("a", "")).await.unwrap();
    tokio::select! {
        biased;
        _ = runtime.run(std::future::pending()) => unreachable!(),
        () = until(async || calls.load(Ordering::SeqCst) == 1) => {}
    }
    let handle = runtime.spawn(std::future::pending());
    until(async || {
        storage.queue().reap_now().await.unwrap();
        runtime.run_end("a").await.unwrap().is_some()
    })
    .await;
    assert_eq!(runtime.wait("a").await.unwrap().error, None);
    handle.shutdown().await.unwrap();
}

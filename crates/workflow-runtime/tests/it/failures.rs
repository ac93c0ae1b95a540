//! What happens when a step fails: retries, ends, dead letters, and neighbours that do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workflow_runtime::{RunPhase, RunSpec, StepError, StepOutcome, TerminalStatus};

use crate::support::{Answer, Hook, Runner, World, spec, succeed};

/// A world in which the run `bad` misbehaves and every other succeeds.
async fn world_with(bad: impl Fn(&workflow_runtime::Step) -> Answer + Send + Sync + 'static) -> World<Hook> {
    let runner = Runner::sync(move |step| if step.run_id == "bad" { bad(step) } else { succeed(step) });
    World::with(runner, Hook::default(), |builder| builder.max_attempts_per_step(3)).await
}

/// Ends `bad` among 50 neighbours; checks that it failed with `message`, was told and lies among the dead.
async fn check_fails(world: World<Hook>, hook: Hook, message: &str) {
    world.runtime.submit(spec("bad", "")).await.unwrap();
    let neighbours: Vec<_> = (0..50).map(|i| format!("good-{i}")).collect();
    for id in &neighbours {
        world.runtime.submit(spec(id, "")).await.unwrap();
    }
    let end = world.runtime.wait("bad").await.unwrap();
    assert_eq!(end.status, TerminalStatus::Failed);
    assert!(end.error.as_deref().unwrap().contains(message), "{:?}", end.error);
    for id in &neighbours {
        assert_eq!(world.runtime.wait(id).await.unwrap().status, TerminalStatus::Succeeded);
    }
    crate::support::until(async || hook.told().iter().any(|told| told.run_id == "bad")).await;
    crate::support::until(async || world.dead_jobs().await.len() == 1).await;
    world.close().await;
    assert_eq!(hook.told().iter().filter(|told| told.run_id == "bad").count(), 1);
}

#[tokio::test]
async fn a_step_that_always_fails_ends_its_run() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let hook = Hook::default();
    let runner = Runner::sync(move |step| {
        if step.run_id != "bad" {
            return succeed(step);
        }
        assert_eq!(step.attempts, counted.fetch_add(1, Ordering::SeqCst) + 1);
        assert_eq!(step.is_last_attempt(), step.attempts == 3);
        Err(StepError::transient("no luck"))
    });
    let world = World::with(runner, hook.clone(), |builder| builder.max_attempts_per_step(3)).await;
    check_fails(world, hook, "no luck").await;
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_step_that_panics_ends_its_run_with_the_message() {
    let hook = Hook::default();
    let runner = Runner::sync(|step| {
        assert!(step.run_id != "bad", "out of cheese in step {}", step.step_number);
        succeed(step)
    });
    let world = World::with(runner, hook.clone(), |builder| builder.max_attempts_per_step(3)).await;
    check_fails(world, hook, "panicked: out of cheese in step 0").await;
}

#[tokio::test]
async fn a_step_that_hangs_ends_its_run() {
    let hook = Hook::default();
    let runner = Runner::new(|step| async move {
        if step.run_id == "bad" {
            std::future::pending::<()>().await;
        }
        succeed(&step)
    });
    let world = World::with(runner, hook.clone(), |builder| {
        builder.max_attempts_per_step(3).step_timeout(Duration::from_millis(20))
    })
    .await;
    check_fails(world, hook, "timed out after 20ms").await;
}

#[tokio::test]
async fn a_permanent_error_is_not_retried() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let world = world_with(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(StepError::permanent("card stolen"))
    })
    .await;
    let end = world.end_of(spec("bad", "")).await;
    assert_eq!((end.status, end.error.as_deref()), (TerminalStatus::Failed, Some("card stolen")));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    crate::support::until(async || world.dead_jobs().await.len() == 1).await;
    world.close().await;
}

#[tokio::test]
async fn fail_and_cancel_are_ends_without_dead_letters() {
    let world = World::new(Runner::sync(|step| {
        let reason = "because".to_owned();
        match step.run_id.as_str() {
            "failed" => Ok(StepOutcome::Fail { reason }),
            _ => Ok(StepOutcome::Cancel { reason }),
        }
    }))
    .await;
    for (id, status) in [("failed", TerminalStatus::Failed), ("cancelled", TerminalStatus::Cancelled)] {
        let end = world.end_of(spec(id, "")).await;
        assert_eq!((end.status, end.error.as_deref(), end.result), (status, Some("because"), None));
    }
    assert_eq!(world.dead_jobs().await, Vec::<String>::new());
    world.close().await;
}

#[tokio::test]
async fn a_retry_waits_as_long_as_the_error_asks() {
    let runner = Runner::sync(|step| match step.attempts {
        1 => Err(StepError::transient("later").retry_after(Duration::from_millis(30))),
        _ => succeed(step),
    });
    let world = World::with(runner, Hook::default(), |builder| builder).await;
    let begun = std::time::Instant::now();
    assert!(world.end_of(spec("a", "")).await.error.is_none());
    assert!(begun.elapsed() >= Duration::from_millis(30));
    world.close().await;
}

#[tokio::test]
async fn a_retry_that_waits_for_ever_backs_off_for_ever() {
    let runner = Runner::sync(|_| Err(StepError::transient("never").retry_after(Duration::MAX)));
    let world = World::with(runner, Hook::default(), |builder| builder).await;
    world.runtime.submit(spec("a", "")).await.unwrap();
    crate::support::until(async || {
        let status = world.runtime.status("a").await.unwrap().unwrap();
        matches!(status.phase, RunPhase::BackingOff { .. }) && status.attempts_used == 1
    })
    .await;
    world.close().await;
}

#[tokio::test]
async fn messages_are_cut_to_their_limit() {
    let long = "é".repeat(10_000);
    let world = World::new(Runner::sync(move |step| match step.run_id.as_str() {
        "error" => Err(StepError::permanent(long.clone())),
        "reason" => Ok(StepOutcome::Fail { reason: long.clone() }),
        _ => panic!("{long}"),
    }))
    .await;
    for id in ["error", "reason", "panic"] {
        let spec = RunSpec { max_attempts_per_step: Some(1), ..spec(id, "") };
        let error = world.end_of(spec).await.error.unwrap();
        assert!(error.len() <= 8 * 1024 && error.len() > 8 * 1024 - 32, "{}", error.len());
        assert!(error.ends_with("(cut)"));
    }
    world.close().await;
}

#[tokio::test]
async fn a_result_or_payload_that_is_too_large_fails_its_step_once() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let runner = Runner::sync(move |step| {
        counted.fetch_add(1, Ordering::SeqCst);
        step.effects.put("must not", "be there")?;
        let large = vec![0; 101];
        match step.run_id.as_str() {
            "result" => Ok(StepOutcome::Succeed { result: large }),
            _ => Ok(StepOutcome::continue_now(large)),
        }
    });
    let world = World::with(runner, Hook::default(), |builder| builder.max_value_size(100)).await;
    for id in ["result", "payload"] {
        let end = world.end_of(spec(id, "")).await;
        assert_eq!(end.status, TerminalStatus::Failed);
        assert!(end.error.unwrap().contains("101 bytes"));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert_eq!(world.value("must not").await, None);
    world.close().await;
}

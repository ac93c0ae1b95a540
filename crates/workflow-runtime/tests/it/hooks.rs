//! Terminal hooks: told of committed ends, at least once, with effects that commit once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use workflow_runtime::{RunOutcome, StepError, StepOutcome, TerminalEffects, TerminalHook, TerminalStatus};

use crate::support::{Hook, Runner, World, spec, succeed, until};

fn by_name(step: &workflow_runtime::Step) -> crate::support::Answer {
    match step.run_id.as_str() {
        "failed" => Ok(StepOutcome::Fail { reason: "so".to_owned() }),
        "cancelled" => Ok(StepOutcome::Cancel { reason: "so".to_owned() }),
        "broken" => Err(StepError::permanent("so")),
        _ => succeed(step),
    }
}

#[tokio::test]
async fn every_end_is_told_as_wait_tells_it() {
    let hook = Hook::default();
    let world = World::with(Runner::sync(by_name), hook.clone(), |builder| builder).await;
    for id in ["failed", "cancelled", "broken", "succeeded"] {
        let end = world.end_of(spec(id, "result")).await;
        until(async || hook.told().contains(&end)).await;
        let key = format!("told/{id}");
        until(async || world.value(&key).await == Some(format!("{:?}", end.status))).await;
    }
    assert_eq!(hook.told().len(), 4);
    world.close().await;
}

#[tokio::test]
async fn a_failing_hook_is_called_again_until_it_succeeds() {
    let hook = Hook::default();
    *hook.failures.lock().unwrap() = vec![StepError::transient("mail is down"); 3];
    let world = World::with(Runner::sync(succeed), hook.clone(), |builder| builder).await;
    world.end_of(spec("a", "")).await;
    until(async || world.value("told/a").await.is_some()).await;
    assert_eq!(hook.told().len(), 4);
    world.close().await;
}

#[tokio::test]
async fn a_hook_that_never_succeeds_is_given_up_and_the_end_stands() {
    let hook = Hook::default();
    *hook.failures.lock().unwrap() = vec![StepError::transient("mail is down"); 30];
    let world = World::with(Runner::sync(succeed), hook.clone(), |builder| builder.hook_attempts(3)).await;
    let end = world.end_of(spec("a", "")).await;
    let dead = async || {
        let view = world.storage.queue().view();
        view.dead_jobs("workflow-steps.notifications", None, 9).await.unwrap().len()
    };
    until(async || dead().await == 1).await;
    assert_eq!(hook.told().len(), 3);
    assert_eq!(world.value("told/a").await, None);
    assert_eq!(world.runtime.run_end("a").await.unwrap(), Some(end));

    hook.failures.lock().unwrap().clear();
    let jobs = world.storage.queue().view().dead_jobs("workflow-steps.notifications", None, 9).await.unwrap();
    world.storage.queue().requeue_dead_job(&jobs[0].id).await.unwrap();
    until(async || world.value("told/a").await.is_some()).await;
    assert_eq!(hook.told().len(), 4);
    world.close().await;
}

#[tokio::test]
async fn a_permanent_error_gives_the_notification_up_at_once() {
    let hook = Hook::default();
    *hook.failures.lock().unwrap() = vec![StepError::permanent("no such address")];
    let world = World::with(Runner::sync(succeed), hook.clone(), |builder| builder).await;
    world.end_of(spec("a", "")).await;
    until(async || {
        let view = world.storage.queue().view();
        view.dead_jobs("workflow-steps.notifications", None, 9).await.unwrap().len() == 1
    })
    .await;
    assert_eq!(hook.told().len(), 1);
    world.close().await;
}

/// Panics on its first call, and when asked what it observes if told to.
#[derive(Clone, Default)]
struct Panics {
    calls: Arc<AtomicU32>,
    asked: bool,
}

impl TerminalHook for Panics {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        assert!(self.calls.fetch_add(1, Ordering::SeqCst) > 0, "first call");
        effects.put(format!("told/{}", outcome.run_id), "x")?;
        Ok(())
    }

    fn observes(&self, _: &RunOutcome) -> bool {
        assert!(!self.asked, "asked");
        true
    }
}

#[tokio::test]
async fn a_panic_in_a_hook_is_a_transient_error() {
    for asked in [false, true] {
        let hook = Panics { asked, ..Panics::default() };
        let world = World::with(Runner::sync(succeed), hook.clone(), |builder| builder).await;
        assert_eq!(world.end_of(spec("a", "")).await.status, TerminalStatus::Succeeded);
        until(async || world.value("told/a").await.is_some()).await;
        assert_eq!(hook.calls.load(Ordering::SeqCst), 2);
        world.close().await;
    }
}

/// Observes failures only.
struct Failures(Hook);

impl TerminalHook for Failures {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        self.0.on_termination(outcome, effects).await
    }

    fn observes(&self, outcome: &RunOutcome) -> bool {
        outcome.status == TerminalStatus::Failed
    }
}

#[tokio::test]
async fn an_end_that_nobody_observes_costs_no_notification() {
    let hook = Hook::default();
    let world = World::with(Runner::sync(by_name), Failures(hook.clone()), |builder| builder).await;
    world.end_of(spec("succeeded", "")).await;
    world.end_of(spec("failed", "")).await;
    until(async || hook.told().len() == 1).await;
    assert_eq!(hook.told()[0].run_id, "failed");
    until(async || {
        let queued = world.storage.queue().view().stats("workflow-steps.notifications").await.unwrap();
        (queued.done, queued.pending, queued.claimed) == (1, 0, 0)
    })
    .await;
    world.close().await;
}

/// Never returns.
struct Hangs(Arc<AtomicU32>);

impl TerminalHook for Hangs {
    async fn on_termination(&self, _: &RunOutcome, _: &TerminalEffects) -> Result<(), StepError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_hook_that_hangs_is_given_up() {
    let calls = Arc::new(AtomicU32::new(0));
    let world = World::with(Runner::sync(succeed), Hangs(calls.clone()), |builder| {
        builder.step_timeout(std::time::Duration::from_millis(10)).hook_attempts(2)
    })
    .await;
    world.end_of(spec("a", "")).await;
    until(async || {
        let view = world.storage.queue().view();
        view.dead_jobs("workflow-steps.notifications", None, 9).await.unwrap().len() == 1
    })
    .await;
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    world.close().await;
}

#[tokio::test]
async fn a_large_result_reaches_the_hook_whole() {
    let hook = Hook::default();
    let runner = Runner::sync(|_| Ok(StepOutcome::Succeed { result: vec![9; 1 << 20] }));
    let world = World::with(runner, hook.clone(), |builder| builder).await;
    let end = world.end_of(spec("a", "")).await;
    until(async || hook.told() == [end.clone()]).await;
    assert_eq!(end.result.map(|result| result.len()), Some(1 << 20));
    world.close().await;
}

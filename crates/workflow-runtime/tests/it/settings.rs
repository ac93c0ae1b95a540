//! Settings through the builder: what cannot work is refused there, and the extremes work.

use std::time::Duration;

use workflow_runtime::{Error, Jitter, NoopTerminalHook, RetryPolicy, Settings, StepError, StepOutcome, open};

use crate::support::{Runner, World, spec, succeed};

#[tokio::test]
async fn what_cannot_work_is_refused_by_build() {
    let storage = open("memory:").await.unwrap();
    let builder = || storage.runtime(Runner::sync(succeed), NoopTerminalHook);
    let refused = [
        builder().max_concurrent_steps(0),
        builder().inline_limit(64 * 1024 + 1),
        builder().hook_attempts(0),
        builder().queue_name("steps.7"),
        builder().prefix("../outside"),
        builder().lease(Duration::ZERO),
        builder().settings(Settings { max_attempts_per_step: 0, ..Settings::default() }),
    ];
    for (number, builder) in refused.into_iter().enumerate() {
        assert!(matches!(builder.build(), Err(Error::Misconfigured(_))), "number {number}");
    }
    assert!(builder().build().is_ok());
}

#[tokio::test]
async fn a_runtime_of_extremes_runs() {
    let runner = Runner::sync(|step| match (step.step_number, step.attempts) {
        (0, 1) => Err(StepError::transient("again").retry_after(Duration::ZERO)),
        (0, _) => Ok(StepOutcome::continue_after(vec![], Duration::from_millis(1))),
        _ => succeed(step),
    });
    let longest = Duration::MAX;
    let world = World::with(runner, NoopTerminalHook, |builder| {
        builder
            .max_attempts_per_step(u32::MAX)
            .retry_policy(RetryPolicy { base: longest, factor: u32::MAX, cap: longest, jitter: Jitter::Full })
            .step_timeout(longest)
            .lease(longest)
            .shutdown_grace(longest)
            .hook_attempts(u32::MAX)
            .inline_limit(0)
            .max_value_size(u64::MAX)
    })
    .await;
    assert_eq!(world.end_of(spec("a", "input")).await.error, None);
    world.close().await;
}

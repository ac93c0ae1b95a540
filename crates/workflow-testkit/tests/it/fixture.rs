//! Single steps: what they are given, and what is reported of them.

use std::future::Future;
use std::pin::Pin;

use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};

mod idempotency;
mod report;
mod state;

type Answer = Result<StepOutcome, StepError>;

/// A runner that is a closure: `Does(|step| Box::pin(async move { … }))`.
struct Does<F>(F);

impl<F> StepRunner for Does<F>
where
    F: for<'a> Fn(&'a Step) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> + Send + Sync,
{
    async fn run_step(&self, step: &Step) -> Answer {
        (self.0)(step).await
    }
}

/// Gives a closure the type that [`Does`] needs.
fn does<F>(call: F) -> Does<F>
where
    F: for<'a> Fn(&'a Step) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> + Send + Sync,
{
    Does(call)
}

fn done() -> Answer {
    Ok(StepOutcome::Succeed { result: Vec::new() })
}

//! How a delivery outlasts a store that cannot answer, and when it gives up.

use std::future::Future;

use tracing::warn;

use super::Stop;
use super::backoff::Backoff;
use crate::Error;
use crate::engine::Engine;
use crate::lease::LeaseGuard;

/// Why a delivery is dropped without a settlement: another delivery, or the next process, goes on from the record.
#[derive(Debug)]
pub(super) enum Abandoned {
    /// The lease is lost.
    LeaseLost,
    /// Another delivery or another step has taken the run over, or will: this one must not end the doorbell.
    Overtaken,
    /// The store is closed.
    Closed,
    /// The loop stops and the store does not answer.
    Stopping,
    /// The run's rows do not read: its job is a dead letter.
    Corrupt(Error),
}

/// Repeats `operation` while the store cannot answer, for as long as the delivery lasts.
pub(super) async fn patiently<R, H, T, F>(
    engine: &Engine<R, H>,
    stop: &Stop,
    lease: &LeaseGuard,
    operation: impl Fn() -> F,
) -> Result<T, Abandoned>
where
    F: Future<Output = crate::Result<T>>,
{
    let mut backoff = Backoff::default();
    loop {
        let error = match operation().await {
            Ok(value) => return Ok(value),
            Err(error) if error.is_closed() => return Err(Abandoned::Closed),
            Err(error) if error.is_permanent() => return Err(Abandoned::Corrupt(error)),
            Err(error) => error,
        };
        warn!(error = &error as &dyn std::error::Error, "the store does not answer");
        wait_out(engine, stop, lease, &mut backoff).await?;
    }
}

/// Waits before an operation is tried again; an error when the delivery is over.
pub(super) async fn wait_out<R, H>(
    engine: &Engine<R, H>,
    stop: &Stop,
    lease: &LeaseGuard,
    backoff: &mut Backoff,
) -> Result<(), Abandoned> {
    if lease.lost().is_cancelled() {
        return Err(Abandoned::LeaseLost);
    }
    if stop.aborting.is_cancelled() {
        return Err(Abandoned::Stopping);
    }
    backoff.pause(&*engine.clock, &stop.aborting).await;
    Ok(())
}

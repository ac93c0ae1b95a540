//! What a loop does beside its deliveries: forgets, removes, repairs.

mod expiry;
mod missing;
mod orphans;
mod sweep;

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use crate::TerminalHook;
use crate::engine::Engine;

/// Starts everything; it ends when what is returned is dropped.
pub(super) fn start<R, H>(engine: &Arc<Engine<R, H>>) -> Vec<AbortOnDropHandle<()>>
where
    R: Send + Sync + 'static,
    H: TerminalHook + 'static,
{
    let [expiry, sweep, missing, orphans] = [(); 4].map(|()| engine.clone());
    vec![
        AbortOnDropHandle::new(tokio::spawn(async move { expiry::forget_signals(&expiry).await })),
        AbortOnDropHandle::new(tokio::spawn(async move { sweep::remove_ended_runs(&sweep).await })),
        AbortOnDropHandle::new(tokio::spawn(async move { missing::ring_again(&missing).await })),
        AbortOnDropHandle::new(tokio::spawn(async move { orphans::remove_orphans(&orphans).await })),
    ]
}

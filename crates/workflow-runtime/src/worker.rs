//! The loop: claims what is due up to the free slots, one task per delivery, until the shutdown.

mod attempt;
mod backoff;
mod delivery;
mod fetch;
mod hand;
mod housekeeping;
mod notification;
mod pipeline;
mod replay;
mod slots;
mod trigger;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use self::fetch::{Source, fetch};
use crate::engine::Engine;
use crate::{Error, Result, StepRunner, TerminalHook};

/// How long handing back may take, once the grace is over, before the loop ends without it.
const HAND_BACK_TIME: Duration = Duration::from_secs(10);

/// What the parts of one running loop share.
#[derive(Clone)]
pub(crate) struct Stop {
    /// Fires when the shutdown begins: nothing new starts.
    pub(crate) draining: CancellationToken,
    /// Fires when the grace is over: what still runs is handed back.
    pub(crate) aborting: CancellationToken,
}

/// Runs the loop until `shutdown` resolves and everything in hand is settled or handed back.
pub(crate) async fn run<R, H>(engine: Arc<Engine<R, H>>, shutdown: impl Future<Output = ()> + Send) -> Result<()>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let _running = Running::begin(&engine)?;
    let stop = Stop { draining: CancellationToken::new(), aborting: CancellationToken::new() };
    let leases = engine.leases.clone();
    let _renewals = AbortOnDropHandle::new(tokio::spawn(async move { leases.renew_forever().await }));
    let _housekeeping = housekeeping::start(&engine);
    info!(queue = engine.settings.queue_name, "workflow runtime started");

    let sources = async {
        let (steps, hooks) =
            join(fetch(&engine, Source::Steps, &stop), fetch(&engine, Source::Notifications, &stop)).await;
        steps.and(hooks)
    };
    tokio::pin!(sources);
    let result = tokio::select! {
        biased;
        result = &mut sources => result,
        () = shutdown => drain(&engine, &stop, sources).await,
    };
    info!(queue = engine.settings.queue_name, "workflow runtime stopped");
    result
}

/// Lets `sources` come to their end: steps in hand get their grace, then they are handed back, for as long as that may
/// take.
async fn drain<R, H>(
    engine: &Engine<R, H>,
    stop: &Stop,
    mut sources: Pin<&mut (impl Future<Output = Result<()>> + Send)>,
) -> Result<()> {
    stop.draining.cancel();
    tokio::select! {
        biased;
        result = &mut sources => return result,
        () = engine.clock.sleep(engine.settings.shutdown_grace) => stop.aborting.cancel(),
    }
    tokio::select! {
        biased;
        result = &mut sources => result,
        () = engine.clock.sleep(HAND_BACK_TIME) => {
            warn!("the store does not answer: deliveries in hand are left to their leases");
            Ok(())
        }
    }
}

/// Marks the runtime as running, for as long as it lives.
struct Running<'a>(&'a AtomicBool);

impl<'a> Running<'a> {
    fn begin<R, H>(engine: &'a Engine<R, H>) -> Result<Self> {
        if engine.running.swap(true, Ordering::AcqRel) {
            return Err(Error::AlreadyRunning(engine.settings.queue_name.clone()));
        }
        Ok(Self(&engine.running))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

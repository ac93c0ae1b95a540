//! The loop: claims what is due up to the free slots, one task per delivery, until the shutdown.

mod attempt;
mod backoff;
mod delivery;
mod fetch;
mod notification;
mod patience;
mod slots;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info};
use workflow_effects::{Read, ScanRange};

use self::backoff::Backoff;
use self::fetch::{Lane, fetch};
use crate::engine::Engine;
use crate::{Error, Result, StepRunner, TerminalHook};

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
    info!(queue = engine.settings.queue_name, "workflow runtime started");

    let lanes = async {
        find_priorities(&engine, &stop).await?;
        let (steps, hooks) = join(fetch(&engine, Lane::Steps, &stop), fetch(&engine, Lane::Notifications, &stop)).await;
        steps.and(hooks)
    };
    tokio::pin!(lanes);
    let result = tokio::select! {
        biased;
        result = &mut lanes => result,
        () = shutdown => {
            stop.draining.cancel();
            tokio::select! {
                biased;
                result = &mut lanes => result,
                () = engine.clock.sleep(engine.settings.shutdown_grace) => {
                    stop.aborting.cancel();
                    lanes.await
                }
            }
        }
    };
    info!(queue = engine.settings.queue_name, "workflow runtime stopped");
    result
}

/// Remembers the priorities that earlier processes used, so that their queues are claimed.
async fn find_priorities<R, H>(engine: &Engine<R, H>, stop: &Stop) -> Result<()> {
    let mut range = ScanRange { prefix: engine.keys.priorities_prefix(), after: None, limit: 256 };
    let mut backoff = Backoff::default();
    loop {
        match engine.port.scan(&range, Read::Latest).await {
            Ok(page) => {
                for (key, _) in &page.entries {
                    if let Some(priority) = engine.keys.parse_priority(key) {
                        engine.queues.of_priority(priority);
                    }
                }
                range.after = page.entries.last().map(|(key, _)| key.clone());
                if !page.more {
                    return Ok(());
                }
            }
            Err(error) if error.is_closed() => return Err(error.into()),
            Err(error) => {
                debug!(%error, "priorities could not be read");
                backoff.pause(&*engine.clock, &stop.draining).await;
                if stop.draining.is_cancelled() {
                    return Ok(());
                }
            }
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

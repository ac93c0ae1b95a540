//! When runs that have ended are removed, and how often what could not be removed is tried again.

use std::time::Duration;

use tracing::{debug, warn};

use crate::engine::Engine;
use crate::retention::{next_look, sweep};

/// Ends that others have brought are looked for this often.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// The shortest pause between two passes, so that runs that end one by one are removed together.
const BETWEEN_PASSES: Duration = Duration::from_secs(1);
/// The pause before what could not be removed is tried again.
const RETRY: Duration = Duration::from_secs(60);
/// Dead jobs are removed this often at most: each removal makes the queue look for work from the beginning.
const BETWEEN_JOBS: Duration = Duration::from_secs(60);

/// Removes what is over, now and again later, until the store is closed.
pub(super) async fn remove_ended_runs<R, H>(engine: &Engine<R, H>) {
    let mut jobs_from = engine.clock.now();
    loop {
        wait_for_work(engine).await;
        let jobs_too = jobs_from <= engine.clock.now();
        let waits = match sweep(engine, jobs_too).await {
            Ok(waits) => waits,
            Err(error) if error.is_closed() => return,
            Err(error) => {
                warn!(error = &error as &dyn std::error::Error, "ended runs could not be removed");
                true
            }
        };
        if jobs_too {
            jobs_from = engine.clock.now().after(BETWEEN_JOBS);
        }
        if waits {
            debug!("some ended runs are removed later");
        }
        engine.clock.sleep(if waits { RETRY } else { BETWEEN_PASSES }).await;
    }
}

/// Returns when the time of some run may be over, and after a while in any case.
async fn wait_for_work<R, H>(engine: &Engine<R, H>) {
    let latest = engine.clock.now().after(LONGEST_PAUSE);
    loop {
        let (now, due) = (engine.clock.now(), next_look(engine));
        if due <= now {
            return;
        }
        if latest <= now {
            return engine.ends.forget();
        }
        tokio::select! {
            biased;
            () = engine.clock.sleep(due.min(latest).since(now)) => {}
            () = engine.ends.lowered() => {}
        }
    }
}

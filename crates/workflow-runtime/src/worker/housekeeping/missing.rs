//! Looking for runs that go on and whose doorbell is gone, because an operator has removed it: it rings again.

use std::time::Duration;

use tracing::warn;
use workflow_core::{JobId, Run, RunState};
use workflow_effects::{Index, IndexEntry, Read, ScanRange};

use crate::engine::Engine;
use crate::runtime::change::{Change, Wish};
use crate::{Result, TerminalHook};

/// The states of runs that may need a doorbell.
const STATES: [RunState; 3] = [RunState::Active, RunState::Waiting, RunState::Paused];
/// Runs that are looked at without a pause, and that pause: a look takes some ten microseconds, so that a pass takes a
/// few hundredths of one core.
const PAGE: usize = 256;
const BETWEEN_PAGES: Duration = Duration::from_millis(100);
/// The pause between two passes.
const BETWEEN_PASSES: Duration = Duration::from_secs(3_600);

/// Looks at all runs that go on, now and again later, until the store is closed.
pub(super) async fn ring_again<R, H: TerminalHook>(engine: &Engine<R, H>) {
    if !engine.settings.repair {
        return;
    }
    loop {
        for state in STATES {
            match pass(engine, Index::State(state)).await {
                Ok(()) => {}
                Err(error) if error.is_closed() => return,
                Err(error) => warn!(error = &error as &dyn std::error::Error, "runs could not be looked at"),
            }
        }
        engine.clock.sleep(BETWEEN_PASSES).await;
    }
}

async fn pass<R, H: TerminalHook>(engine: &Engine<R, H>, index: Index) -> Result<()> {
    let keys = &engine.reads.keys;
    let mut pages = engine.reads.pages(ScanRange::first(keys.index_prefix(index), PAGE), Read::Latest);
    while let Some(page) = pages.next().await? {
        for entry in page.iter().filter_map(|(key, _)| keys.parse_indexed(index, key)) {
            look_at(engine, entry).await?;
        }
        engine.clock.sleep(BETWEEN_PAGES).await;
    }
    Ok(())
}

async fn look_at<R, H: TerminalHook>(engine: &Engine<R, H>, entry: IndexEntry) -> Result<()> {
    let run_id = entry.run_id;
    let looked = async {
        let Some(job) = needed_job(engine.reads.gather(&run_id, Read::Latest).await?.run) else { return Ok(()) };
        // A dead one stays: its run does not read, and an operator knows.
        if engine.port.job_state(&job).await?.is_some() {
            return Ok(());
        }
        warn!(%run_id, job_id = %job, "the doorbell is missing and rings again");
        let change = Change { run_id: run_id.clone(), wish: Wish::RingAgain(job) };
        change.carry_out(engine).await.map(drop)
    };
    match looked.await {
        // One run that does not read keeps no other from being looked at.
        Err(error) if error.is_permanent() => {
            warn!(%run_id, error = &error as &dyn std::error::Error, "corrupt run");
            Ok(())
        }
        looked => looked,
    }
}

/// The job that has to be there for `run` to go on.
fn needed_job(run: Run) -> Option<JobId> {
    match run {
        Run::Active(run) if run.needs_doorbell() => Some(run.job),
        Run::Absent | Run::Active(_) | Run::Ended(_) => None,
    }
}

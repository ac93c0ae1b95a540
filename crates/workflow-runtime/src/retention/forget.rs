//! Removing one run because somebody asks for it.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use tracing::warn;
use workflow_core::{EndedRun, Incarnation, Run, RunId};
use workflow_effects::{IndexEntry, Read};

use super::rest::remove_rest;
use super::{FORGOTTEN, Obstacle, Place, Record, index, obstacle, remove_records};
use crate::engine::Engine;
use crate::lower::left_job;
use crate::{Error, Result};

/// How long it waits for what is not done yet: usually a settlement, and a call of the hook.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes a run that has ended, whatever its time; `false` when there is none.
pub(crate) async fn forget<R, H>(engine: &Engine<R, H>, run_id: &RunId) -> Result<bool> {
    let mut patience = pin!(engine.clock.sleep(PATIENCE));
    loop {
        let gathered = engine.reads.gather(run_id, Read::Durable).await?;
        let (Run::Ended(ended), Some(record)) = (&gathered.run, &gathered.record) else {
            return match gathered.run {
                Run::Active(_) => Err(Error::NotEnded(run_id.to_string())),
                Run::Absent | Run::Ended(_) => Ok(false),
            };
        };
        if let Some(obstacle) = obstacle(engine, run_id, ended.incarnation).await? {
            tokio::select! {
                biased;
                gone = until_gone(engine, run_id, ended.incarnation, obstacle) => gone?,
                () = &mut patience => return Err(Error::NotDone(run_id.to_string())),
            }
            // The run may be brought back meanwhile.
            continue;
        }
        if let Some(place) = remove_record(engine, run_id, ended, left_job(&gathered.run), record.clone()).await? {
            engine.ends.note(FORGOTTEN);
            // What fails here is done by the next sweep.
            if let Err(error) = remove_rest(engine, vec![place], false).await {
                warn!(%run_id, error = &error as &dyn std::error::Error, "a forgotten run is not removed yet");
            }
            return Ok(true);
        }
    }
}

/// Waits until what keeps the run from being removed is gone, or another.
async fn until_gone<R, H>(
    engine: &Engine<R, H>,
    run_id: &RunId,
    incarnation: Incarnation,
    obstacle: Obstacle,
) -> Result<()> {
    match obstacle {
        Obstacle::InHand => engine.in_hand.until_let_go(run_id, incarnation).await,
        Obstacle::Owed(key, row) => drop(engine.port.wait_for_change(&key, Some(&row)).await?),
    }
    Ok(())
}

/// Removes the record, and says at which place what is left of the run is removed; `None` when it has changed.
async fn remove_record<R, H>(
    engine: &Engine<R, H>,
    run_id: &RunId,
    ended: &EndedRun,
    left: Bytes,
    bytes: Bytes,
) -> Result<Option<Place>> {
    let keys = &engine.reads.keys;
    let entry = IndexEntry { at: ended.ended_at, run_id: run_id.clone(), incarnation: ended.incarnation };
    let key = keys.indexed(index(ended.status), &entry);
    let Some(place) = Place::read(keys, ended.status, &key, &left) else { return Ok(None) };
    let record = Record::read(engine, run_id, ended, bytes).await?;
    let (mut gone, mut later) = (Vec::new(), Vec::new());
    remove_records(engine, vec![(place, record)], &mut gone, &mut later).await?;
    Ok(gone.pop())
}

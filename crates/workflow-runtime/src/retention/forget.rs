//! Removing one run because somebody asks for it.

use bytes::Bytes;
use tracing::warn;
use workflow_core::{EndedRun, Run, RunId};
use workflow_effects::{IndexEntry, Read};

use super::rest::remove_rest;
use super::{FORGOTTEN, Place, Record, index, is_done, remove_records};
use crate::engine::Engine;
use crate::lower::left_job;
use crate::{Error, Result};

/// Removes a run that has ended, whatever its time; `false` when there is none.
pub(crate) async fn forget<R, H>(engine: &Engine<R, H>, run_id: &RunId) -> Result<bool> {
    loop {
        let gathered = engine.reads.gather(run_id, Read::Durable).await?;
        let (Run::Ended(ended), Some(record)) = (&gathered.run, &gathered.record) else {
            return match gathered.run {
                Run::Active(_) => Err(Error::NotEnded(run_id.to_string())),
                Run::Absent | Run::Ended(_) => Ok(false),
            };
        };
        if !is_done(engine, run_id, ended.incarnation).await? {
            return Err(Error::NotDone(run_id.to_string()));
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

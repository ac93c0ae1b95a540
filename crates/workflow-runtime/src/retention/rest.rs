//! What is left of a run once its record is gone: its rows, its objects, its dead jobs, and last its place.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tracing::warn;
use workflow_core::{JobId, Value};
use workflow_effects::{
    Commit, ObjectOwner, Read, ScanRange, decode_notification, decode_objects_row, decode_step_row,
};

use super::{AT_A_TIME, PAGE, Place, WRITES};
use crate::engine::Engine;
use crate::port::Settlement;
use crate::{Error, Result};

/// What is to be deleted of one run, its place last.
struct Rest {
    place: Place,
    keys: Vec<Bytes>,
    jobs: Vec<JobId>,
}

/// Removes what is left of runs whose records are gone. Those that have a job among the dead are left alone if
/// `jobs_too` is not set, and returned, as are those of which something cannot be removed now.
pub(super) async fn remove_rest<R, H>(engine: &Engine<R, H>, places: Vec<Place>, jobs_too: bool) -> Result<Vec<Place>> {
    let found = stream::iter(places).map(|place| find(engine, place)).buffered(AT_A_TIME);
    let found: Vec<Result<Rest, Place>> = found.try_collect().await?;
    let mut left = Vec::new();
    let found = found.into_iter().filter_map(|found| found.map_err(|place| left.push(place)).ok());
    let (gone, with_jobs): (Vec<Rest>, Vec<Rest>) = found.partition(|rest| jobs_too || rest.jobs.is_empty());
    left.extend(with_jobs.into_iter().map(|rest| rest.place));
    let jobs: Vec<JobId> = gone.iter().flat_map(|rest| rest.jobs.clone()).collect();
    if !jobs.is_empty() {
        engine.port.settle(Settlement::Drop(jobs)).await?;
    }
    let keys: Vec<Bytes> = gone.into_iter().flat_map(|rest| rest.keys).collect();
    for keys in keys.chunks(WRITES) {
        delete(engine, keys.to_vec()).await?;
    }
    Ok(left)
}

/// Finds what is left of a run, or gives its place back if that cannot be told, or its objects not be deleted: it keeps
/// no other from being removed. A run that is in hand may be given another object yet.
async fn find<R, H>(engine: &Engine<R, H>, place: Place) -> Result<Result<Rest, Place>> {
    if engine.in_hand.is_busy(&place.run_id, place.incarnation) {
        return Ok(Err(place));
    }
    match gather(engine, place.clone()).await {
        Ok(rest) => Ok(Ok(rest)),
        Err(error) if error.is_permanent() || matches!(error, Error::Store(_)) => {
            warn!(run_id = %place.run_id, error = &error as &dyn std::error::Error, "a run is not removed yet");
            Ok(Err(place))
        }
        Err(error) => Err(error),
    }
}

/// Finds what is left of a run. Its objects are deleted at once, and so are rows of which there are many.
async fn gather<R, H>(engine: &Engine<R, H>, place: Place) -> Result<Rest> {
    let reads = &engine.reads;
    let (keys, jobs) = (Vec::new(), place.left.iter().cloned().collect());
    let mut rest = Rest { place, keys, jobs };
    let prefix = reads.keys.owned_prefix(&rest.place.run_id, rest.place.incarnation);
    let mut pages = reads.pages(ScanRange::first(prefix, PAGE), Read::Latest);
    while let Some(page) = pages.next().await? {
        for (key, row) in page {
            rest.read(engine, &key, &row).await;
            rest.keys.push(key);
        }
        if rest.keys.len() >= WRITES && rest.jobs.is_empty() {
            delete(engine, std::mem::take(&mut rest.keys)).await?;
        }
    }
    rest.keys.extend(delete_objects(engine, &rest.place).await?);
    rest.keys.push(rest.place.key.clone());
    Ok(rest)
}

impl Rest {
    /// Looks for what a row names outside of the run's own keys: dead jobs, signals. A row that does not read names
    /// nothing.
    async fn read<R, H>(&mut self, engine: &Engine<R, H>, key: &Bytes, row: &Bytes) {
        let (keys, Place { run_id, incarnation, .. }) = (&engine.reads.keys, &self.place);
        if key.starts_with(&keys.notifications_prefix(run_id, *incarnation)) {
            self.jobs.extend(decode_notification(run_id, row).ok().map(|row| row.state.job));
        } else if key.starts_with(&keys.left_jobs_prefix(run_id, *incarnation)) {
            self.jobs.push(String::from_utf8_lossy(row).into_owned().into());
        } else if key.starts_with(&keys.history_prefix(run_id, *incarnation)) {
            let signal = decode_step_row(run_id, row).ok().and_then(|row| row.signal);
            discard_signal(engine, signal.as_ref().map(|signal| &signal.payload)).await;
        }
    }
}

/// Deletes the objects of a run, and returns the row that says that there are some.
async fn delete_objects<R, H>(engine: &Engine<R, H>, place: &Place) -> Result<Option<Bytes>> {
    let (reads, Place { run_id, incarnation, .. }) = (&engine.reads, place);
    let key = reads.keys.objects(run_id, *incarnation);
    let Some(row) = reads.kv.get(&key, Read::Latest).await? else { return Ok(None) };
    let row = decode_objects_row(run_id, &row)?;
    let owner = ObjectOwner::Run { run_id: run_id.clone(), incarnation: *incarnation };
    reads.objects.delete_all(&owner, &row.prefix).await?;
    Ok(Some(key))
}

/// Deletes keys that nobody compares: they carry the incarnation of a run that is no more.
async fn delete<R, H>(engine: &Engine<R, H>, deletes: Vec<Bytes>) -> Result<()> {
    engine.apply(Commit { deletes, ..Commit::default() }).await.map(drop)
}

/// Deletes the object of a signal that the run had received, if it has one.
pub(super) async fn discard_signal<R, H>(engine: &Engine<R, H>, payload: Option<&Value>) {
    if let Some(payload) = payload {
        engine.reads.objects.discard(payload).await;
    }
}

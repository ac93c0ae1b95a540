//! Looking for objects that nothing names: a process died between writing one and the commit that was to name it, or
//! the object store failed when one was to be deleted.

use std::time::Duration;

use bytes::Bytes;
use tracing::{info, warn};
use workflow_core::{CorrelationKey, Incarnation, RunId, SignalId, Timestamp};
use workflow_effects::{
    Commit, ObjectOwner, ObjectsRow, ObjectsState, Read, ScanRange, SignalObjectsRow, SignalObjectsState,
    decode_buffered_signal, decode_objects_row, decode_signal_objects_row, encode_objects_row,
    encode_signal_objects_row,
};

use crate::Result;
use crate::engine::Engine;

/// Rows that are read at once.
const PAGE: usize = 256;
/// Nobody takes longer than this from writing an object to naming it.
const AGE: Duration = Duration::from_secs(24 * 3_600);
/// The pause between two passes.
const BETWEEN_PASSES: Duration = Duration::from_secs(6 * 3_600);

/// A row that tells of objects, and what is known of them.
struct Row {
    key: Bytes,
    bytes: Bytes,
    owner: ObjectOwner,
    since: Timestamp,
    prefix: String,
    /// Their removal was begun.
    is_condemned: bool,
    /// The row that says so.
    condemned: Bytes,
}

/// Removes objects that nothing names, now and again later, until the store is closed.
pub(super) async fn remove_orphans<R, H>(engine: &Engine<R, H>) {
    loop {
        for prefix in [engine.reads.keys.objects_prefix(), engine.reads.keys.signals_objects_prefix()] {
            match pass(engine, prefix).await {
                Ok(()) => {}
                Err(error) if error.is_closed() => return,
                Err(error) => warn!(error = &error as &dyn std::error::Error, "orphans could not be looked for"),
            }
        }
        engine.clock.sleep(BETWEEN_PASSES).await;
    }
}

async fn pass<R, H>(engine: &Engine<R, H>, prefix: Bytes) -> Result<()> {
    let mut pages = engine.reads.pages(ScanRange::first(prefix, PAGE), Read::Latest);
    while let Some(page) = pages.next().await? {
        for (key, bytes) in &page {
            match look_at(engine, key, bytes).await {
                // One row that does not read, or one object that cannot be deleted, keeps no other from going.
                Err(error) if !error.is_closed() => {
                    warn!(error = &error as &dyn std::error::Error, "an orphan is not removed yet");
                }
                looked => looked?,
            }
        }
    }
    Ok(())
}

async fn look_at<R, H>(engine: &Engine<R, H>, key: &Bytes, bytes: &Bytes) -> Result<()> {
    let keys = &engine.reads.keys;
    if let Some((run_id, incarnation)) = keys.parse_objects(key) {
        let row = decode_objects_row(&run_id, bytes)?;
        let is_named = is_there(engine, &run_id, incarnation).await?;
        let owner = ObjectOwner::Run { run_id, incarnation };
        let condemned = encode_objects_row(&ObjectsRow { state: ObjectsState::Condemned, ..row.clone() });
        let is_condemned = row.state == ObjectsState::Condemned;
        let ObjectsRow { since, prefix, .. } = row;
        let (key, bytes) = (key.clone(), bytes.clone());
        return remove(engine, Row { key, bytes, owner, since, prefix, is_condemned, condemned }, is_named).await;
    }
    let Some(signal) = keys.parse_signal_objects(key) else { return Ok(()) };
    let row = decode_signal_objects_row(bytes)?;
    let is_named = match &row.state {
        SignalObjectsState::Fresh | SignalObjectsState::Condemned => false,
        SignalObjectsState::Buffered { key } => is_buffered(engine, key, signal).await?,
        SignalObjectsState::Owned { run_id, incarnation } => is_there(engine, run_id, *incarnation).await?,
    };
    let condemned =
        encode_signal_objects_row(&SignalObjectsRow { state: SignalObjectsState::Condemned, ..row.clone() });
    let is_condemned = row.state == SignalObjectsState::Condemned;
    let SignalObjectsRow { since, prefix, .. } = row;
    let (key, bytes, owner) = (key.clone(), bytes.clone(), ObjectOwner::Signal(signal));
    remove(engine, Row { key, bytes, owner, since, prefix, is_condemned, condemned }, is_named).await
}

/// Whether the run's record names this submission, or does not read, or something of it is in hand.
async fn is_there<R, H>(engine: &Engine<R, H>, run_id: &RunId, incarnation: Incarnation) -> Result<bool> {
    if engine.in_hand.is_busy(run_id, incarnation) {
        return Ok(true);
    }
    match engine.reads.gather(run_id, Read::Latest).await {
        Ok(gathered) => Ok(gathered.run.incarnation() == Some(incarnation)),
        Err(error) if error.is_permanent() => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether `signal` waits in the buffer of `key`.
async fn is_buffered<R, H>(engine: &Engine<R, H>, key: &CorrelationKey, signal: SignalId) -> Result<bool> {
    let reads = &engine.reads;
    let mut pages = reads.pages(ScanRange::first(reads.keys.buffered_signals_prefix(key), PAGE), Read::Latest);
    while let Some(page) = pages.next().await? {
        // One that does not read may be it.
        let may_be = |row: &Bytes| decode_buffered_signal(key, row).map_or(true, |buffered| buffered.id == signal);
        if page.iter().any(|(_, row)| may_be(row)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes old objects that nothing names. Their row is condemned first, so that a commit which would name one after
/// all is refused.
async fn remove<R, H>(engine: &Engine<R, H>, row: Row, is_named: bool) -> Result<()> {
    let is_old = row.since.after(AGE) <= engine.clock.now();
    if is_named || !(row.is_condemned || is_old) {
        return Ok(());
    }
    if !row.is_condemned {
        let put = (row.key.clone(), row.condemned.clone());
        let commit = Commit { expect: vec![(row.key.clone(), Some(row.bytes))], puts: vec![put], ..Commit::default() };
        if !engine.apply(commit).await? {
            return Ok(());
        }
    }
    engine.reads.objects.delete_all(&row.owner, &row.prefix).await?;
    info!(owner = %row.owner, "objects removed that nothing names");
    let commit =
        Commit { expect: vec![(row.key.clone(), Some(row.condemned))], deletes: vec![row.key], ..Commit::default() };
    engine.apply(commit).await.map(drop)
}

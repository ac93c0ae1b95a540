//! Removing runs that have ended: first the record, with every place at which the run is listed, then everything that
//! belongs to the run. From the first commit to the last the run has a place among the ended runs from which it is
//! removed at once, and from which whoever is interrupted goes on.

mod ends;
mod forget;
mod rest;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tracing::{debug, warn};
use workflow_core::{EndedRun, Incarnation, JobId, Run, RunId, RunState, Status, Timestamp, Value};
use workflow_effects::{Commit, Index, IndexEntry, KeySpace, Read, ScanRange, decode_notification};

pub(crate) use self::ends::Ends;
pub(crate) use self::forget::forget;
use crate::engine::Engine;
use crate::lower::submission_places;
use crate::{Error, Result};

/// The ways in which a run ends, each with an index of its own.
const STATUSES: [Status; 3] = [Status::Succeeded, Status::Failed, Status::Cancelled];
/// Places that are read at once.
const PAGE: usize = 256;
/// Keys that one commit writes: those of a page of runs that were submitted without headers.
const WRITES: usize = 4 * PAGE;
/// Runs of which something is read at the same time.
const AT_A_TIME: usize = 16;
/// The time of the place of a run whose record is gone.
const FORGOTTEN: Timestamp = Timestamp::from_millis(0);

/// The place of a run among those that ended in one way.
#[derive(Clone, Debug)]
struct Place {
    key: Bytes,
    run_id: RunId,
    incarnation: Incarnation,
    status: Status,
    at: Timestamp,
    /// The job that the end of the run left among the dead.
    left: Option<JobId>,
}

impl Place {
    /// The place at `key` among the runs that ended with `status`, whose row holds what is `left`.
    fn read(keys: &KeySpace, status: Status, key: &Bytes, left: &Bytes) -> Option<Self> {
        let IndexEntry { at, run_id, incarnation } = keys.parse_indexed(index(status), key)?;
        let left = Some(String::from_utf8_lossy(left).into_owned()).filter(|job| !job.is_empty()).map(JobId::from);
        Some(Self { key: key.clone(), run_id, incarnation, status, at, left })
    }

    /// The place of the run once its record is gone.
    fn forgotten(&self, keys: &KeySpace) -> Self {
        let entry = IndexEntry { at: FORGOTTEN, run_id: self.run_id.clone(), incarnation: self.incarnation };
        Self { key: keys.indexed(index(self.status), &entry), at: FORGOTTEN, ..self.clone() }
    }

    /// What its row holds.
    fn row(&self) -> Bytes {
        self.left.as_ref().map_or_else(Bytes::new, |job| Bytes::copy_from_slice(job.as_str().as_bytes()))
    }
}

fn index(status: Status) -> Index {
    Index::State(RunState::Ended(status))
}

/// What is to be done about the run at a place.
enum Verdict {
    /// It goes.
    Remove(Record),
    /// Its record is gone already: the rest goes.
    GoOn,
    /// It goes another time: something of it is in hand, or its hook is owed.
    Later,
}

/// The record of a run that goes.
struct Record {
    bytes: Bytes,
    /// The payload of the signal that its last step was called with.
    signal: Option<Value>,
    /// Where the run is listed since its submission.
    places: Vec<Bytes>,
}

impl Record {
    /// The record of `ended`, whose bytes are `bytes`.
    async fn read<R, H>(engine: &Engine<R, H>, run_id: &RunId, ended: &EndedRun, bytes: Bytes) -> Result<Self> {
        let (reads, incarnation) = (&engine.reads, ended.incarnation);
        // Without one the run was removed meanwhile, and the commit is refused.
        let spec = reads.spec(run_id, incarnation).await?;
        let signal = ended.remains.as_ref().and_then(|remains| remains.signal.as_ref());
        Ok(Self {
            bytes,
            signal: signal.map(|signal| signal.payload.clone()),
            places: spec.iter().flat_map(|spec| submission_places(&reads.keys, run_id, incarnation, spec)).collect(),
        })
    }
}

/// Removes the runs whose time is over, and says whether some of them have to wait. Runs that left a job among the dead
/// do if `jobs_too` is not set. What is not over is not read, but for the first of it.
pub(crate) async fn sweep<R, H>(engine: &Engine<R, H>, jobs_too: bool) -> Result<bool> {
    let from = engine.ends.take();
    let mut later = false;
    for status in STATUSES {
        match sweep_ended(engine, status, from, jobs_too).await {
            Ok(waits) => later |= waits,
            Err(error) => {
                engine.ends.note(from);
                return Err(error);
            }
        }
    }
    Ok(later)
}

async fn sweep_ended<R, H>(engine: &Engine<R, H>, status: Status, from: Timestamp, jobs_too: bool) -> Result<bool> {
    let reads = &engine.reads;
    let after = Some(reads.keys.index_from(index(status), from));
    let range = ScanRange { after, ..ScanRange::first(reads.keys.index_prefix(index(status)), PAGE) };
    let mut pages = reads.pages(range, Read::Latest);
    let mut later = false;
    while let Some(page) = pages.next().await? {
        let places = page.iter().filter_map(|(key, left)| Place::read(&reads.keys, status, key, left));
        let (over, rest): (Vec<Place>, Vec<Place>) = places.partition(|place| is_over(engine, place.at));
        later |= remove(engine, over, jobs_too).await?;
        if let Some(next) = rest.first() {
            engine.ends.note(next.at);
            return Ok(later);
        }
    }
    Ok(later)
}

/// Whether the time of a run that ended at `at` is over.
fn is_over<R, H>(engine: &Engine<R, H>, at: Timestamp) -> bool {
    let over = engine.settings.retention.map(|retention| at.after(retention));
    at == FORGOTTEN || over.is_some_and(|over| over < Timestamp::NEVER && over <= engine.clock.now())
}

/// When the sweep has to look next.
pub(crate) fn next_look<R, H>(engine: &Engine<R, H>) -> Timestamp {
    match (engine.ends.earliest(), engine.settings.retention) {
        (FORGOTTEN, _) => FORGOTTEN,
        (_, None) => Timestamp::NEVER,
        (earliest, Some(retention)) => earliest.after(retention),
    }
}

/// Removes the runs at `places` that are done, and says whether some of them have to wait.
async fn remove<R, H>(engine: &Engine<R, H>, places: Vec<Place>, jobs_too: bool) -> Result<bool> {
    let judged = stream::iter(places).map(|place| async {
        let verdict = verdict(engine, &place).await?;
        Ok::<_, Error>((place, verdict))
    });
    let judged: Vec<_> = judged.buffered(AT_A_TIME).try_collect().await?;
    let (mut gone, mut removed, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for (place, verdict) in judged {
        match verdict {
            Verdict::Remove(record) => removed.push((place, record)),
            Verdict::GoOn => gone.push(place),
            Verdict::Later => later.push(place),
        }
    }
    for runs in batches(removed) {
        remove_records(engine, runs, &mut gone, &mut later).await?;
    }
    let (rest, waiting): (Vec<_>, Vec<_>) = gone.into_iter().partition(|place| jobs_too || place.left.is_none());
    later.extend(waiting);
    later.extend(rest::remove_rest(engine, rest, jobs_too).await?);
    later.iter().for_each(|place| engine.ends.note(place.at));
    Ok(!later.is_empty())
}

async fn verdict<R, H>(engine: &Engine<R, H>, place: &Place) -> Result<Verdict> {
    match judge(engine, place).await {
        Err(error) if error.is_permanent() => {
            warn!(run_id = %place.run_id, error = &error as &dyn std::error::Error, "a corrupt run is kept");
            Ok(Verdict::Later)
        }
        verdict => verdict,
    }
}

async fn judge<R, H>(engine: &Engine<R, H>, place: &Place) -> Result<Verdict> {
    let gathered = engine.reads.gather(&place.run_id, Read::Latest).await?;
    match (gathered.run, gathered.record) {
        // One that has ended at another time was brought back since the place was read, and has another.
        (Run::Ended(ended), Some(bytes)) if ended.incarnation == place.incarnation && ended.ended_at == place.at => {
            if obstacle(engine, &place.run_id, place.incarnation).await?.is_some() {
                return Ok(Verdict::Later);
            }
            Ok(Verdict::Remove(Record::read(engine, &place.run_id, &ended, bytes).await?))
        }
        (run, _) if run.incarnation() == Some(place.incarnation) => Ok(Verdict::Later),
        _ => Ok(Verdict::GoOn),
    }
}

/// What keeps a run that has ended from being removed.
enum Obstacle {
    /// Something of it is in hand.
    InHand,
    /// Its hook is owed the end that the row at this key tells of.
    Owed(Bytes, Bytes),
}

/// What keeps a run that has ended from being removed, if anything does.
async fn obstacle<R, H>(engine: &Engine<R, H>, run_id: &RunId, incarnation: Incarnation) -> Result<Option<Obstacle>> {
    if engine.in_hand.is_busy(run_id, incarnation) {
        return Ok(Some(Obstacle::InHand));
    }
    let reads = &engine.reads;
    let prefix = reads.keys.notifications_prefix(run_id, incarnation);
    let mut pages = reads.pages(ScanRange::first(prefix, PAGE), Read::Latest);
    while let Some(page) = pages.next().await? {
        // One that does not read will never be told.
        let owed = |row: &Bytes| decode_notification(run_id, row).is_ok_and(|row| !row.state.dead);
        if let Some((key, row)) = page.into_iter().find(|(_, row)| owed(row)) {
            return Ok(Some(Obstacle::Owed(key, row)));
        }
    }
    Ok(None)
}

/// Runs whose records one commit removes.
fn batches(runs: Vec<(Place, Record)>) -> Vec<Vec<(Place, Record)>> {
    let (mut batches, mut writes) = (Vec::<Vec<_>>::new(), WRITES);
    for run in runs {
        // The record, the place before and the place after.
        let more = run.1.places.len() + 3;
        writes += more;
        match batches.last_mut() {
            Some(batch) if writes <= WRITES => batch.push(run),
            _ => {
                batches.push(vec![run]);
                writes = more;
            }
        }
    }
    batches
}

/// Removes the records of all these runs in one commit, or, where one of them has changed meanwhile, each by itself.
async fn remove_records<R, H>(
    engine: &Engine<R, H>,
    runs: Vec<(Place, Record)>,
    gone: &mut Vec<Place>,
    later: &mut Vec<Place>,
) -> Result<()> {
    let all_at_once = engine.apply(removal(engine, &runs)).await?;
    for run in runs {
        let run = [run];
        let is_gone = all_at_once || engine.apply(removal(engine, &run)).await?;
        let [(place, record)] = run;
        if is_gone {
            debug!(run_id = %place.run_id, "run removed");
            rest::discard_signal(engine, record.signal.as_ref()).await;
            gone.push(place.forgotten(&engine.reads.keys));
        } else {
            later.push(place);
        }
    }
    Ok(())
}

/// The commit that removes the records of `runs`, and them from all listings.
fn removal<R, H>(engine: &Engine<R, H>, runs: &[(Place, Record)]) -> Commit {
    let keys = &engine.reads.keys;
    let mut commit = Commit::default();
    for (place, record) in runs {
        let (key, next) = (keys.run(&place.run_id), place.forgotten(keys));
        commit.expect.push((key.clone(), Some(record.bytes.clone())));
        commit.deletes.push(key);
        commit.deletes.extend((next.key != place.key).then(|| place.key.clone()));
        commit.deletes.extend(record.places.iter().cloned());
        commit.puts.push((next.key, place.row()));
    }
    commit
}

//! Reading runs, whoever asks: a runtime, or a reader beside another process's runtime.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use workflow_core::{EndedRun, Incarnation, Phase, Run, RunId, Timestamp};
use workflow_effects::{
    KeySpace, KvStore, ObjectValues, Read, ScanRange, Spec, StepRow, decode_run, decode_spec, decode_step_row,
};

use crate::views::{HistoryEntry, RunPhase, RunStatus};
use crate::{Error, Result, RunOutcome};

/// Rows of a history that are read at once.
const HISTORY_PAGE: usize = 256;

/// The rows of the runs of one queue name, as they are to be read.
#[derive(Clone)]
pub(crate) struct RunReads {
    pub(crate) kv: Arc<dyn KvStore>,
    pub(crate) keys: KeySpace,
    pub(crate) objects: Arc<ObjectValues>,
}

/// A run as it was read: the value, and the bytes that a commit has to expect.
#[derive(Clone)]
pub(crate) struct Gathered {
    pub(crate) run: Run,
    pub(crate) record: Option<Bytes>,
}

impl RunReads {
    /// Reads a run's record.
    pub(crate) async fn gather(&self, run_id: &RunId, read: Read) -> Result<Gathered> {
        let record = self.kv.get(&self.keys.run(run_id), read).await?;
        let run = decode_run(run_id, record.as_deref())?;
        Ok(Gathered { run, record })
    }

    /// Reads what the incarnation that a record names was submitted with. Written once, together with the first
    /// record, so any read of it is good, and one that finds nothing has found a corrupt run.
    pub(crate) async fn spec(&self, run_id: &RunId, incarnation: Incarnation) -> Result<Spec> {
        match self.kv.get(&self.keys.spec(run_id, incarnation), Read::Latest).await? {
            Some(bytes) => Ok(decode_spec(run_id, &bytes)?),
            None => Err(corrupt(run_id, "its specification is missing")),
        }
    }

    /// The end of a run as users see it, its result fetched.
    pub(crate) async fn outcome(&self, run_id: &RunId, ended: &EndedRun) -> Result<RunOutcome> {
        let spec = self.spec(run_id, ended.incarnation).await?;
        let result = match &ended.result {
            Some(value) => Some(self.objects.get(value).await?.to_vec()),
            None => None,
        };
        Ok(RunOutcome::new(run_id, ended, &spec, result))
    }

    /// How the run ended, if it has.
    pub(crate) async fn run_end(&self, run_id: &RunId) -> Result<Option<RunOutcome>> {
        match self.gather(run_id, Read::Durable).await?.run {
            Run::Ended(ended) => Ok(Some(self.outcome(run_id, &ended).await?)),
            Run::Absent | Run::Active(_) => Ok(None),
        }
    }

    /// How far the run is, seen at `now`.
    pub(crate) async fn status(&self, run_id: &RunId, now: Timestamp) -> Result<Option<RunStatus>> {
        let run = self.gather(run_id, Read::Durable).await?.run;
        let cancel_requested = matches!(&run, Run::Active(run) if run.cancel.is_some());
        let (incarnation, phase, step, attempts_used) = match run {
            Run::Absent => return Ok(None),
            Run::Active(run) => (run.incarnation, phase_at(&run.phase, now), run.step, run.attempts.used),
            Run::Ended(ended) => {
                let (status, at) = (ended.status.into(), ended.ended_at.into());
                (ended.incarnation, RunPhase::Ended { status, at }, ended.final_step, 0)
            }
        };
        let spec = self.spec(run_id, incarnation).await?;
        Ok(Some(RunStatus {
            run_id: run_id.to_string(),
            phase,
            step,
            attempts_used,
            cancel_requested,
            max_attempts: spec.max_attempts,
            submitted_at: spec.submitted_at.into(),
        }))
    }

    /// The rows of the run's history, in order of its steps.
    pub(crate) fn history(&self, run_id: RunId) -> impl Stream<Item = Result<HistoryEntry>> + Send + use<> {
        let reads = self.clone();
        let opened = async move {
            let incarnation = reads.gather(&run_id, Read::Durable).await?.run.incarnation();
            Ok::<_, Error>(incarnation.map(|of| reads.history_of(run_id, of)))
        };
        stream::once(opened).map_ok(|rows| stream::iter(rows).flatten()).try_flatten()
    }

    fn history_of(self, run_id: RunId, of: Incarnation) -> impl Stream<Item = Result<HistoryEntry>> + Send + use<> {
        let prefix = self.keys.history_prefix(&run_id, of);
        let first = ScanRange::first(prefix, HISTORY_PAGE);
        let pages = stream::try_unfold((self, run_id, Some(first)), |(reads, run_id, range)| async move {
            let Some(mut range) = range else { return Ok::<_, Error>(None) };
            let page = reads.kv.scan(&range, Read::Durable).await?;
            let mut entries = Vec::with_capacity(page.entries.len());
            for (key, row) in &page.entries {
                entries.push(reads.entry(&run_id, key, row).await);
            }
            range.after = page.entries.into_iter().next_back().map(|(key, _)| key);
            let next = page.more.then_some(range);
            Ok(Some((stream::iter(entries), (reads, run_id, next))))
        });
        pages.try_flatten()
    }

    async fn entry(&self, run_id: &RunId, key: &[u8], row: &[u8]) -> Result<HistoryEntry> {
        let step = self.keys.parse_history_step(key).ok_or_else(|| corrupt(run_id, "a row of its history is none"))?;
        let StepRow { attempt, started_at, ended_at, end, payload, signal_key } = decode_step_row(run_id, row)?;
        let payload = match payload {
            Some(value) => Some(self.objects.get(&value).await?.to_vec()),
            None => None,
        };
        let (started_at, ended_at) = (started_at.into(), ended_at.into());
        Ok(HistoryEntry { step, attempt, started_at, ended_at, end: end.into(), payload, signal_key })
    }
}

fn phase_at(phase: &Phase, now: Timestamp) -> RunPhase {
    match *phase {
        Phase::BackingOff { until } if until > now => RunPhase::BackingOff { until: until.into() },
        Phase::Delayed { until } if until > now => RunPhase::Delayed { until: until.into() },
        Phase::Waiting { ref keys, until } => {
            RunPhase::Waiting { keys: keys.iter().map(ToString::to_string).collect(), until: until.map(Into::into) }
        }
        Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => RunPhase::Ready,
    }
}

/// A run whose rows do not fit together.
pub(crate) fn corrupt(run_id: &RunId, detail: &str) -> Error {
    let detail = detail.to_owned();
    workflow_effects::Error::Corrupt { what: format!("run `{run_id}`"), detail }.into()
}

/// Parses a user's run id; the error shows its beginning.
pub(crate) fn parse_run_id(id: &str) -> Result<RunId> {
    RunId::parse(id).map_err(|rule| Error::InvalidRunId {
        run_id: id.chars().take(64).collect::<String>().escape_debug().to_string(),
        rule,
    })
}

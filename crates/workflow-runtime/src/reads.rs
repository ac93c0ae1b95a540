//! Reading runs, whoever asks: a runtime, or a reader beside another process's runtime.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use workflow_core::{Effect, EndedRun, Incarnation, Phase, Run, RunId, Timestamp, Transition, Value};
use workflow_effects::{
    KeySpace, KvStore, ObjectValues, Pages, Read, ScanRange, Spec, StepRow, decode_run, decode_spec, decode_step_row,
};

use crate::lower::named_values;
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
    /// The entries of a range, a page after the other.
    pub(crate) fn pages(&self, range: ScanRange, read: Read) -> Pages {
        Pages::new(self.kv.clone(), range, read)
    }

    /// Reads a run's record.
    pub(crate) async fn gather(&self, run_id: &RunId, read: Read) -> Result<Gathered> {
        let record = self.kv.get(&self.keys.run(run_id), read).await?;
        let run = decode_run(run_id, record.as_deref())?;
        Ok(Gathered { run, record })
    }

    /// Reads what the incarnation that a record names was submitted with; `None` when the run was removed since. Written
    /// once, together with the first record, so any read of it is good, and one that finds nothing while the run is
    /// there has found a corrupt one.
    pub(crate) async fn spec(&self, run_id: &RunId, incarnation: Incarnation) -> Result<Option<Spec>> {
        let read = match self.kv.get(&self.keys.spec(run_id, incarnation), Read::Latest).await? {
            Some(bytes) => decode_spec(run_id, &bytes).map_err(Error::from),
            None => Err(corrupt(run_id, "its specification is missing")),
        };
        self.unless_removed(run_id, incarnation, read).await
    }

    /// The end of a run as users see it, its result fetched; `None` when the run was removed since its record was read.
    pub(crate) async fn outcome(&self, run_id: &RunId, ended: &EndedRun) -> Result<Option<RunOutcome>> {
        let Some(spec) = self.spec(run_id, ended.incarnation).await? else { return Ok(None) };
        let result = match &ended.result {
            Some(value) => {
                let read = self.objects.get(value).await.map_err(Error::from);
                match self.unless_removed(run_id, ended.incarnation, read).await? {
                    Some(result) => Some(result.to_vec()),
                    None => return Ok(None),
                }
            }
            None => None,
        };
        Ok(Some(RunOutcome::new(run_id, ended, &spec, result)))
    }

    /// What was `read` of a submission; `None` when it is wrong because the run was removed meanwhile, which is durable.
    pub(crate) async fn unless_removed<T>(
        &self,
        run_id: &RunId,
        of: Incarnation,
        read: Result<T>,
    ) -> Result<Option<T>> {
        match read {
            Err(error) if error.is_permanent() => {
                let is_there = self.gather(run_id, Read::Durable).await?.run.incarnation() == Some(of);
                if is_there { Err(error) } else { Ok(None) }
            }
            read => read.map(Some),
        }
    }

    /// How the run ended, if it has.
    pub(crate) async fn run_end(&self, run_id: &RunId) -> Result<Option<RunOutcome>> {
        match self.gather(run_id, Read::Durable).await?.run {
            Run::Ended(ended) => self.outcome(run_id, &ended).await,
            Run::Absent | Run::Active(_) => Ok(None),
        }
    }

    /// How far the run is, seen at `now`.
    pub(crate) async fn status(&self, run_id: &RunId, now: Timestamp) -> Result<Option<RunStatus>> {
        let run = self.gather(run_id, Read::Durable).await?.run;
        self.status_of(run_id, &run, now).await
    }

    /// How far `run` is, seen at `now`.
    pub(crate) async fn status_of(&self, run_id: &RunId, run: &Run, now: Timestamp) -> Result<Option<RunStatus>> {
        let (Some(incarnation), Some((state, since))) = (run.incarnation(), run.state()) else { return Ok(None) };
        let Some(spec) = self.spec(run_id, incarnation).await? else { return Ok(None) };
        let (step, attempts_used, redrives, phase) = match run {
            Run::Absent => return Ok(None),
            Run::Active(run) => (run.step, run.attempts.used, run.redrive, phase_at(&run.phase, now)),
            Run::Ended(ended) => {
                let (status, at) = (ended.status.into(), ended.ended_at.into());
                (ended.final_step, 0, ended.redrive, RunPhase::Ended { status, at })
            }
        };
        Ok(Some(RunStatus {
            run_id: run_id.to_string(),
            state: state.into(),
            since: since.into(),
            phase,
            step,
            attempts_used,
            cancel_requested: matches!(run, Run::Active(run) if run.cancel.is_some()),
            redrives,
            max_attempts: spec.max_attempts,
            submitted_at: spec.submitted_at.into(),
            headers: spec.headers.into_iter().collect(),
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
        let rows = self.pages(ScanRange::first(prefix, HISTORY_PAGE), Read::Durable);
        let pages = stream::try_unfold((self, run_id, rows), move |(reads, run_id, mut rows)| async move {
            let Some(page) = rows.next().await? else { return Ok::<_, Error>(None) };
            let mut entries = Vec::with_capacity(page.len());
            for (key, row) in &page {
                let read = reads.entry(&run_id, key, row).await;
                entries.extend(reads.unless_removed(&run_id, of, read).await.transpose());
            }
            Ok(Some((stream::iter(entries), (reads, run_id, rows))))
        });
        pages.try_flatten()
    }

    /// The row of the history that tells of a step.
    pub(crate) async fn step_row(&self, run_id: &RunId, of: Incarnation, step: u32) -> Result<Option<StepRow>> {
        let row = self.kv.get(&self.keys.history(run_id, of, step), Read::Durable).await?;
        Ok(row.map(|row| decode_step_row(run_id, &row)).transpose()?)
    }

    /// The objects that the history names in the row which `transition` writes again: a run that was brought back executes
    /// a step another time, perhaps with another signal.
    pub(crate) async fn retold(&self, run_id: &RunId, before: &Run, transition: &Transition) -> Result<Vec<Value>> {
        let Run::Active(before) = before else { return Ok(Vec::new()) };
        if before.redrive == 0 || !transition.effects.contains(&Effect::RecordStep) {
            return Ok(Vec::new());
        }
        let row = match self.step_row(run_id, before.incarnation, before.step).await {
            Err(error) if error.is_permanent() => None,
            row => row?,
        };
        let Some(StepRow { payload, signal, .. }) = row else { return Ok(Vec::new()) };
        let named = named_values(&transition.next);
        let values = payload.into_iter().chain(signal.map(|signal| signal.payload));
        Ok(values.filter(|value| value.object().is_some() && !named.contains(&value)).collect())
    }

    /// Deletes the objects of `values`, which the record of a run has let go, but for those that the history names in
    /// the row of the step `told`.
    pub(crate) async fn let_go(&self, run_id: &RunId, told: Option<(Incarnation, u32)>, values: &[Value]) {
        let row = match told {
            Some((incarnation, step)) => self.step_row(run_id, incarnation, step).await,
            None => Ok(None),
        };
        // What may be named stays, and goes when the run does.
        let Ok(row) = row else { return };
        let signal = row.as_ref().and_then(|row| row.signal.as_ref()).map(|signal| &signal.payload);
        let named = [row.as_ref().and_then(|row| row.payload.as_ref()), signal];
        for value in values.iter().filter(|value| !named.contains(&Some(value))) {
            self.objects.discard(value).await;
        }
    }

    async fn entry(&self, run_id: &RunId, key: &[u8], row: &[u8]) -> Result<HistoryEntry> {
        let step = self.keys.parse_history_step(key).ok_or_else(|| corrupt(run_id, "a row of its history is none"))?;
        let StepRow { attempt, started_at, ended_at, end, payload, signal_key, .. } = decode_step_row(run_id, row)?;
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

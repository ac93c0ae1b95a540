//! `show`: what the index holds of a file, and how the run went that put it there, step by step. It reads the store
//! beside the process that may be writing it.

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::TryStreamExt;
use serde::Serialize;
use workflow_runtime::{HistoryEntry, RunPhase, RunStatus, StepEnd, StoreReader, TerminalStatus};

use crate::catalog::{self, read};
use crate::cli::Options;
use crate::failure::{FAILED, Failure};
use crate::index::{Latest, Record, RecordState, generation_key};
use crate::print::{plain, say};
use crate::state::{State, decode};
use crate::store;
use crate::walk::absolute;

/// The queue name that a runtime has when it is given none.
const QUEUE_NAME: &str = "workflow-steps";

pub(crate) async fn show(options: &Options, file: &Path) -> anyhow::Result<()> {
    let store = store::find(&options.store)?;
    let path = absolute(file)?.to_string_lossy().into_owned();
    let reader = store::open_beside(&store).await?;
    let found = look_up(&reader, &path).await;
    let closed = reader.close().await;
    let found = found?;
    closed?;
    let Some(shown) = found else {
        let line = format!("{} is not in the index; ingest it first", file.display());
        return Err(Failure::new(FAILED, line).into());
    };
    if options.style.json {
        shown.print_json();
    } else {
        shown.print();
    }
    Ok(())
}

/// What there is to show of a path.
#[derive(Serialize)]
struct Shown {
    path: String,
    /// What queries see.
    document: Option<Record>,
    run_id: String,
    run: String,
    #[serde(skip)]
    submitted_at: SystemTime,
    steps: Vec<StepLine>,
}

/// A committed step.
#[derive(Serialize)]
struct StepLine {
    step: u32,
    attempt: u32,
    stage: &'static str,
    end: &'static str,
    started_ms: u64,
    ended_ms: u64,
}

async fn look_up(reader: &StoreReader, path: &str) -> anyhow::Result<Option<Shown>> {
    let kv = reader.kv();
    let Some(row) = kv.get(generation_key(path).as_bytes()).await? else { return Ok(None) };
    let Latest { document, forgotten, .. } = read(&row)?;
    if forgotten {
        return Ok(None);
    }
    let run_id = document.run_id();
    let runs = reader.runs(QUEUE_NAME)?;
    let Some(status) = runs.status(&run_id).await? else { return Ok(None) };
    let reason = runs.run_end(&run_id).await?.and_then(|end| end.error);
    let mut steps = Vec::new();
    let mut history = pin!(runs.history(&run_id));
    while let Some(entry) = history.try_next().await? {
        steps.push(StepLine::of(&entry));
    }
    // Read last, so that a run that is shown as ended has its document shown.
    let document = catalog::record(&kv, path).await?;
    let run = phase(&status, reason);
    Ok(Some(Shown { path: path.to_owned(), document, run_id, run, submitted_at: status.submitted_at, steps }))
}

fn phase(status: &RunStatus, reason: Option<String>) -> String {
    match &status.phase {
        RunPhase::Ended { status: TerminalStatus::Succeeded, .. } => "succeeded".to_owned(),
        RunPhase::Ended { .. } => format!("failed: {}", reason.unwrap_or_default()),
        RunPhase::BackingOff { .. } => {
            format!("waits to try step {} again, {} attempts used", status.step, status.attempts_used)
        }
        _ => format!("at step {}", status.step),
    }
}

impl StepLine {
    fn of(entry: &HistoryEntry) -> Self {
        let state = entry.payload.as_deref().and_then(|payload| decode::<State>(payload).ok());
        Self {
            step: entry.step,
            attempt: entry.attempt,
            stage: state.map_or("", |state| state.stage.name()),
            end: match entry.end {
                StepEnd::Continued | StepEnd::Delayed => "went on",
                StepEnd::Succeeded => "succeeded",
                _ => "failed",
            },
            started_ms: since_1970(entry.started_at).as_millis() as u64,
            ended_ms: since_1970(entry.ended_at).as_millis() as u64,
        }
    }
}

impl Shown {
    fn print(&self) {
        say(&plain(&self.path));
        match &self.document {
            None => say("  document   not visible"),
            Some(Record { generation, state, .. }) => {
                say(&format!("  document   generation {generation}, {}", description(state)));
                if let RecordState::Indexed { content, links_listed, .. } = state {
                    say(&format!("  sha-256    {}", content.hash));
                    for link in links_listed {
                        say(&format!("  link       {}", plain(link)));
                    }
                }
            }
        }
        say(&format!("  run        {}: {}", self.run_id, plain(&self.run)));
        say("  timeline   step  attempt  stage     came to    started after      took");
        let submitted_ms = since_1970(self.submitted_at).as_millis() as u64;
        for line in &self.steps {
            let StepLine { step, attempt, stage, end, started_ms, ended_ms } = line;
            let (after, took) = (started_ms.saturating_sub(submitted_ms), ended_ms.saturating_sub(*started_ms));
            say(&format!("             {step:>4}  {attempt:>7}  {stage:<8}  {end:<9}  {after:>10} ms  {took:>5} ms"));
        }
    }

    fn print_json(&self) {
        say(&serde_json::to_string(self).unwrap_or_default());
    }
}

fn description(state: &RecordState) -> String {
    match state {
        RecordState::Indexed { content, words, links, .. } => {
            let (size, parts) = (content.size, content.parts);
            let encoding = serde_json::to_string(&content.encoding).unwrap_or_default();
            format!("{size} bytes of {}, {parts} parts, {words} words, {links} links", encoding.trim_matches('"'))
        }
        RecordState::Skipped { reason, size, .. } => format!("{size} bytes, skipped: {reason}"),
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

//! The steps of a run: read, enter words part by part, publish, clean up.
//!
//! A step may be delivered again after a crash, so each one is written to do the same again: what it keeps in a memo
//! has the same value every time, and what it writes to the index is staged and commits with the step's outcome or
//! not at all. Files are read on threads that may block, as many at a time as there are processors: that bounds the
//! memory however many runs are at work.

mod clean_up;

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use workflow_runtime::{MemoError, Step, StepError, StepOutcome, StepRunner};

use self::clean_up::clean_up;
use crate::content::{self, Content, Part, Survey};
use crate::document::Document;
use crate::encoding::Encoding;
use crate::file::is_not_regular;
use crate::findings::Findings;
use crate::index::{self, MAX_LINKS, Record, RecordState};
use crate::report::Report;
use crate::state::{Ending, Stage, State, Work, decode, encode};

/// Parts that one entry of the memo lists.
const LISTED_PARTS: usize = 128;
/// A smaller part is analysed again in less time than its findings take to be stored.
const MEMOIZED_BYTES: usize = 4 * 1024;
/// A longer link is counted and not listed: what a run carries from step to step stays small.
const MAX_LISTED_BYTES: usize = 128;
const GONE: &str = "the file went away while it was read";
const CHANGED: &str = "the file changed while it was read";

/// Runs the steps of all documents.
pub(crate) struct Indexer {
    report: Arc<Report>,
    readers: Arc<Semaphore>,
}

impl Indexer {
    pub(crate) fn new(report: Arc<Report>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { report, readers: Arc::new(Semaphore::new(processors)) }
    }
}

impl StepRunner for Indexer {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let State { document, stage } = decode(&step.payload)?;
        let (name, path) = (stage.name(), document.path.clone());
        let outcome = match stage {
            Stage::Read => self.read(step, document).await,
            Stage::Enter { part, work } => self.enter(step, document, part, work).await,
            Stage::Publish { work } => publish(step, document, work),
            Stage::Withdraw => withdraw(step, document),
            Stage::CleanUp { ending } => clean_up(step, document, ending).await,
        }?;
        self.report.step_done(step.step_number, name, &path);
        Ok(outcome)
    }
}

impl Indexer {
    /// Finds out what the file holds, and keeps a hash of each part: a later step that reads a part knows whether it
    /// still is the same.
    async fn read(&self, step: &Step, document: Document) -> Result<StepOutcome, StepError> {
        let path = PathBuf::from(&document.path);
        match self.on_disk(move || content::survey(&path)).await? {
            Ok(Survey::Text(content, parts)) => {
                // The only part of a small file is the file: there is nothing to list.
                if parts.len() > 1 {
                    for (number, listed) in parts.chunks(LISTED_PARTS).enumerate() {
                        step.run_memo.put(&parts_key(number), &encode(&listed)?).await?;
                    }
                }
                let work = Work { content, words: 0, links: 0, links_listed: Vec::new() };
                go_on(document, Stage::of_part(0, work))
            }
            Ok(Survey::Binary { size, modified_ns }) => {
                let reason = "no text: it holds a zero byte".to_owned();
                let state = RecordState::Skipped { reason: reason.clone(), size, modified_ns };
                record(step, &document, state)?;
                go_on(document, Stage::CleanUp { ending: Ending::Skipped { reason } })
            }
            Ok(Survey::Changed) => fail(document, CHANGED),
            Err(error) => fail(document, reason(&error)?),
        }
    }

    /// Enters the words of a part. The findings of a large one are kept in the step's memo: a step that is killed
    /// before it is committed finds them there.
    async fn enter(
        &self,
        step: &Step,
        document: Document,
        part: usize,
        mut work: Work,
    ) -> Result<StepOutcome, StepError> {
        let listed = listed_part(step, &work.content, part).await?;
        let is_costly = listed.length >= MEMOIZED_BYTES;
        let mut computed = false;
        let analysis = async {
            computed = true;
            self.analyse(&document, work.content.encoding, listed).await
        };
        let findings: Result<Findings, _> =
            if is_costly { step.memo.memoized("findings", analysis).await } else { analysis.await };
        let findings = match findings {
            Ok(findings) => findings,
            Err(NotRead::Lost(reason)) => return fail(document, reason),
            Err(NotRead::Failed(error)) => return Err(error),
        };
        self.report.part_done(&document.path, computed);

        let entries = index::entries(&findings.words);
        let buckets: Vec<_> = entries.keys().copied().collect();
        for (bucket, entry) in entries {
            step.effects.put(index::entry_key(bucket, &document, part), entry)?;
        }
        step.effects.put(index::entered_key(&document, part), encode(&buckets)?)?;
        work.words += findings.occurrences();
        work.links += findings.links.len() as u64;
        let room = MAX_LINKS.saturating_sub(work.links_listed.len());
        work.links_listed.extend(findings.links.into_iter().filter(|link| link.len() <= MAX_LISTED_BYTES).take(room));
        go_on(document, Stage::of_part(part + 1, work))
    }

    async fn analyse(&self, document: &Document, encoding: Encoding, part: Part) -> Result<Findings, NotRead> {
        let (path, kind) = (PathBuf::from(&document.path), document.kind());
        let found = self.on_disk(move || {
            let bytes = content::read_part(&path, &part)?;
            Ok(bytes.map(|bytes| Findings::of(kind, &encoding.decode(&bytes))))
        });
        match found.await.map_err(NotRead::Failed)? {
            Ok(Some(findings)) => Ok(findings),
            Ok(None) => Err(NotRead::Lost(CHANGED.to_owned())),
            Err(error) => Err(reason(&error).map_or_else(NotRead::Failed, NotRead::Lost)),
        }
    }

    /// Runs `work` on a thread that may block, when it is its turn.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<io::Result<T>, StepError> {
        let turn = Arc::clone(&self.readers).acquire_owned().await.map_err(interrupted)?;
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        })
        .await
        .map_err(interrupted)
    }
}

/// Why there are no findings.
enum NotRead {
    /// The run is to end for this reason.
    Lost(String),
    Failed(StepError),
}

impl From<MemoError> for NotRead {
    fn from(error: MemoError) -> Self {
        Self::Failed(error.into())
    }
}

/// The part that the first step found.
async fn listed_part(step: &Step, content: &Content, number: usize) -> Result<Part, StepError> {
    if content.parts == 1 {
        let length = usize::try_from(content.size).expect("a part fits into memory");
        return Ok(Part { offset: 0, length, hash: content.hash.clone() });
    }
    let missing = || StepError::permanent(format!("run {} has no part {number}", step.run_id));
    let listed = step.run_memo.get(&parts_key(number / LISTED_PARTS)).await?.ok_or_else(missing)?;
    decode::<Vec<Part>>(&listed)?.into_iter().nth(number % LISTED_PARTS).ok_or_else(missing)
}

/// Stages the record. With the commit of this step the document is visible, and its former generation is not.
fn publish(step: &Step, document: Document, work: Work) -> Result<StepOutcome, StepError> {
    let Work { content, words, links, links_listed } = work;
    let parts = content.parts;
    record(step, &document, RecordState::Indexed { content, words, links, links_listed })?;
    go_on(document, Stage::CleanUp { ending: Ending::Indexed { parts, words, links } })
}

/// Stages the deletion of the record. With the commit of this step the document is not found any more.
fn withdraw(step: &Step, document: Document) -> Result<StepOutcome, StepError> {
    step.effects.delete(index::document_key(&document.path))?;
    step.effects.delete(index::visible_key(&document.path))?;
    go_on(document, Stage::CleanUp { ending: Ending::Forgotten })
}

fn record(step: &Step, document: &Document, state: RecordState) -> Result<(), StepError> {
    let visible = index::visible_key(&document.path);
    match state {
        RecordState::Indexed { .. } => step.effects.put(visible, encode(document)?)?,
        RecordState::Skipped { .. } => step.effects.delete(visible)?,
    }
    let Document { path, generation } = document.clone();
    let key = index::document_key(&path);
    step.effects.put(key, encode(&Record { path, generation, state })?)?;
    Ok(())
}

fn go_on(document: Document, stage: Stage) -> Result<StepOutcome, StepError> {
    Ok(StepOutcome::continue_now(encode(&State { document, stage })?))
}

/// Ends the run with `reason`, but first takes out what it has entered.
fn fail(document: Document, reason: impl Into<String>) -> Result<StepOutcome, StepError> {
    go_on(document, Stage::CleanUp { ending: Ending::Failed { reason: reason.into() } })
}

/// The reason to end a run for `error`; a failure to retry where the next attempt may be luckier.
fn reason(error: &io::Error) -> Result<String, StepError> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(GONE.to_owned()),
        ErrorKind::PermissionDenied => Ok("you may not read the file".to_owned()),
        _ if is_not_regular(error) => Ok(error.to_string()),
        _ => Err(StepError::transient(format!("cannot read the file: {error}"))),
    }
}

fn interrupted(error: impl std::fmt::Display) -> StepError {
    StepError::transient(format!("interrupted: {error}"))
}

fn parts_key(number: usize) -> String {
    format!("parts-{number}")
}

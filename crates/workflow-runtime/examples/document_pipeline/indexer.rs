//! The steps of a run: read, split, analyse batch by batch, index.
//!
//! A step may be delivered again after a crash, so each one is written to do the same again: what it
//! keeps in a memo has the same value every time, and what it writes to the index is staged and
//! commits with the step's outcome or not at all.

use std::io::ErrorKind;
use std::sync::Arc;

use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};

use crate::document::{Document, content_hash};
use crate::findings::Findings;
use crate::index::{self, Entry, MAX_WORDS, Record};
use crate::progress::Progress;
use crate::split;
use crate::state::{Stage, State, Summary, decode, encode};

/// Sections that one step analyses.
const BATCH_SECTIONS: usize = 8;

/// Key of the document's text in the memo of the run.
const TEXT: &str = "text";

/// Runs the steps of all documents.
pub(crate) struct Indexer {
    progress: Arc<Progress>,
}

impl Indexer {
    pub(crate) fn new(progress: Arc<Progress>) -> Self {
        Self { progress }
    }
}

impl StepRunner for Indexer {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let state: State = decode(&step.payload)?;
        let path = state.document.path.clone();
        let outcome = match state.stage {
            Stage::Read => read(step, state).await,
            Stage::Split => split(step, state).await,
            Stage::Analyse { batch, batches } => {
                self.analyse_batch(step, &state.document, batch).await?;
                state.go_on(Stage::of_batch(batch + 1, batches))
            }
            Stage::Index { batches } => index(step, &state.document, batches).await,
        }?;
        self.progress.step_done(step.step_number, &path);
        Ok(outcome)
    }
}

impl Indexer {
    /// Analyses the sections of a batch, each under a memo of its own: a step that is killed half-way
    /// starts again with the first section it had not finished.
    async fn analyse_batch(&self, step: &Step, document: &Document, batch: usize) -> Result<(), StepError> {
        let sections: Vec<String> = decode(&stored(step, &sections_key(batch)).await?)?;
        let mut findings = Findings::default();
        let mut computed = 0;
        for (number, section) in sections.iter().enumerate() {
            let of_section = step
                .memo
                .memoized(&format!("section-{number}"), async {
                    computed += 1;
                    Ok::<_, StepError>(Findings::of_section(document.kind(), section))
                })
                .await?;
            findings.merge(of_section);
        }
        self.progress.sections_done(&document.path, computed, findings.sections - computed);
        step.run_memo.put(&findings_key(batch), &encode(&findings)?).await?;
        Ok(())
    }
}

/// Keeps the text of the file in the memo of the run. From then on the run does not need the file,
/// which may change or go away at any time.
async fn read(step: &Step, state: State) -> Result<StepOutcome, StepError> {
    if step.run_memo.get(TEXT).await?.is_none() {
        let Document { path, hash } = &state.document;
        let content = match tokio::fs::read(path).await {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let reason = "the file went away before it was read".to_owned();
                return Ok(StepOutcome::Fail { reason });
            }
            Err(error) => return Err(StepError::transient(format!("cannot read the file: {error}"))),
        };
        if content_hash(&content) != *hash {
            let reason = "the file changed before it was read".to_owned();
            return Ok(StepOutcome::Fail { reason });
        }
        let text = String::from_utf8_lossy(&content);
        step.run_memo.put(TEXT, text.as_bytes()).await?;
    }
    state.go_on(Stage::Split)
}

/// Keeps the sections of each batch apart, so that the step of a batch reads no other text.
async fn split(step: &Step, state: State) -> Result<StepOutcome, StepError> {
    let text = String::from_utf8(stored(step, TEXT).await?)
        .map_err(|error| StepError::permanent(format!("decode: {error}")))?;
    let sections: Vec<&str> =
        split::sections(state.document.kind(), &text).into_iter().map(|section| &text[section]).collect();
    let batches = sections.chunks(BATCH_SECTIONS);
    let count = batches.len();
    for (batch, sections) in batches.enumerate() {
        step.run_memo.put(&sections_key(batch), &encode(&sections)?).await?;
    }
    state.go_on(Stage::of_batch(0, count))
}

/// Stages the entries and the record of the document: they commit with the end of the run.
async fn index(step: &Step, document: &Document, batches: usize) -> Result<StepOutcome, StepError> {
    let mut findings = Findings::default();
    for batch in 0..batches {
        findings.merge(decode(&stored(step, &findings_key(batch)).await?)?);
    }
    let id = document.id();
    for (word, count) in findings.top_words(MAX_WORDS) {
        step.effects.put(index::word_key(word, &id), encode(&Entry::new(count))?)?;
    }
    let record = Record::new(document, &findings);
    step.effects.put(index::document_key(&id), encode(&record)?)?;
    let summary = Summary { path: record.path, sections: record.sections, words: record.words, links: record.links };
    Ok(StepOutcome::Succeed { result: encode(&summary)? })
}

/// What an earlier step of the run has put into its memo.
async fn stored(step: &Step, key: &str) -> Result<Vec<u8>, StepError> {
    let value = step.run_memo.get(key).await?;
    value.ok_or_else(|| StepError::permanent(format!("run {} has no `{key}`", step.run_id)))
}

fn sections_key(batch: usize) -> String {
    format!("sections-{batch}")
}

fn findings_key(batch: usize) -> String {
    format!("batch-{batch}")
}

//! The last steps of every run: entries that no record names are deleted, a few hundred at a time.

use std::pin::pin;

use futures::TryStreamExt;
use workflow_runtime::{KvReadHandle, Step, StepError, StepOutcome};

use super::go_on;
use crate::document::Document;
use crate::index::{self, Latest, Record};
use crate::state::{Ending, Stage, decode, encode};

/// Rows that one step deletes at most. A step may have 1,000 effects, but commits that are small delay no others.
const MAX_DELETED: usize = 300;

/// Deletes the entries of some parts of any generation that is not the visible one, and ends the run when none is left.
///
/// The record is read anew in every step, and the parts are found by their rows. So it does not matter what left
/// the entries: an earlier content of the file, a run that failed, this run itself.
pub(super) async fn clean_up(step: &Step, document: Document, ending: Ending) -> Result<StepOutcome, StepError> {
    let visible = visible_generation(&step.kv, &document.path).await?;
    let prefix = index::entered_prefix(&document.path);
    let mut parts = pin!(step.kv.scan(prefix.as_bytes()));
    let mut deleted = 0;
    while let Some((key, buckets)) = parts.try_next().await? {
        let (generation, part) = std::str::from_utf8(&key[prefix.len()..])
            .ok()
            .and_then(index::read_entered_key)
            .ok_or_else(|| StepError::permanent(format!("cannot read the key {}", key.escape_ascii())))?;
        if Some(generation) == visible {
            continue;
        }
        let buckets: Vec<u32> = decode(&buckets)?;
        if deleted + buckets.len() > MAX_DELETED {
            return go_on(document, Stage::CleanUp { ending });
        }
        deleted += buckets.len() + 1;
        let entered = Document { generation, ..document.clone() };
        for bucket in buckets {
            step.effects.delete(index::entry_key(bucket, &entered, part))?;
        }
        step.effects.delete(key)?;
    }
    // All of this commits with the end of the run.
    let key = index::generation_key(&document.path);
    let forgotten = matches!(ending, Ending::Forgotten);
    step.effects.put(key, encode(&Latest { document, ended: true, forgotten })?)?;
    ending.outcome()
}

async fn visible_generation(kv: &KvReadHandle, path: &str) -> Result<Option<u64>, StepError> {
    let record = kv.get(index::document_key(path).as_bytes()).await?;
    Ok(record.map(|record| decode::<Record>(&record)).transpose()?.map(|record| record.generation))
}

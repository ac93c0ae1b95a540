//! What a run carries from step to step, and what it answers at its end, as JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use workflow_runtime::{StepError, StepOutcome};

use crate::document::Document;

/// The payload of every step; the input of a run is its first one.
///
/// It stays small: texts and findings are in the run's memo, where only the steps that need them
/// read them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) document: Document,
    pub(crate) stage: Stage,
}

/// What the step in hand does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Read the file and keep its text.
    Read,
    /// Cut the text into batches of sections.
    Split,
    /// Find words and links in one batch.
    Analyse { batch: usize, batches: usize },
    /// Write the document into the index.
    Index { batches: usize },
}

impl State {
    /// The state a run begins with.
    pub(crate) fn first(document: Document) -> Self {
        Self { document, stage: Stage::Read }
    }

    /// Goes on with `stage` in the next step, at once.
    pub(crate) fn go_on(self, stage: Stage) -> Result<StepOutcome, StepError> {
        let next = Self { stage, ..self };
        Ok(StepOutcome::continue_now(encode(&next)?))
    }
}

impl Stage {
    /// The stage in which batch number `batch` is next.
    pub(crate) fn of_batch(batch: usize, batches: usize) -> Self {
        if batch < batches { Self::Analyse { batch, batches } } else { Self::Index { batches } }
    }
}

/// The result of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) path: String,
    pub(crate) sections: u64,
    /// Different words, stop words left out.
    pub(crate) words: usize,
    /// Different link targets.
    pub(crate) links: usize,
}

/// Writes a value of this program as JSON. That it cannot be written is not cured by a retry.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StepError> {
    serde_json::to_vec(value).map_err(|error| StepError::permanent(format!("encode: {error}")))
}

/// Reads a value that `encode` wrote, maybe in an earlier process.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StepError> {
    serde_json::from_slice(bytes).map_err(|error| StepError::permanent(format!("decode: {error}")))
}

#[cfg(test)]
mod tests {
    use super::{Stage, State, decode, encode};
    use crate::document::Document;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let first = State::first(Document::new("/a", b"text"));
        let read: State = decode(&encode(&first).unwrap()).unwrap();
        assert_eq!(read.stage, Stage::Read);
        assert_eq!(read.document.id(), first.document.id());
    }

    #[test]
    fn the_index_follows_the_last_batch() {
        assert_eq!(Stage::of_batch(1, 2), Stage::Analyse { batch: 1, batches: 2 });
        assert_eq!(Stage::of_batch(2, 2), Stage::Index { batches: 2 });
        assert_eq!(Stage::of_batch(0, 0), Stage::Index { batches: 0 });
    }

    #[test]
    fn a_payload_of_something_else_is_refused() {
        assert!(decode::<State>(b"{\"path\":\"/a\"}").is_err());
    }
}

//! What a run carries from step to step, and what it answers at its end, as JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use workflow_runtime::{StepError, StepOutcome};

use crate::content::Content;
use crate::document::Document;

/// The payload of every step; the input of a run is its first one.
///
/// It stays small, however large the file is: what was found in it is in the run's memo, where only the steps that
/// need it read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) document: Document,
    pub(crate) stage: Stage,
}

/// What the step in hand does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Read the file once: hash it and cut it into parts.
    Read,
    /// Find the words of a part, and enter them into the index.
    Enter { part: usize, work: Work },
    /// Write the record: the document becomes visible, with all its entries.
    Publish { work: Work },
    /// Delete the record: the document is not found from now on.
    Withdraw,
    /// Delete entries that no record names, then end.
    CleanUp { ending: Ending },
}

/// What the steps that index a text know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) content: Content,
    /// Words entered, as often as they occur.
    pub(crate) words: u64,
    /// Link targets found.
    pub(crate) links: u64,
    /// The first of them.
    pub(crate) links_listed: Vec<String>,
}

/// How a run ends, and the result of one that succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum Ending {
    Indexed { parts: usize, words: u64, links: u64 },
    Skipped { reason: String },
    Forgotten,
    Failed { reason: String },
}

impl State {
    /// The state of a run that indexes a document.
    pub(crate) fn index(document: Document) -> Self {
        Self { document, stage: Stage::Read }
    }

    /// The state of a run that takes a document out of the index.
    pub(crate) fn forget(document: Document) -> Self {
        Self { document, stage: Stage::Withdraw }
    }
}

impl Stage {
    /// What to do once all parts before `part` are entered.
    pub(crate) fn of_part(part: usize, work: Work) -> Self {
        if part < work.content.parts { Self::Enter { part, work } } else { Self::Publish { work } }
    }

    /// The word for it in lines that people read.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Enter { .. } => "enter",
            Self::Publish { .. } => "publish",
            Self::Withdraw => "withdraw",
            Self::CleanUp { .. } => "clean-up",
        }
    }
}

impl Ending {
    pub(crate) fn outcome(self) -> Result<StepOutcome, StepError> {
        match self {
            Self::Failed { reason } => Ok(StepOutcome::Fail { reason }),
            ending => Ok(StepOutcome::Succeed { result: encode(&ending)? }),
        }
    }
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
    use super::{Stage, State, Work, decode, encode};
    use crate::content::Content;
    use crate::document::Document;
    use crate::encoding::Encoding;

    fn work(parts: usize) -> Work {
        let content = Content { size: 9, modified_ns: Some(1), hash: "h".into(), encoding: Encoding::Utf16Le, parts };
        Work { content, words: 1, links: 2, links_listed: vec!["x".into()] }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let document = Document { path: "/a".into(), generation: 3 };
        let state = State { document, stage: Stage::Enter { part: 1, work: work(3) } };
        assert_eq!(decode::<State>(&encode(&state).unwrap()).unwrap(), state);
    }

    #[test]
    fn a_document_is_published_after_its_last_part() {
        assert_eq!(Stage::of_part(1, work(2)), Stage::Enter { part: 1, work: work(2) });
        assert_eq!(Stage::of_part(2, work(2)), Stage::Publish { work: work(2) });
        assert_eq!(Stage::of_part(0, work(0)), Stage::Publish { work: work(0) });
    }

    #[test]
    fn a_payload_of_something_else_is_refused() {
        assert!(decode::<State>(b"{\"path\":\"/a\"}").is_err());
    }
}

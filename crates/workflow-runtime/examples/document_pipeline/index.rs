//! Keys and values of the index in the application's KV.
//!
//! | key | value |
//! | --- | --- |
//! | `index/{word}` NUL `{document id}` | [`Entry`]: how often the word stands in the document |
//! | `document/{document id}` | [`Record`]: the document as a whole |
//! | `latest/{hash of the path}` | id of the document that was submitted last for this path |
//!
//! A run writes its entries and its record in the commit that ends it. The `latest` row is written by
//! the commit that submits the run: the entries of a file's earlier content stay, and queries pass
//! over them. (A duplicate writes nothing, so a file that goes back to an earlier content is found
//! by its words of before, until the retention of runs has taken the run of that content.)

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::{Document, content_hash};
use crate::findings::Findings;

/// Words of one document in the index, so that a document fits into the 1,000 effects of a step.
pub(crate) const MAX_WORDS: usize = 900;
/// Links listed in a record, so that it fits into a value of the KV.
const MAX_LINKS: usize = 64;

pub(crate) const DOCUMENTS: &[u8] = b"document/";
pub(crate) const LATEST: &[u8] = b"latest/";

/// A word in a document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// How often the word stands there.
    pub(crate) count: u64,
    /// What the word adds to the score of the document, before its rarity is taken into account.
    pub(crate) weight: f64,
}

impl Entry {
    pub(crate) fn new(count: u64) -> Self {
        Self {
            count,
            // The tenth occurrence says less than the first.
            weight: 1.0 + (count as f64).ln(),
        }
    }
}

/// A document in the index.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) path: String,
    pub(crate) hash: String,
    pub(crate) sections: u64,
    /// Different words of the document.
    pub(crate) words: usize,
    /// How many of them, the most frequent, have an entry in the index.
    pub(crate) words_indexed: usize,
    /// Different link targets of the document.
    pub(crate) links: usize,
    /// The first of them by the alphabet.
    pub(crate) links_listed: Vec<String>,
}

impl Record {
    pub(crate) fn new(document: &Document, findings: &Findings) -> Self {
        Self {
            path: document.path.clone(),
            hash: document.hash.clone(),
            sections: findings.sections,
            words: findings.words.len(),
            words_indexed: findings.words.len().min(MAX_WORDS),
            links: findings.links.len(),
            links_listed: findings.links.iter().take(MAX_LINKS).cloned().collect(),
        }
    }
}

/// The start of all keys of `word`. A word holds letters and digits only, so the NUL ends it.
pub(crate) fn word_prefix(word: &str) -> Vec<u8> {
    format!("index/{word}\0").into_bytes()
}

pub(crate) fn word_key(word: &str, document_id: &str) -> Vec<u8> {
    format!("index/{word}\0{document_id}").into_bytes()
}

pub(crate) fn document_key(document_id: &str) -> Vec<u8> {
    [DOCUMENTS, document_id.as_bytes()].concat()
}

/// The key of a path is its hash: a path may be longer than a key.
pub(crate) fn latest_key(path: &str) -> Vec<u8> {
    [LATEST, content_hash(path.as_bytes()).as_bytes()].concat()
}

/// Paths by document id, of the documents that are still the latest of their path.
pub(crate) fn latest_documents(
    documents: Vec<(String, Record)>,
    latest: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> BTreeMap<String, String> {
    documents
        .into_iter()
        .filter(|(id, record)| latest.get(&latest_key(&record.path)).is_some_and(|l| l == id.as_bytes()))
        .map(|(id, record)| (id, record.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Entry, MAX_WORDS, Record, latest_documents, latest_key, word_key, word_prefix};
    use crate::document::{Document, Kind};
    use crate::findings::Findings;

    #[test]
    fn a_word_is_no_prefix_of_a_longer_one() {
        assert!(word_key("run", "doc-1").starts_with(&word_prefix("run")));
        assert!(!word_key("runner", "doc-1").starts_with(&word_prefix("run")));
    }

    #[test]
    fn the_weight_grows_slower_than_the_count() {
        let weight = |count| Entry::new(count).weight;
        assert_eq!(weight(1), 1.0);
        assert!(weight(2) > weight(1) && weight(20) < 20.0 * weight(1));
    }

    #[test]
    fn a_record_says_how_many_words_are_indexed() {
        let text: String = (0..=MAX_WORDS).map(|n| format!("word{n} ")).collect();
        let findings = Findings::of_section(Kind::Plain, &text);
        let record = Record::new(&Document::new("/a", b""), &findings);
        assert_eq!((record.words, record.words_indexed), (MAX_WORDS + 1, MAX_WORDS));
    }

    #[test]
    fn only_the_latest_content_of_a_path_is_found() {
        let record = |path| Record::new(&Document::new(path, b""), &Findings::default());
        let documents = vec![
            ("old".to_owned(), record("/a")),
            ("new".to_owned(), record("/a")),
            ("other".to_owned(), record("/b")),
        ];
        let latest = BTreeMap::from([(latest_key("/a"), b"new".to_vec()), (latest_key("/b"), b"other".to_vec())]);
        let found: Vec<_> = latest_documents(documents, &latest).into_keys().collect();
        assert_eq!(found, ["new", "other"]);
    }
}

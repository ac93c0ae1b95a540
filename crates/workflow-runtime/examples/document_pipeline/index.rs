//! Keys and values of the index in the application's KV.
//!
//! | key | value |
//! | --- | --- |
//! | `document/{path id}` | [`Record`]: the document as a whole, and its generation |
//! | `visible/{path id}` | [`Document`]: of a record that queries find, what they need of it |
//! | `index/{bucket}/{path id}/{generation}/{part}` | the words of that bucket in that part, and how often they occur |
//! | `entered/{path id}/{generation}/{part}` | the buckets in which that part has entries, to find them again |
//! | `generation/{path id}` | [`Latest`]: the generation of the path's latest run, and whether it ended |
//!
//! Words are spread over a few buckets: a row for each word would be some hundred tiny rows for every file, which
//! costs more than it saves a query.
//!
//! Entries are written over many steps. None of them counts before the record names their generation, and all of them
//! count from the commit that does; then further steps delete the entries of every other generation. So a reader that
//! finds the same generation before and after it read the entries has seen all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::document::{Document, path_id};

/// Over how many buckets the words are spread. A part is entered by one step, which writes a row per bucket.
const BUCKETS: u32 = 16;
/// Links listed in a record.
pub(crate) const MAX_LINKS: usize = 16;

pub(crate) const DOCUMENTS: &str = "document/";
pub(crate) const GENERATIONS: &str = "generation/";
pub(crate) const VISIBLE: &str = "visible/";

/// A document in the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) path: String,
    pub(crate) generation: u64,
    pub(crate) state: RecordState,
}

/// Whether a document can be found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum RecordState {
    Indexed {
        content: Content,
        /// Words of the document, as often as they occur.
        words: u64,
        /// Different link targets of each part.
        links: u64,
        /// The first of them, part by part and by the alphabet.
        links_listed: Vec<String>,
    },
    /// It is no text. The record saves reading it again.
    Skipped { reason: String, size: u64, modified_ns: Option<u64> },
}

/// The latest run of a path. The submission writes it, and again the commit that ends the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latest {
    pub(crate) document: Document,
    /// Not set by a run that ended before its last step, for want of further attempts.
    pub(crate) ended: bool,
    /// Whether it took the path out of the index. Only the row is left then: the next generation counts on from it.
    #[serde(default)]
    pub(crate) forgotten: bool,
}

/// The entries of a part, by bucket: every word, its count behind it if it occurs more than once.
pub(crate) fn entries(words: &BTreeMap<String, u64>) -> BTreeMap<u32, String> {
    let mut entries: BTreeMap<u32, String> = BTreeMap::new();
    for (word, &count) in words {
        let entry = entries.entry(bucket(word)).or_default();
        if !entry.is_empty() {
            entry.push(' ');
        }
        entry.push_str(word);
        if count > 1 {
            entry.push_str(&format!(":{count}"));
        }
    }
    entries
}

/// How often `word` occurs, as an entry has it.
pub(crate) fn count_in(entry: &str, word: &str) -> Option<u64> {
    entry.split(' ').find_map(|item| match item.strip_prefix(word)? {
        "" => Some(1),
        rest => rest.strip_prefix(':')?.parse().ok(),
    })
}

/// The bucket of a word, by its hash (FNV-1a). It is part of what is stored, so it never changes.
pub(crate) fn bucket(word: &str) -> u32 {
    let hash = word.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // The upper bits are mixed better.
    (hash >> 16) % BUCKETS
}

/// The start of all keys of a bucket.
pub(crate) fn bucket_prefix(bucket: u32) -> String {
    format!("index/{bucket:02}/")
}

pub(crate) fn entry_key(bucket: u32, document: &Document, part: usize) -> String {
    let Document { path, generation } = document;
    format!("{}{}/{generation:08}/{part:06}", bucket_prefix(bucket), path_id(path))
}

/// The path id and the generation in what follows the prefix of an entry's key.
pub(crate) fn read_entry_key(rest: &str) -> Option<(&str, u64)> {
    let (id, rest) = rest.split_once('/')?;
    let (generation, _part) = rest.split_once('/')?;
    Some((id, generation.parse().ok()?))
}

pub(crate) fn document_key(path: &str) -> String {
    format!("{DOCUMENTS}{}", path_id(path))
}

pub(crate) fn visible_key(path: &str) -> String {
    format!("{VISIBLE}{}", path_id(path))
}

pub(crate) fn generation_key(path: &str) -> String {
    format!("{GENERATIONS}{}", path_id(path))
}

/// The start of the keys of all parts of a path that were entered.
pub(crate) fn entered_prefix(path: &str) -> String {
    format!("entered/{}/", path_id(path))
}

pub(crate) fn entered_key(document: &Document, part: usize) -> String {
    format!("{}{:08}/{part:06}", entered_prefix(&document.path), document.generation)
}

/// The generation and the part in what follows the prefix of such a key.
pub(crate) fn read_entered_key(rest: &str) -> Option<(u64, usize)> {
    let (generation, part) = rest.split_once('/')?;
    Some((generation.parse().ok()?, part.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        bucket, bucket_prefix, count_in, entered_key, entered_prefix, entries, entry_key, read_entered_key,
        read_entry_key,
    };
    use crate::document::{Document, path_id};

    fn document() -> Document {
        Document { path: "/a".to_owned(), generation: 12 }
    }

    #[test]
    fn words_keep_their_buckets_and_spread_over_all_of_them() {
        assert_eq!(["run", "step", "größe"].map(bucket), [13, 4, 8]);
        let words: BTreeMap<_, _> = (0..2_000).map(|n| (format!("word{n}"), n + 1)).collect();
        let entries = entries(&words);
        assert_eq!(entries.len(), 16);
        assert!(entries.values().all(|entry| entry.split(' ').count() < 200));
        for (word, count) in &words {
            assert_eq!(count_in(&entries[&bucket(word)], word), Some(*count), "{word}");
        }
        assert_eq!(count_in(&entries[&bucket("word")], "word"), None);
    }

    #[test]
    fn keys_are_read_as_they_were_written() {
        let key = entry_key(7, &document(), 3);
        let rest = key.strip_prefix(&bucket_prefix(7)).unwrap();
        assert_eq!(read_entry_key(rest), Some((path_id("/a").as_str(), 12)));
        let key = entered_key(&document(), 7);
        assert_eq!(read_entered_key(key.strip_prefix(&entered_prefix("/a")).unwrap()), Some((12, 7)));
        assert_eq!(read_entry_key("doc-1"), None);
        assert_eq!(read_entered_key("x/y"), None);
    }
}

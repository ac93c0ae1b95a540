//! `query`: rank the documents that hold some words. It reads the store beside the process that may be writing it.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use serde::Serialize;
use workflow_runtime::KvReadHandle;

use crate::catalog::read;
use crate::cli::Options;
use crate::document::Document;
use crate::failure::{FAILED, Failure, USAGE};
use crate::index::{VISIBLE, bucket, bucket_prefix, count_in, read_entry_key};
use crate::print::{current_directory, say, shown};
use crate::rank::{Postings, Ranked, rank};
use crate::{keywords, store};

/// Documents in an answer for people.
const MAX_SHOWN: usize = 20;
/// Looks at an index that changes meanwhile.
const LOOKS: usize = 20;

pub(crate) async fn query(options: &Options, words: &[String]) -> anyhow::Result<()> {
    let asked = words.join(" ");
    let words: BTreeSet<String> = keywords::words(&asked).into_iter().collect();
    if words.is_empty() {
        return Err(Failure::new(USAGE, format!("`{asked}` holds no word that is indexed; try a longer one")).into());
    }
    let reader = store::open_beside(&store::find(&options.store)?).await?;
    let found = search(&reader.kv(), &words).await;
    let closed = reader.close().await;
    let found = found?;
    closed?;
    if options.style.json {
        print_json(&found);
    } else {
        print(&found);
    }
    match found.is_empty() {
        true => Err(Failure::new(FAILED, format!("no document holds {asked}")).into()),
        false => Ok(()),
    }
}

/// Looks until nothing that was found has changed since before the look: so no answer shows a document that was just
/// being replaced. Whatever still changes at the last look is left out.
async fn search(kv: &KvReadHandle, words: &BTreeSet<String>) -> anyhow::Result<Vec<Ranked>> {
    let mut before = visible(kv).await?;
    let mut look = 1;
    loop {
        let mut postings = Vec::new();
        for word in words {
            postings.push(postings_of(kv, word).await?);
        }
        let after = visible(kv).await?;
        let mut is_steady = true;
        let steady: Vec<Postings> = postings
            .into_iter()
            .map(|of_word| {
                let mut steady = Postings::new();
                for ((id, generation), count) in of_word {
                    let is_of = |visible: &&Document| visible.generation == generation;
                    match (before.get(&id).filter(is_of), after.get(&id).filter(is_of)) {
                        (Some(document), Some(_)) => *steady.entry(document.path.clone()).or_default() += count,
                        (None, None) => {}
                        _ => is_steady = false,
                    }
                }
                steady
            })
            .collect();
        if is_steady || look == LOOKS {
            return Ok(rank(&steady));
        }
        before = after;
        look += 1;
    }
}

/// The visible documents by the id of their path.
async fn visible(kv: &KvReadHandle) -> anyhow::Result<BTreeMap<String, Document>> {
    let mut documents = BTreeMap::new();
    let mut rows = kv.scan(VISIBLE.as_bytes());
    while let Some((key, row)) = rows.try_next().await? {
        let id = String::from_utf8_lossy(&key[VISIBLE.len()..]).into_owned();
        documents.insert(id, read(&row)?);
    }
    Ok(documents)
}

/// How often `word` occurs, by path id and generation.
async fn postings_of(kv: &KvReadHandle, word: &str) -> anyhow::Result<BTreeMap<(String, u64), u64>> {
    let prefix = bucket_prefix(bucket(word));
    let mut postings = BTreeMap::new();
    let mut rows = kv.scan(prefix.as_bytes());
    while let Some((key, entry)) = rows.try_next().await? {
        let (rest, entry) = (std::str::from_utf8(&key[prefix.len()..]).ok(), std::str::from_utf8(&entry).ok());
        let count = entry.and_then(|entry| count_in(entry, word));
        if let (Some((id, generation)), Some(count)) = (rest.and_then(read_entry_key), count) {
            *postings.entry((id.to_owned(), generation)).or_default() += count;
        }
    }
    Ok(postings)
}

fn print(found: &[Ranked]) {
    let here = current_directory();
    for (number, Ranked { path, score, .. }) in (1..).zip(found).take(MAX_SHOWN) {
        say(&format!("{number:>3} {score:>8.3}  {}", shown(&here, path)));
    }
    if let Some(more) = found.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
        say(&format!("and {more} more"));
    }
}

/// A line of `query --json`.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Hit { path: &'a str, score: f64, occurrences: u64 },
    Totals { hits: usize },
}

/// Everything that was found: a program takes as much as it likes.
fn print_json(found: &[Ranked]) {
    let hits = found.iter().map(|Ranked { path, score, occurrences }| Line::Hit {
        path,
        score: *score,
        occurrences: *occurrences,
    });
    for line in hits.chain([Line::Totals { hits: found.len() }]) {
        say(&serde_json::to_string(&line).unwrap_or_default());
    }
}

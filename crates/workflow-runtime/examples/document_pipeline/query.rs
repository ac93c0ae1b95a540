//! `query`: rank the documents of the committed index. It reads the store, and runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::TryStreamExt;
use serde::de::DeserializeOwned;
use workflow_runtime::KvReadHandle;

use crate::cli::QueryArgs;
use crate::index::{DOCUMENTS, Entry, LATEST, Record, latest_documents, word_prefix};
use crate::keywords;
use crate::progress::{current_directory, say, shown};
use crate::rank::{Posting, Ranked, rank};
use crate::store_url;

/// Documents in an answer.
const MAX_SHOWN: usize = 20;

/// Prints the documents that hold any of the words of `args`.
pub(crate) async fn query(args: QueryArgs) -> anyhow::Result<()> {
    let asked = args.words.join(" ");
    let words: BTreeSet<String> = keywords::words(&asked).collect();
    if words.is_empty() {
        bail!("`{asked}` holds no word that is indexed");
    }
    // Opening would make a new store, and a query is no reason for one.
    let store = fs::canonicalize(&args.store)
        .with_context(|| format!("no index at {}: run ingest first", args.store.display()))?;
    let storage = workflow_runtime::open(&store_url(&store)?).await?;
    let ranked = search(&storage.kv(), &words).await;
    storage.close().await?;
    print(&ranked?, &asked);
    Ok(())
}

async fn search(kv: &KvReadHandle, words: &BTreeSet<String>) -> anyhow::Result<Vec<Ranked>> {
    let documents = scan(kv, DOCUMENTS)
        .await?
        .into_iter()
        .map(|(id, record)| Ok((String::from_utf8(id)?, decode(&record)?)))
        .collect::<anyhow::Result<Vec<(String, Record)>>>()?;
    let latest: BTreeMap<_, _> =
        scan(kv, LATEST).await?.into_iter().map(|(path, id)| ([LATEST, &path].concat(), id.to_vec())).collect();

    let mut postings = Vec::new();
    for word in words {
        postings.push(postings_of(kv, word).await?);
    }
    Ok(rank(&postings, &latest_documents(documents, &latest)))
}

async fn postings_of(kv: &KvReadHandle, word: &str) -> anyhow::Result<Vec<Posting>> {
    scan(kv, &word_prefix(word))
        .await?
        .into_iter()
        .map(|(id, entry)| Ok(Posting { document_id: String::from_utf8(id)?, weight: decode::<Entry>(&entry)?.weight }))
        .collect()
}

/// All rows below `prefix`, their keys without it.
async fn scan(kv: &KvReadHandle, prefix: &[u8]) -> anyhow::Result<Vec<(Vec<u8>, Bytes)>> {
    let rows: Vec<(Bytes, Bytes)> = kv.scan(prefix).try_collect().await?;
    Ok(rows.into_iter().map(|(key, value)| (key[prefix.len()..].to_vec(), value)).collect())
}

fn decode<T: DeserializeOwned>(value: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(value).context("the index holds a row that this version cannot read")
}

fn print(ranked: &[Ranked], asked: &str) {
    if ranked.is_empty() {
        return say(&format!("no document holds {asked}"));
    }
    let here = current_directory();
    for (number, Ranked { score, path }) in (1..).zip(ranked).take(MAX_SHOWN) {
        say(&format!("{number:>3} {score:>8.3}  {}", shown(&here, path)));
    }
    if let Some(more) = ranked.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
        say(&format!("and {more} more"));
    }
}

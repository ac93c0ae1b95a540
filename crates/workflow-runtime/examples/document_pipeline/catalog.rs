//! What the store knew of every path when this process opened it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use futures::TryStreamExt;
use serde::de::DeserializeOwned;
use workflow_runtime::{KvReadHandle, RunPhase};

use crate::content::Content;
use crate::document::Document;
use crate::index::{DOCUMENTS, GENERATIONS, Latest, Record, RecordState, document_key};
use crate::work::Runtime;

/// All paths that any run was ever submitted for.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) paths: BTreeMap<String, Known>,
}

/// A path in the store.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// The generation of its latest run; 0 where there was none.
    pub(crate) generation: u64,
    /// Whether that run has not ended.
    pub(crate) is_running: bool,
    /// Whether that run took it out of the index.
    pub(crate) is_forgotten: bool,
    /// What queries see of it.
    pub(crate) visible: Option<Visible>,
}

/// What tells whether a file is still what its record says.
#[derive(Clone)]
pub(crate) struct Visible {
    pub(crate) size: u64,
    pub(crate) modified_ns: Option<u64>,
    /// None for a file that is no text, which was not read to its end.
    pub(crate) hash: Option<String>,
}

impl Catalog {
    /// Reads it, before any run goes on: a run that has not ended was left so by an earlier process.
    pub(crate) async fn load(runtime: &Runtime) -> anyhow::Result<Self> {
        let kv = runtime.kv();
        let mut paths: BTreeMap<String, Known> = BTreeMap::new();
        let mut rows = kv.scan(GENERATIONS.as_bytes());
        while let Some((_, row)) = rows.try_next().await? {
            let Latest { document, ended, forgotten: is_forgotten } = read(&row)?;
            let is_running = !ended && is_running(runtime, &document).await?;
            let Document { path, generation } = document;
            paths.insert(path, Known { generation, is_running, is_forgotten, visible: None });
        }
        let mut rows = kv.scan(DOCUMENTS.as_bytes());
        while let Some((_, row)) = rows.try_next().await? {
            let record: Record = read(&row)?;
            let known = paths.entry(record.path.clone()).or_default();
            known.visible = Some(record.into());
        }
        Ok(Self { paths })
    }

    /// What is known of `path`, which may be nothing.
    pub(crate) fn known(&self, path: &str) -> Known {
        self.paths.get(path).cloned().unwrap_or_default()
    }
}

impl From<Record> for Visible {
    fn from(record: Record) -> Self {
        match record.state {
            RecordState::Indexed { content: Content { size, modified_ns, hash, .. }, .. } => {
                Self { size, modified_ns, hash: Some(hash) }
            }
            RecordState::Skipped { size, modified_ns, .. } => Self { size, modified_ns, hash: None },
        }
    }
}

async fn is_running(runtime: &Runtime, document: &Document) -> anyhow::Result<bool> {
    let status = runtime.status(&document.run_id()).await?;
    Ok(status.is_some_and(|status| !matches!(status.phase, RunPhase::Ended { .. })))
}

/// The record of `path`, if there is one.
pub(crate) async fn record(kv: &KvReadHandle, path: &str) -> anyhow::Result<Option<Record>> {
    let row = kv.get(document_key(path).as_bytes()).await?;
    row.map(|row| read(&row)).transpose()
}

/// Whether there is anything to forget at `path` or below it.
pub(crate) async fn holds(kv: &KvReadHandle, path: &Path) -> anyhow::Result<bool> {
    let mut rows = kv.scan(GENERATIONS.as_bytes());
    while let Some((_, row)) = rows.try_next().await? {
        let Latest { document, forgotten, .. } = read(&row)?;
        if !forgotten && Path::new(&document.path).starts_with(path) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a row that this program wrote.
pub(crate) fn read<T: DeserializeOwned>(row: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(row).context(ForeignRow)
}

/// A row that this program cannot have written.
#[derive(Debug)]
pub(crate) struct ForeignRow;

impl std::fmt::Display for ForeignRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it holds a row that this version did not write")
    }
}

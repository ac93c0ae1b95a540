//! A small key-value store in memory, for handles outside any runtime and for tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::port::{Commit, KvStore, Read, Rejected, ScanPage, ScanRange};

type Entries = BTreeMap<Bytes, Bytes>;

/// A [`KvStore`] in memory. Commits are as durable as the process; there is no queue, so a commit that enqueues is
/// refused as [`Error::NoQueue`].
#[derive(Debug, Default)]
pub struct MemoryKv {
    entries: Mutex<Entries>,
}

impl MemoryKv {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store that holds `entries`.
    pub fn with_entries<K: Into<Bytes>, V: Into<Bytes>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self { entries: Mutex::new(entries) }
    }

    /// Every key and value, keys ascending.
    pub fn entries(&self) -> Vec<(Bytes, Bytes)> {
        self.lock().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl KvStore for MemoryKv {
    async fn get(&self, key: &[u8], _read: Read) -> Result<Option<Bytes>> {
        Ok(self.lock().get(key).cloned())
    }

    async fn scan(&self, range: &ScanRange, _read: Read) -> Result<ScanPage> {
        Ok(range.page_of(&self.lock()))
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let mut entries = self.lock();
        commits.into_iter().map(|commit| apply(&mut entries, commit)).collect()
    }
}

fn apply(entries: &mut Entries, commit: Commit) -> Result<(), Rejected> {
    commit.check().map_err(Rejected::Invalid)?;
    if !commit.enqueues.is_empty() {
        return Err(Rejected::Invalid(Error::NoQueue));
    }
    if commit.expect.iter().any(|(key, value)| entries.get(key) != value.as_ref()) {
        return Err(Rejected::Conflict);
    }
    for key in &commit.deletes {
        entries.remove(key);
    }
    entries.extend(commit.puts);
    Ok(())
}

#[cfg(test)]
mod tests;

//! The store as a step sees it whose predecessors are not durable yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_effects::{Commit, Error, KvStore, Read, Rejected, Result, ScanPage, ScanRange};

use super::{Shared, State};

/// Reads see what the earlier steps of the run have committed, durable or not; of everybody else, what was asked for. A
/// commit waits until the steps before it are durable, so that it cannot outlive what it was made on.
pub(super) struct Branch(pub(super) Arc<Shared>);

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for Branch {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>> {
        let uncommitted = self.0.lock().get(key);
        match uncommitted {
            Some(value) => Ok(value),
            None => self.0.committer.kv().get(key, read).await,
        }
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage> {
        let mut range = range.clone();
        loop {
            // What lands meanwhile is found in the store as well, and is the same.
            let uncommitted = self.0.lock().below(&range.prefix);
            let page = self.0.committer.kv().scan(&range, read).await?;
            let last = page.entries.last().map(|(key, _)| key.clone());
            let seen = overlaid(&range, page, uncommitted);
            if !seen.entries.is_empty() || !seen.more {
                return Ok(seen);
            }
            // Everything that the store has there is deleted.
            range.after = last;
        }
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        match self.0.landed().await {
            Ok(()) => self.0.committer.kv().commit(commits).await,
            Err(_) => commits.iter().map(|_| Err(Rejected::Invalid(Error::Undone))).collect(),
        }
    }
}

/// What the store has in `range`, and what is `uncommitted` over it.
fn overlaid(range: &ScanRange, page: ScanPage, uncommitted: BTreeMap<Bytes, Option<Bytes>>) -> ScanPage {
    let read: Vec<_> = uncommitted.into_iter().filter(|(key, _)| range.has_read(&page, key)).collect();
    let (mut entries, more): (BTreeMap<_, _>, _) = (page.entries.into_iter().collect(), page.more);
    for (key, value) in read {
        match value {
            Some(value) => drop(entries.insert(key, value)),
            None => drop(entries.remove(&key)),
        }
    }
    let seen = range.page_of(&entries);
    ScanPage { more: more || seen.more, ..seen }
}

impl State {
    fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let waiting = self.waiting.as_ref().and_then(|group| group.get(key));
        waiting.or_else(|| self.in_flight.as_ref()?.get(key))
    }

    fn below(&self, prefix: &[u8]) -> BTreeMap<Bytes, Option<Bytes>> {
        let groups = [self.in_flight.as_deref(), self.waiting.as_ref()];
        let writes = groups.into_iter().flatten().flat_map(|group| group.below(prefix));
        writes.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

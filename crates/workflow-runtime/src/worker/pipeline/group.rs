//! What several steps of one run commit as one.

use std::collections::BTreeMap;

use bytes::Bytes;
use workflow_effects::Commit;

use super::Returned;

/// A group with more bytes, or more writes, takes no further step in.
const MAX_BYTES: usize = 4 << 20;
const MAX_WRITES: usize = 2_048;

/// The commits of steps that follow each other: what the first was decided on, and what the last leaves.
pub(super) struct Group {
    /// What the first step came to.
    pub(super) first: Returned,
    expect: Vec<(Bytes, Option<Bytes>)>,
    /// Values put, and keys deleted.
    writes: BTreeMap<Bytes, Option<Bytes>>,
    bytes: usize,
}

impl Group {
    /// What one step commits, and came to.
    pub(super) fn new(mut commit: Commit, first: Returned) -> Self {
        let expect = std::mem::take(&mut commit.expect);
        let mut group = Self { first, expect, writes: BTreeMap::new(), bytes: 0 };
        group.add(commit);
        group
    }

    /// Adds what the next step commits.
    pub(super) fn add(&mut self, commit: Commit) {
        debug_assert!(commit.enqueues.is_empty(), "a step that rings a doorbell commits alone");
        debug_assert!(commit.expect.len() <= 1, "a step that takes a slot commits alone");
        let puts = commit.puts.into_iter().map(|(key, value)| (key, Some(value)));
        for (key, value) in puts.chain(commit.deletes.into_iter().map(|key| (key, None))) {
            self.bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
            self.writes.insert(key, value);
        }
    }

    /// Whether another step may be added.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < MAX_BYTES && self.writes.len() < MAX_WRITES
    }

    /// All of it as one commit.
    pub(super) fn commit(&self) -> Commit {
        let mut commit = Commit { expect: self.expect.clone(), ..Commit::default() };
        for (key, value) in &self.writes {
            match value {
                Some(value) => commit.puts.push((key.clone(), value.clone())),
                None => commit.deletes.push(key.clone()),
            }
        }
        commit
    }

    /// What it leaves at `key`: `Some(None)` when it deletes the key, `None` when it does not write it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.writes.get(key).cloned()
    }

    /// What it writes at keys that begin with `prefix`.
    pub(super) fn below<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = (&'a Bytes, &'a Option<Bytes>)> {
        let from = self.writes.range::<[u8], _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        from.take_while(move |(key, _)| key.starts_with(prefix))
    }
}

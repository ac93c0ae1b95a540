//! Places in indexes: each has its run.

use bytes::Bytes;
use workflow_core::RunState;
use workflow_effects::{Index, IndexEntry, decode_spec};

use super::ViolationKind;
use super::found::Found;
use super::reading::Store;
use crate::Result;
use crate::listing::is_at;
use crate::lower::submission_places;

impl Store {
    pub(super) async fn look_into_place(&self, index: Index, entry: &IndexEntry, key: &Bytes) -> Result<Found> {
        let mut found = Found::of(&entry.run_id);
        let is_right = match index {
            Index::State(state) => self.is_in_state(state, entry).await?,
            Index::Submitted | Index::Header(_) => self.is_of_submission(entry, key).await?,
        };
        if !is_right {
            found.report(ViolationKind::Orphan, key, "a place in an index is not the run's, and nobody removes it");
        }
        Ok(found)
    }

    /// A place among ended runs whose record is gone, or another submission's, is that of a run that is being removed.
    async fn is_in_state(&self, state: RunState, entry: &IndexEntry) -> Result<bool> {
        let Some(run) = self.run(&entry.run_id).await? else { return Ok(true) };
        let is_removed = run.incarnation() != Some(entry.incarnation) && matches!(state, RunState::Ended(_));
        Ok(is_removed || is_at(&run, Index::State(state), entry))
    }

    /// A place by submission goes with the record: the commit that removes one removes the other. It is one of those that
    /// follow from what the run was submitted with; where that is gone and must not be, or does not read, this is
    /// reported, and not the places.
    async fn is_of_submission(&self, entry: &IndexEntry, key: &Bytes) -> Result<bool> {
        let IndexEntry { run_id, incarnation, .. } = entry;
        if !self.may_name(run_id, *incarnation).await? {
            return Ok(false);
        }
        let keys = &self.reads.keys;
        let spec = self.get(&keys.spec(run_id, *incarnation)).await?.map(|row| decode_spec(run_id, &row));
        let Some(Ok(spec)) = spec else { return Ok(true) };
        Ok(submission_places(keys, run_id, *incarnation, &spec).any(|place| place == *key))
    }
}

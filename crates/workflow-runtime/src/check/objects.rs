//! The marks of objects: whoever has objects has one, and one that nothing has objects for goes some day.

use std::time::Duration;

use bytes::Bytes;
use workflow_core::{Incarnation, RunId, Timestamp, Value};
use workflow_effects::{
    Error as EffectsError, ObjectsState, SignalObjectsState, decode_objects_row, decode_signal_objects_row, decode_slot,
};

use super::ViolationKind;
use super::found::Found;
use super::reading::Store;
use crate::Result;

/// The loop removes what a crash has left after a day, give or take a few hours.
const OVERDUE: Duration = Duration::from_secs(2 * 24 * 3_600);

impl Store {
    /// The objects of the values that the row at `key` names are there, whole, and marked: without a mark nobody finds
    /// them when the run is removed. Those of signals have marks of their own.
    pub(super) async fn objects<'v>(
        &self,
        found: &mut Found,
        (run_id, of): (&RunId, Incarnation),
        key: &Bytes,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Result<()> {
        let folder = format!("/{run_id}/{of}/");
        for value in values {
            self.object(found, key, value).await?;
            if value.object().is_some_and(|object| object.path.contains(&folder)) {
                let mark = self.reads.keys.objects(run_id, of);
                if self.get(&mark).await?.is_none() {
                    found.report(ViolationKind::Orphan, &mark, "it has objects, and nothing says so");
                }
            }
        }
        Ok(())
    }

    /// The object of a value that the row at `key` names is there, whole.
    pub(super) async fn object(&self, found: &mut Found, key: &Bytes, value: &Value) -> Result<()> {
        match self.reads.objects.check(value).await {
            Ok(()) => Ok(()),
            Err(error @ EffectsError::Corrupt { .. }) => {
                found.report(ViolationKind::Lost, key, error);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn look_into_objects(
        &self,
        (run_id, of): (RunId, Incarnation),
        key: &Bytes,
        row: &Bytes,
    ) -> Result<Found> {
        let mut found = Found::of(&run_id);
        let Some(row) = found.decoded(key, decode_objects_row(&run_id, row)) else { return Ok(found) };
        let run = self.run(&run_id).await?;
        match run.map(|run| run.incarnation() == Some(of)) {
            Some(true) if row.state == ObjectsState::Condemned => {
                found.report(ViolationKind::Lost, key, "its objects are given up, and it is there");
            }
            Some(false) if self.is_overdue(row.since) => found.unnamed = Some((run_id, of)),
            Some(_) | None => {}
        }
        Ok(found)
    }

    pub(super) async fn look_into_signal_objects(&self, key: &Bytes, row: &Bytes) -> Result<Found> {
        let mut found = Found::default();
        let Some(row) = found.decoded(key, decode_signal_objects_row(row)) else { return Ok(found) };
        let is_named = match &row.state {
            SignalObjectsState::Fresh | SignalObjectsState::Condemned => false,
            SignalObjectsState::Buffered { key } => {
                // Which ones are buffered is not looked up: there may be many, for as many marks.
                let slot = self.get(&self.reads.keys.slot(key)).await?;
                decode_slot(key, slot.as_deref()).map_or(true, |slot| slot.buffered() > 0)
            }
            SignalObjectsState::Owned { run_id, incarnation } => self.may_name(run_id, *incarnation).await?,
        };
        if !is_named && self.is_overdue(row.since) {
            found.report(ViolationKind::Orphan, key, "the object of a signal is left, and nobody removes it");
        }
        Ok(found)
    }

    fn is_overdue(&self, since: Timestamp) -> bool {
        since.after(OVERDUE) <= self.now
    }
}

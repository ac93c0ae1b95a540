//! What belongs to one submission of a run: it reads, its record names it, or somebody removes it.

use bytes::Bytes;
use workflow_core::{Incarnation, RunId};
use workflow_effects::{
    OwnedRow, decode_memo_entry, decode_notification, decode_outcome_row, decode_spec, decode_step_row,
};

use super::ViolationKind;
use super::found::Found;
use super::reading::Store;
use crate::Result;

impl Store {
    pub(super) async fn look_into_owned(
        &self,
        (run_id, of): (RunId, Incarnation),
        kind: &OwnedRow,
        key: &Bytes,
        row: &Bytes,
    ) -> Result<Found> {
        let mut found = Found::of(&run_id);
        let is_named = self.may_name(&run_id, of).await?;
        let values = match kind {
            OwnedRow::Spec => {
                found.decoded(key, decode_spec(&run_id, row));
                Vec::new()
            }
            OwnedRow::Outcome => {
                // What it names may be gone: it counts for nothing once it is committed.
                found.decoded(key, decode_outcome_row(&run_id, row));
                Vec::new()
            }
            OwnedRow::Memo(_, memo) => {
                let entry = found.decoded(key, decode_memo_entry(&run_id, memo, row));
                entry.into_iter().map(|entry| entry.value).collect()
            }
            OwnedRow::History(_) => {
                let step = found.decoded(key, decode_step_row(&run_id, row));
                let values = step.map(|step| [step.payload, step.signal.map(|signal| signal.payload)]);
                values.into_iter().flatten().flatten().collect()
            }
            OwnedRow::LeftJob(_) => Vec::new(),
            OwnedRow::Notification(_) => {
                self.notification(&mut found, &run_id, key, row).await?;
                Vec::new()
            }
        };
        if is_named {
            self.objects(&mut found, (&run_id, of), key, &values).await?;
        } else {
            // Of a run that is removed the objects go before the rows.
            found.unnamed = Some((run_id, of));
        }
        Ok(found)
    }

    /// A hook that is owed a call has a job that leads to it.
    async fn notification(&self, found: &mut Found, run_id: &RunId, key: &Bytes, row: &Bytes) -> Result<()> {
        let Some(row) = found.decoded(key, decode_notification(run_id, row)) else { return Ok(()) };
        let job = &row.state.job;
        if !row.state.dead && !self.rings(job).await? {
            found.report(ViolationKind::Untold, key, format!("the job of its notification, {job}, does not ring"));
        }
        Ok(())
    }
}

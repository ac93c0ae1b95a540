//! O4: once its time is over, nothing is left of any run or signal.

use workflow_effects::{StoredKey, key_text};
use workflow_runtime::ViolationKind;

use super::{Broken, Invariant, Now, found};
use crate::simulation::committed::{Landed, Row};
use crate::simulation::event::Event;

const NAME: &str = "O4 orphans";

pub(super) struct Orphans;

impl Invariant for Orphans {
    fn landed(&mut self, landed: &Landed, _: &Now<'_>) -> Result<(), Broken> {
        match landed.changes.iter().any(|change| change.row == Row::Strange) {
            true => Err(Broken::new(NAME, None, "a commit writes a row that nobody knows")),
            false => Ok(()),
        }
    }

    fn told(&mut self, event: &Event, now: &Now<'_>) -> Result<(), Broken> {
        found(NAME, ViolationKind::Orphan, event)?;
        let Event::Swept { objects, jobs } = event else { return Ok(()) };
        let left = now.store.reserved().find(|(_, row)| !matches!(row, Row::Stored(StoredKey::Priority(_))));
        if let Some((key, row)) = left {
            let what = format!("{} is left for ever", key_text(key));
            return Err(Broken::new(NAME, owner(&row).as_deref(), what));
        }
        if let Some(path) = objects.first() {
            let run_id = path.split('/').nth(1);
            return Err(Broken::new(NAME, run_id, format!("object {path} is left for ever")));
        }
        match jobs.first() {
            Some(job) => Err(Broken::new(NAME, None, format!("{job} is left for ever"))),
            None => Ok(()),
        }
    }
}

fn owner(row: &Row) -> Option<String> {
    match row {
        Row::Stored(StoredKey::Run(run_id) | StoredKey::Owned(run_id, ..) | StoredKey::Objects(run_id, _)) => {
            Some(run_id.to_string())
        }
        Row::Stored(StoredKey::Indexed(_, entry)) => Some(entry.run_id.to_string()),
        _ => None,
    }
}

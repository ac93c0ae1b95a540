//! O2: a submission ends once, and once more for each time it is brought back. The hook is told of ends that are
//! durable, of each at least once, and what it stages is applied once.

use std::collections::BTreeMap;

use bytes::Bytes;
use workflow_core::{EndedRun, Incarnation, Run};
use workflow_effects::{OwnedRow, StoredKey};
use workflow_runtime::ViolationKind;

use super::{Broken, Invariant, Now, found};
use crate::simulation::answer::End;
use crate::simulation::committed::{Change, Landed, Row, RunChange};
use crate::simulation::event::Event;

const NAME: &str = "O2 one end";

/// Remembers every end.
#[derive(Default)]
pub(super) struct OneEnd {
    ends: BTreeMap<(Incarnation, u32), Told>,
}

/// An end, and how often what its hook staged was applied.
struct Told {
    end: End,
    /// None when its object was gone before anybody looked.
    result: Option<Bytes>,
    applied: u32,
}

impl Invariant for OneEnd {
    fn landed(&mut self, landed: &Landed, now: &Now<'_>) -> Result<(), Broken> {
        for run in &landed.runs {
            self.check_run(run, landed, now).map_err(|what| Broken::new(NAME, Some(&run.run_id), what))?;
        }
        landed.changes.iter().try_for_each(|change| self.check_notification(change, landed, now))
    }

    fn told(&mut self, event: &Event, _: &Now<'_>) -> Result<(), Broken> {
        found(NAME, ViolationKind::Untold, event)?;
        match event {
            Event::Told(_, end) if !self.ends.values().any(|told| told.is(end)) => Err(Broken::new(
                NAME,
                Some(&end.run_id),
                format!("its hook is told of an end that is not durable: {end}"),
            )),
            Event::Closed => match self.ends.values().find(|told| told.applied == 0) {
                Some(told) => {
                    let what = format!("its hook was never told of this end: {}", told.end);
                    Err(Broken::new(NAME, Some(&told.end.run_id), what))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl OneEnd {
    fn check_run(&mut self, run: &RunChange, landed: &Landed, now: &Now<'_>) -> Result<(), String> {
        match (&run.before, &run.after) {
            (Run::Active(before), Run::Ended(after)) => {
                if before.redrive != after.redrive || before.incarnation != after.incarnation {
                    return Err("the end is of another redrive or submission than the run".to_owned());
                }
                self.note_end(&run.run_id, after, landed, now)
            }
            (Run::Ended(before), Run::Ended(after)) if !is_same_end(before, after) => {
                Err(format!("its end changes: {before:?} becomes {after:?}"))
            }
            (Run::Ended(before), Run::Active(after)) => {
                let is_next = after.redrive == before.redrive + 1 && after.incarnation == before.incarnation;
                if is_next { Ok(()) } else { Err("it is brought back and does not count that".to_owned()) }
            }
            (Run::Ended(before), Run::Absent) => match is_owed(&run.run_id, before.incarnation, now) {
                true => Err("it is removed while its hook is owed".to_owned()),
                false => Ok(()),
            },
            (Run::Absent, Run::Ended(_)) => Err("it ends without having begun".to_owned()),
            _ => Ok(()),
        }
    }

    fn note_end(&mut self, run_id: &str, ended: &EndedRun, landed: &Landed, now: &Now<'_>) -> Result<(), String> {
        let end = End {
            run_id: run_id.to_owned(),
            call: now.store.call(ended.incarnation).unwrap_or_default(),
            status: ended.status,
            final_step: ended.final_step,
            error: ended.error.clone(),
            result: None,
        };
        let result = ended.result.as_ref().and_then(|result| now.store.value(result));
        let told = Told { end, result, applied: 0 };
        if self.ends.insert((ended.incarnation, ended.redrive), told).is_some() {
            return Err("it ends twice".to_owned());
        }
        let is_notified = landed.changes.iter().any(|change| {
            change.after.is_some() && notification(change).is_some_and(|of| of == (ended.incarnation, ended.redrive))
        });
        if is_notified { Ok(()) } else { Err("its end does not owe its hook a call".to_owned()) }
    }

    /// What a hook stages and the row of its call are one commit.
    fn check_notification(&mut self, change: &Change, landed: &Landed, now: &Now<'_>) -> Result<(), Broken> {
        let Row::Told { call } = change.row else { return Ok(()) };
        // One commit may carry what several hooks staged: as many calls are over with it.
        let staged = landed.changes.iter().take_while(|other| !std::ptr::eq(*other, change));
        let earlier = staged.filter(|other| matches!(other.row, Row::Told { call: of } if of == call)).count();
        let mut over = landed.changes.iter().filter(|change| {
            let of = notification(change).filter(|_| change.before.is_some() && change.after.is_none());
            of.is_some_and(|(incarnation, _)| now.store.call(incarnation) == Some(call))
        });
        let told = over.nth(earlier).and_then(notification).and_then(|of| self.ends.get_mut(&of));
        let Some(told) = told else {
            return Err(Broken::new(
                NAME,
                None,
                format!("what a hook of call {call} stages is applied without its call"),
            ));
        };
        told.applied += 1;
        match told.applied {
            1 => Ok(()),
            _ => Err(Broken::new(NAME, Some(&told.end.run_id), "what its hook stages is applied twice")),
        }
    }
}

impl Told {
    fn is(&self, end: &End) -> bool {
        let is_result = match (&self.result, &end.result) {
            (Some(stored), Some(told)) => stored == told,
            (None, _) => true,
            (Some(_), None) => false,
        };
        is_result && self.end == End { result: None, ..end.clone() }
    }
}

fn is_same_end(before: &EndedRun, after: &EndedRun) -> bool {
    let told = |run: &EndedRun| (run.incarnation, run.redrive, run.status, run.result.clone(), run.error.clone());
    told(before) == told(after)
}

/// The end that a row is the notification of.
fn notification(change: &Change) -> Option<(Incarnation, u32)> {
    match change.row {
        Row::Stored(StoredKey::Owned(_, incarnation, OwnedRow::Notification(redrive))) => Some((incarnation, redrive)),
        _ => None,
    }
}

fn is_owed(run_id: &str, incarnation: Incarnation, now: &Now<'_>) -> bool {
    let run_id = workflow_core::RunId::parse(run_id).unwrap();
    now.store.entries_below(now.store.keys().notifications_prefix(&run_id, incarnation)).next().is_some()
}

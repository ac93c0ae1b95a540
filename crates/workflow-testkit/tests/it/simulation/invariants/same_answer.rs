//! O6: a step that is delivered again sees the payload, the signal and the memos that it saw before, and nothing that a
//! crash can undo.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use workflow_core::{ActiveRun, Incarnation, Phase, Run, Signal};

use super::{Broken, Invariant, Now};
use crate::simulation::committed::{Landed, RunChange};
use crate::simulation::event::{Attempt, Event, Memo};
use crate::simulation::workload::word;

const NAME: &str = "O6 same answer";

/// Remembers with what each step may be called, and what its attempts have seen.
#[derive(Default)]
pub(super) struct SameAnswer {
    /// By call and step.
    starts: BTreeMap<(u64, u32), Vec<Start>>,
    /// By call: what an attempt saw while there was no later one.
    memos: BTreeMap<(u64, Memo), Seen>,
    /// The latest attempt of each step.
    latest: BTreeMap<(u64, u32), u64>,
    /// Attempts that began when they were late already, or before what they stand on was durable.
    late: BTreeSet<u64>,
}

/// With what a step is called, as a durable record says.
struct Start {
    incarnation: Incarnation,
    redrive: u32,
    /// None when the object was gone before anybody looked.
    payload: Option<Bytes>,
    signal: Option<Option<Bytes>>,
}

struct Seen {
    value: u64,
    /// The attempt that saw it, after all that had begun by then.
    by: u64,
    before: u64,
}

impl Invariant for SameAnswer {
    fn landed(&mut self, landed: &Landed, now: &Now<'_>) -> Result<(), Broken> {
        for run in &landed.runs {
            check_kept(run).map_err(|what| Broken::new(NAME, Some(&run.run_id), what))?;
            if let Run::Active(active) = &run.after {
                self.note_start(active, now);
            }
        }
        Ok(())
    }

    fn told(&mut self, event: &Event, now: &Now<'_>) -> Result<(), Broken> {
        let (attempt, checked) = match event {
            Event::Started(attempt) | Event::Synced(attempt) => {
                let is_durable = event.durable_start().is_some();
                if !is_durable || now.store.is_late(attempt) {
                    self.late.insert(attempt.number);
                } else {
                    self.late.remove(&attempt.number);
                    self.latest.insert((attempt.call, attempt.step), attempt.number);
                }
                (attempt, if is_durable { self.check_start(attempt) } else { Ok(()) })
            }
            Event::Remembered { attempt, memo, value } => (attempt, self.check_memo(attempt, *memo, *value)),
            // It has run ahead of what is undone by now.
            Event::Missing { attempt, .. } if attempt.may_run_ahead && now.store.is_late(attempt) => return Ok(()),
            Event::Missing { attempt, key } => (attempt, Err(format!("what was committed before is not there: {key}"))),
            _ => return Ok(()),
        };
        checked.map_err(|what| Broken::new(NAME, Some(&attempt.run_id), what))
    }
}

impl SameAnswer {
    fn note_start(&mut self, run: &ActiveRun, now: &Now<'_>) {
        if matches!(run.phase, Phase::Waiting { .. }) {
            return;
        }
        let Some(call) = now.store.call(run.incarnation) else { return };
        let starts = self.starts.entry((call, run.step)).or_default();
        if starts.iter().any(|start| start.incarnation == run.incarnation && start.redrive == run.redrive) {
            return;
        }
        let signal = match &run.signal {
            None => Some(None),
            Some(Signal { payload, .. }) => now.store.value(payload).map(Some),
        };
        let payload = now.store.value(&run.payload);
        starts.push(Start { incarnation: run.incarnation, redrive: run.redrive, payload, signal });
    }

    /// A step starts with what a durable record says, or said while the attempt was not late.
    fn check_start(&self, attempt: &Attempt) -> Result<(), String> {
        let starts = self.starts.get(&(attempt.call, attempt.step)).map_or(&[][..], Vec::as_slice);
        let is_payload = |start: &&Start| start.payload.as_ref().is_none_or(|payload| *payload == attempt.payload);
        let is_signal = |start: &Start| {
            let seen = attempt.signal.as_deref();
            start.signal.as_ref().is_none_or(|signal| signal.as_deref() == seen)
        };
        let payload = word(&attempt.payload);
        let mut with_payload = starts.iter().filter(is_payload).peekable();
        if with_payload.peek().is_none() {
            return Err(format!("step {} starts with {payload}, which is not durable", attempt.step));
        }
        if with_payload.any(is_signal) {
            return Ok(());
        }
        let signal = attempt.signal.as_deref().map_or("no signal", word);
        Err(format!("step {} starts with {signal}, which is another answer than the record's", attempt.step))
    }

    /// Whoever begins after the latest attempt has seen a memo sees the same.
    fn check_memo(&mut self, attempt: &Attempt, memo: Memo, value: u64) -> Result<(), String> {
        if self.late.contains(&attempt.number) {
            return Ok(());
        }
        let latest = self.latest.iter().filter(|((call, step), _)| match memo {
            Memo::OfRun(_) => *call == attempt.call,
            Memo::OfStep(of, _) => *call == attempt.call && *step == of,
        });
        let latest = latest.map(|(_, number)| *number).max().unwrap_or_default();
        // A value is the number of the attempt that made it. The fence of a memo lets a late attempt replace the value
        // of an older one, even when a newer one has seen that.
        let is_replaced = |seen: &Seen| seen.value < value && value < seen.by;
        let binds = |seen: &&Seen| (attempt.number > seen.before || attempt.number == seen.by) && !is_replaced(seen);
        match self.memos.get(&(attempt.call, memo)).filter(binds) {
            Some(seen) if seen.value != value => {
                let (number, seen, by) = (attempt.number, seen.value, seen.by);
                return Err(format!("a{number} remembers a{value} where a{by} remembered a{seen}"));
            }
            _ => {}
        }
        if attempt.number == latest {
            self.memos.insert((attempt.call, memo), Seen { value, by: attempt.number, before: latest });
        }
        Ok(())
    }
}

/// What a step is called with stays the same from one record to the next.
fn check_kept(run: &RunChange) -> Result<(), String> {
    let (Run::Active(before), Run::Active(after)) = (&run.before, &run.after) else { return Ok(()) };
    let is_same_step =
        (before.incarnation, before.redrive, before.step) == (after.incarnation, after.redrive, after.step);
    if !is_same_step {
        return Ok(());
    }
    if before.payload != after.payload {
        return Err(format!("the payload of step {} changes", after.step));
    }
    if !matches!(before.phase, Phase::Waiting { .. }) && before.signal != after.signal {
        return Err(format!("the signal of step {} changes after its wait is over", after.step));
    }
    Ok(())
}

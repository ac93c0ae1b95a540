//! O1: what a call has acknowledged is durable when it answers, and stays so for as long as it was promised to.

mod buffers;
mod calls;
mod listings;
mod past;
mod signals;

use std::collections::BTreeMap;

use workflow_core::{EndedRun, Incarnation, Run, Status};
use workflow_runtime::ViolationKind;

use self::calls::Calls;
use self::listings::Asked;
use self::past::Past;
use self::signals::Signals;
use super::{Broken, Invariant, Now, Promises, found};
use crate::simulation::answer::{Answer, End};
use crate::simulation::committed::{Landed, RunChange};
use crate::simulation::event::{Attempt, Event, Process};
use crate::simulation::op::Op;

const NAME: &str = "O1 acknowledged";

/// Remembers how every run has been, and what users were answered.
pub(super) struct Acknowledged {
    promises: Promises,
    /// The number of the last commit.
    landed: u64,
    past: Past,
    calls: Calls,
    /// The runs whose pause was acknowledged, with the step that may still start.
    paused: BTreeMap<String, (Incarnation, Option<u32>)>,
    signals: Signals,
}

impl Acknowledged {
    pub(super) fn new(promises: Promises) -> Self {
        let (past, calls, paused) = Default::default();
        Self { promises, landed: 0, past, calls, paused, signals: Signals::new(promises.signal_ttl) }
    }
}

impl Invariant for Acknowledged {
    fn landed(&mut self, landed: &Landed, now: &Now<'_>) -> Result<(), Broken> {
        self.landed = landed.number;
        for run in &landed.runs {
            let kept = self.check_kept(run, now).and_then(|()| self.signals.receive(&run.after));
            let kept = kept.and_then(|()| self.signals.check_waits(&run.after, now));
            kept.map_err(|what| Broken::new(NAME, Some(&run.run_id), what))?;
            if !matches!(&run.after, Run::Active(after) if after.paused) {
                self.paused.remove(&run.run_id);
            }
            self.past.land(landed.number, run);
        }
        self.signals.landed(landed, &self.calls.clears, now).map_err(|what| Broken::new(NAME, None, what))
    }

    fn told(&mut self, event: &Event, now: &Now<'_>) -> Result<(), Broken> {
        found(NAME, ViolationKind::Lost, event)?;
        found(NAME, ViolationKind::Corrupt, event)?;
        let checked = match event {
            Event::Asked(number, op) => {
                self.calls.ask(*number, op, self.landed);
                Ok(())
            }
            Event::Answered(number, op, answer) => {
                let checked = self.check_answer(*number, op, answer, now);
                self.calls.answer(op, answer, self.landed);
                checked
            }
            Event::Process(Process::Begins) => {
                self.calls.give_up(self.landed);
                Ok(())
            }
            event => event.durable_start().map_or(Ok(()), |attempt| self.check_start(attempt, now)),
        };
        checked.map_err(|what| Broken::new(NAME, event.run_id(), what))
    }
}

impl Acknowledged {
    /// A run goes on from what was promised of it.
    fn check_kept(&self, run: &RunChange, now: &Now<'_>) -> Result<(), String> {
        let since = self.past.since(&run.run_id);
        match (&run.before, &run.after) {
            (Run::Active(_), Run::Absent) => Err("it is removed and has not ended".to_owned()),
            (Run::Ended(ended), Run::Absent) => {
                let is_over = ended.ended_at.after(self.promises.retention) <= now.time;
                match is_over || self.calls.forgets.may_act(&run.run_id, since) {
                    true => Ok(()),
                    false => Err(format!("it is removed before its time, having ended at {:?}", ended.ended_at)),
                }
            }
            (Run::Active(before), Run::Active(after)) if before.cancel.is_some() && after.cancel.is_none() => {
                Err("that it is to be cancelled is forgotten".to_owned())
            }
            (Run::Active(before), Run::Ended(after))
                if before.cancel.is_some() && after.status != Status::Cancelled =>
            {
                Err(format!("it was to be cancelled, and ends {:?}", after.status))
            }
            (Run::Active(before), Run::Active(after)) if before.paused && !after.paused => {
                match self.calls.resumes.may_act(&run.run_id, since) {
                    true => Ok(()),
                    false => Err("it goes on, and nobody has resumed it".to_owned()),
                }
            }
            _ => Ok(()),
        }
    }

    /// How the run was at some time since call `number` was asked.
    fn was(&self, run_id: &str, number: u64, wanted: impl Fn(&Run) -> bool) -> bool {
        self.past.from(run_id, self.calls.asked_at(number)).any(wanted)
    }

    fn check_answer(&mut self, number: u64, op: &Op, answer: &Answer, now: &Now<'_>) -> Result<(), String> {
        let Some(run_id) = op.run_id() else {
            let checked = self.check_told(number, op, answer, now);
            return checked.map_err(|what| format!("call {number}, {op}, is answered {answer}: {what}"));
        };
        if matches!(answer, Answer::Paused | Answer::Finishing) {
            self.note_pause(run_id, matches!(answer, Answer::Finishing), now);
        }
        let was = |wanted: &dyn Fn(&Run) -> bool| self.was(run_id, number, wanted);
        let active = |wanted: &dyn Fn(&workflow_core::ActiveRun) -> bool| {
            was(&|run| matches!(run, Run::Active(active) if wanted(active)))
        };
        let ended = |wanted: &dyn Fn(&EndedRun) -> bool| was(&|run| matches!(run, Run::Ended(ended) if wanted(ended)));
        let is_so = match (op, answer) {
            (Op::Submit { .. }, Answer::Made) => was(&|run| call(run, now) == Some(number)),
            (Op::Submit { input, .. }, Answer::Known) => {
                was(&|run| call(run, now).and_then(|call| self.calls.input(call)) == Some(*input))
            }
            (_, Answer::Over(end)) => ended(&|ended| is_end(ended, end, now)),
            (_, Answer::Ended) => ended(&|ended| ended.status == Status::Cancelled),
            (_, Answer::Requested) => active(&|run| run.cancel.is_some()),
            // No step of a run that is to be cancelled starts, paused or not.
            (_, Answer::Paused | Answer::Finishing) => active(&|run| run.paused || run.cancel.is_some()),
            (_, Answer::Resumed | Answer::NotPaused) => active(&|run| !run.paused || run.cancel.is_some()),
            (_, Answer::Redriven) => active(&|run| run.redrive > 0),
            (_, Answer::Active) => active(&|_| true),
            (_, Answer::Forgotten) => was(&|run| *run == Run::Absent),
            (Op::End(_) | Op::Wait(_), Answer::Nothing) => true,
            (_, Answer::Nothing) => was(&|run| *run == Run::Absent),
            _ => true,
        };
        let run = || crate::simulation::committed::run_text(now.store.run(run_id));
        if is_so {
            Ok(())
        } else {
            Err(format!("call {number}, {op}, is answered {answer}, and is not durable: the run {}", run()))
        }
    }

    /// What a call tells that is not about one run.
    fn check_told(&self, number: u64, op: &Op, answer: &Answer, now: &Now<'_>) -> Result<(), String> {
        let asked = self.calls.asked_at(number);
        let listing = Asked { past: &self.past, asked, now };
        match (op, answer) {
            (Op::Signal { key, id: Some(id) }, answer) => self.signals.check_answer(key, *id, answer),
            (Op::Clear(_) | Op::Kept(_) | Op::List(..) | Op::Count(_), Answer::Refused(_)) => {
                Err("nothing is wrong with it".to_owned())
            }
            (Op::Clear(key), Answer::Cleared(cleared)) => {
                let alone = self.calls.clears.is_alone(key, asked);
                self.signals.buffers().check_cleared(key, *cleared, asked, alone)
            }
            (Op::Kept(key), Answer::Kept(shown)) => self.signals.buffers().check_shown(key, shown, asked),
            (Op::List(filter, order), Answer::Listed(listed)) => listing.check_listed(filter, *order, listed),
            (Op::Count(filter), Answer::Counted(counted)) => listing.check_counted(filter, *counted),
            _ => Ok(()),
        }
    }

    fn note_pause(&mut self, run_id: &str, may_finish: bool, now: &Now<'_>) {
        match now.store.run(run_id) {
            Run::Active(run) if run.paused => {
                let step = may_finish.then_some(run.step);
                self.paused.insert(run_id.to_owned(), (run.incarnation, step));
            }
            Run::Active(_) | Run::Absent | Run::Ended(_) => {}
        }
    }

    fn check_start(&self, attempt: &Attempt, now: &Now<'_>) -> Result<(), String> {
        let paused = self.paused.get(&attempt.run_id).filter(|_| self.promises.leases_hold);
        let Some((incarnation, step)) = paused else { return Ok(()) };
        let is_concerned = now.store.call(*incarnation) == Some(attempt.call);
        match is_concerned && *step != Some(attempt.step) && !now.store.is_late(attempt) {
            true => Err(format!("step {} starts after a pause was acknowledged", attempt.step)),
            false => Ok(()),
        }
    }
}

fn call(run: &Run, now: &Now<'_>) -> Option<u64> {
    now.store.call(run.incarnation()?)
}

fn is_end(ended: &EndedRun, end: &End, now: &Now<'_>) -> bool {
    now.store.call(ended.incarnation) == Some(end.call)
        && (ended.status, ended.final_step, &ended.error) == (end.status, end.final_step, &end.error)
}

//! Marks: cases that a simulation is there for. How often each was reached is counted, so that a test can tell that it
//! was.

mod mark;
mod meanwhile;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use workflow_core::{ActiveRun, EndedRun, Incarnation, Phase, Run, RunState, Status};
use workflow_effects::{Index, StoredKey};

pub(crate) use self::mark::Mark;
use self::meanwhile::Meanwhile;
use super::answer::Answer;
use super::committed::{Committed, Landed, Row, RunChange};
use super::event::{Event, Process};
use super::op::Op;

/// How often each case was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    counts: BTreeMap<Mark, u64>,
    seen: Seen,
}

/// What a later event may be measured by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    processes: u64,
    /// In which process each run ended.
    ended: BTreeMap<Incarnation, u64>,
    /// The runs that somebody has called to redrive since they ended.
    redrives: BTreeSet<String>,
    /// The run ids that were ever used.
    submitted: BTreeSet<String>,
    /// The latest attempt of each step, by the call that submitted its run, and in which process it was.
    latest: BTreeMap<(u64, u32), (u64, u64)>,
    told: BTreeMap<u64, u64>,
    meanwhile: Meanwhile,
}

impl Marks {
    pub(crate) fn count(&self, mark: Mark) -> u64 {
        self.counts.get(&mark).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mark, count) in &other.counts {
            *self.counts.entry(*mark).or_default() += count;
        }
    }

    pub(crate) fn refused(&mut self, commits: u64) {
        *self.counts.entry(Mark::CommitRefused).or_default() += commits;
    }

    fn note(&mut self, mark: Mark) {
        *self.counts.entry(mark).or_default() += 1;
    }

    fn note_if(&mut self, is_so: bool, mark: Mark) {
        if is_so {
            self.note(mark);
        }
    }

    pub(crate) fn landed(&mut self, landed: &Landed, store: &Committed) {
        for run in &landed.runs {
            if run.before.state() != run.after.state() {
                self.seen.meanwhile.run_moved();
            }
            self.run_changed(run, landed, store);
        }
        for change in &landed.changes {
            let is_mark = matches!(change.row, Row::Stored(StoredKey::Objects(..) | StoredKey::SignalObjects(_)));
            self.note_if(is_mark && change.before.is_none(), Mark::LargeValue);
            if let (Row::Stored(StoredKey::BufferedSignal(key, _)), Some(_)) = (&change.row, &change.after) {
                self.seen.meanwhile.signal_came(key.as_str());
            }
        }
    }

    fn run_changed(&mut self, run: &RunChange, landed: &Landed, store: &Committed) {
        match (&run.before, &run.after) {
            (Run::Absent, Run::Active(_)) => {
                let is_new = self.seen.submitted.insert(run.run_id.clone());
                self.note_if(!is_new, Mark::Resubmitted);
                let is_left = store.reserved().any(|(_, row)| is_place_of_ended(&row, &run.run_id));
                self.note_if(is_left, Mark::ResubmittedDuringRemoval);
            }
            (Run::Ended(_), Run::Absent) => self.note(Mark::Removed),
            (Run::Active(before), Run::Ended(after)) => {
                self.seen.redrives.remove(&run.run_id);
                self.run_ended(before, after, landed, store);
            }
            (Run::Ended(ended), Run::Active(after)) => {
                self.note(Mark::Redriven);
                self.note_if(after.step < ended.final_step, Mark::RedrivenFromEarlier);
                let ended_in = self.seen.ended.get(&ended.incarnation).copied().unwrap_or_default();
                self.note_if(ended_in < self.seen.processes, Mark::RedrivenAfterCrash);
                self.note_if(!self.seen.redrives.contains(&run.run_id), Mark::RequeuedByOperator);
            }
            (Run::Active(before), Run::Active(after)) => {
                let was_waiting = matches!(before.phase, Phase::Waiting { .. }) && before.step == after.step;
                let is_resolved = was_waiting && !matches!(after.phase, Phase::Waiting { .. });
                self.note_if(is_resolved && after.signal.is_none(), Mark::WaitTimedOut);
                self.note_if(is_resolved && after.signal.is_some() && after.paused, Mark::SignalWhilePaused);
                self.note_if(before.step < after.step && after.signal.is_some(), Mark::SignalTakenFromBuffer);
                self.note_if(
                    before.step == after.step && after.attempts.lost > before.attempts.lost,
                    Mark::DeliveryLost,
                );
                self.note_if(before.step + 1 < after.step, Mark::StepsLandedTogether);
                let backs_off = matches!(after.phase, Phase::BackingOff { .. });
                self.note_if(backs_off && !matches!(before.phase, Phase::BackingOff { .. }), Mark::AttemptFailed);
            }
            _ => {}
        }
    }

    fn run_ended(&mut self, before: &ActiveRun, after: &EndedRun, landed: &Landed, store: &Committed) {
        self.seen.ended.insert(after.incarnation, self.seen.processes);
        let is_last = before.attempts.used + 1 >= store.max_attempts(after.incarnation);
        self.note_if(after.status == Status::Failed && is_last, Mark::AttemptsUsedUp);
        let is_taken = after.error.as_deref().is_some_and(|error| error.ends_with("has a waiter already"));
        self.note_if(is_taken, Mark::WaitOnTakenKey);
        let by_runner = landed.changes.iter().any(|change| matches!(change.row, Row::Log { .. }));
        let is_untouched = before.step == 0 && before.cancel.is_none() && !by_runner;
        self.note_if(after.status == Status::Cancelled && is_untouched, Mark::CancelledBeforeItsStart);
    }

    pub(crate) fn told(&mut self, event: &Event) {
        match event {
            Event::Answered(number, op, answer) => {
                self.answered(op, answer);
                self.answered_beside(*number, answer);
            }
            Event::Asked(_, Op::Redrive { run_id, .. }) => drop(self.seen.redrives.insert(run_id.clone())),
            Event::Asked(number, op) => self.seen.meanwhile.asked(*number, op),
            Event::Started(attempt) => {
                let process = self.seen.processes;
                let before = self.seen.latest.insert((attempt.call, attempt.step), (attempt.number, process));
                let is_again = before.is_some_and(|(_, before)| before == process) && attempt.attempts == 1;
                self.note_if(is_again && attempt.may_run_ahead, Mark::StepUndone);
            }
            Event::Synced(attempt) => self.note_if(attempt.may_run_ahead, Mark::Synced),
            Event::Left(attempt, _) => {
                let latest = self.seen.latest.get(&(attempt.call, attempt.step)).map(|(number, _)| *number);
                self.note_if(latest != Some(attempt.number), Mark::LateAnswer);
            }
            Event::Remembered { attempt, value, .. } => self.note_if(attempt.number != *value, Mark::MemoSeenAgain),
            Event::Told(_, end) => {
                let times = self.seen.told.entry(end.call).or_default();
                *times += 1;
                let is_again = *times > 1;
                self.note_if(is_again, Mark::HookCalledAgain);
            }
            Event::Process(process) => self.process(*process),
            _ => {}
        }
    }

    fn process(&mut self, process: Process) {
        match process {
            Process::Begins => self.seen.processes += 1,
            Process::Dies => self.note(Mark::ProcessDied),
            Process::Killed => self.note(Mark::ProcessKilled),
            Process::ShutDown => self.note(Mark::ShutDown),
            Process::Fenced => self.note(Mark::ProcessFenced),
            Process::LeftRunning => {}
        }
    }

    /// What an answer may have missed.
    fn answered_beside(&mut self, number: u64, answer: &Answer) {
        let is_disturbed = self.seen.meanwhile.answered(number);
        match answer {
            Answer::Cleared(1..) => self.note_if(is_disturbed, Mark::SignalSentDuringClear),
            Answer::Listed(_) | Answer::Counted(_) => self.note_if(is_disturbed, Mark::RunMovedDuringListing),
            _ => {}
        }
    }

    fn answered(&mut self, op: &Op, answer: &Answer) {
        let mark = match (op, answer) {
            (_, Answer::Known) => Mark::SubmittedTwice,
            (Op::Submit { .. }, Answer::Refused(_)) => Mark::InputMismatch,
            (_, Answer::Delivered) => Mark::SignalDelivered,
            (_, Answer::Buffered) => Mark::SignalBuffered,
            (_, Answer::Duplicate) => Mark::SignalTwice,
            (_, Answer::Ended) => Mark::CancelledAtOnce,
            (_, Answer::Requested) => Mark::CancelledWhileRunning,
            (_, Answer::Paused) => Mark::Paused,
            (_, Answer::Finishing) => Mark::PausedWhileRunning,
            (_, Answer::Resumed) => Mark::Resumed,
            (_, Answer::Cleared(1..)) => Mark::SignalsCleared,
            (_, Answer::Kept(signals)) if !signals.is_empty() => Mark::SignalsShown,
            (Op::List(filter, _), Answer::Listed(runs)) if !runs.is_empty() => match filter.header {
                Some(_) => Mark::RunsListedByHeader,
                None => Mark::RunsListed,
            },
            (_, Answer::Counted(1..)) => Mark::RunsCounted,
            (_, Answer::Forgotten) => Mark::Forgotten,
            (Op::Forget(_), Answer::Refused(_) | Answer::Failed(_)) => Mark::ForgottenTooEarly,
            _ => return,
        };
        self.note(mark);
    }
}

/// Whether `row` lists the run among those that have ended.
fn is_place_of_ended(row: &Row, run_id: &str) -> bool {
    match row {
        Row::Stored(StoredKey::Indexed(Index::State(RunState::Ended(_)), entry)) => entry.run_id.as_str() == run_id,
        _ => false,
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Mark::ALL.iter().try_for_each(|mark| writeln!(f, "{:>10}  {mark:?}", self.count(*mark)))
    }
}

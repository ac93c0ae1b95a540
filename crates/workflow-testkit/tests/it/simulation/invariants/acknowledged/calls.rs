//! What users have asked, and from which commit to which each call may have acted.

use std::collections::BTreeMap;

use crate::simulation::answer::Answer;
use crate::simulation::op::Op;

/// The calls so far.
#[derive(Default)]
pub(super) struct Calls {
    /// The last commit before each call.
    asked: BTreeMap<u64, u64>,
    /// The input of each submission.
    inputs: BTreeMap<u64, u64>,
    pub(super) forgets: Wishes,
    pub(super) resumes: Wishes,
    pub(super) clears: Wishes,
}

/// The calls of one kind, by run or correlation key.
#[derive(Default)]
pub(super) struct Wishes(BTreeMap<String, Wish>);

#[derive(Default)]
struct Wish {
    /// Calls that were not answered, or not clearly: they may act for as long as their process does.
    open: i64,
    /// The last commit before the latest answer.
    last: u64,
}

impl Calls {
    pub(super) fn ask(&mut self, number: u64, op: &Op, landed: u64) {
        self.asked.insert(number, landed);
        if let Op::Submit { input, .. } = op {
            self.inputs.insert(number, *input);
        }
        if let Some((wishes, of)) = self.wishes(op) {
            wishes.0.entry(of.clone()).or_default().open += 1;
        }
    }

    pub(super) fn answer(&mut self, op: &Op, answer: &Answer, landed: u64) {
        if matches!(answer, Answer::Failed(_)) {
            return;
        }
        if let Some((wishes, of)) = self.wishes(op) {
            let wish = wishes.0.entry(of.clone()).or_default();
            wish.open -= 1;
            wish.last = landed;
        }
    }

    /// The process that was asked has lost its queue, after commit number `landed`: no call acts any more.
    pub(super) fn give_up(&mut self, landed: u64) {
        for wishes in [&mut self.forgets, &mut self.resumes, &mut self.clears] {
            for wish in wishes.0.values_mut().filter(|wish| wish.open > 0) {
                *wish = Wish { open: 0, last: landed };
            }
        }
    }

    /// The last commit before call `number`.
    pub(super) fn asked_at(&self, number: u64) -> u64 {
        self.asked.get(&number).copied().unwrap_or_default()
    }

    /// The input of the submission with this number.
    pub(super) fn input(&self, number: u64) -> Option<u64> {
        self.inputs.get(&number).copied()
    }

    fn wishes<'a>(&mut self, op: &'a Op) -> Option<(&mut Wishes, &'a String)> {
        match op {
            Op::Forget(run_id) => Some((&mut self.forgets, run_id)),
            Op::Resume(run_id) => Some((&mut self.resumes, run_id)),
            Op::Clear(key) => Some((&mut self.clears, key)),
            _ => None,
        }
    }
}

impl Wishes {
    /// Whether a call for this may have acted after commit number `since`, or lets others act for it.
    pub(super) fn may_act(&self, of: &str, since: u64) -> bool {
        self.0.get(of).is_some_and(|wish| wish.open > 0 || wish.last >= since)
    }

    /// Whether a call for this may act now.
    pub(super) fn is_open(&self, of: &str) -> bool {
        self.0.get(of).is_some_and(|wish| wish.open > 0)
    }

    /// Whether the one call for this that is being answered was the only one that may have acted since commit number
    /// `asked`.
    pub(super) fn is_alone(&self, of: &str, asked: u64) -> bool {
        self.0.get(of).is_some_and(|wish| wish.open == 1 && wish.last <= asked)
    }
}

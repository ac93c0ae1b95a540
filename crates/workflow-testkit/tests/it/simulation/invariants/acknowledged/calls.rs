//! What users have asked, and from which commit to which each call may have acted.

use std::collections::BTreeMap;

use crate::simulation::op::{Answer, Op};

/// The calls so far.
#[derive(Default)]
pub(super) struct Calls {
    /// The last commit before each call.
    asked: BTreeMap<u64, u64>,
    /// The input of each submission.
    inputs: BTreeMap<u64, u64>,
    pub(super) forgets: Wishes,
    pub(super) resumes: Wishes,
}

/// The calls of one kind, by run.
#[derive(Default)]
pub(super) struct Wishes(BTreeMap<String, Wish>);

#[derive(Default)]
struct Wish {
    /// Calls that were not answered, or not clearly: they may act at any time.
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
        if let Some((wishes, run_id)) = self.wishes(op) {
            wishes.0.entry(run_id.clone()).or_default().open += 1;
        }
    }

    pub(super) fn answer(&mut self, op: &Op, answer: &Answer, landed: u64) {
        if matches!(answer, Answer::Failed(_)) {
            return;
        }
        if let Some((wishes, run_id)) = self.wishes(op) {
            let wish = wishes.0.entry(run_id.clone()).or_default();
            wish.open -= 1;
            wish.last = landed;
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
            _ => None,
        }
    }
}

impl Wishes {
    /// Whether a call for `run_id` may have acted after commit number `since`.
    pub(super) fn may_act(&self, run_id: &str, since: u64) -> bool {
        self.0.get(run_id).is_some_and(|wish| wish.open > 0 || wish.last >= since)
    }
}

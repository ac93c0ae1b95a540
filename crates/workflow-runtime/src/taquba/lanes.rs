//! Whose turn it is to claim from a queue, and how many jobs it may hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::timers::Reading;

/// The state of claiming, by queue name.
#[derive(Default)]
pub(super) struct Lanes(Mutex<BTreeMap<String, Arc<Lane>>>);

/// The state of claiming from one queue name.
pub(super) struct Lane {
    /// Claims of one queue run one at a time: a losing claim destroys the winner's lease.
    pub(super) turn: tokio::sync::Mutex<Turn>,
    ready: Mutex<Ready>,
}

/// What only the one may see whose turn it is.
#[derive(Default)]
pub(super) struct Turn {
    /// The reading of scheduled jobs that goes on.
    pub(super) reading: Option<Reading>,
}

/// How many jobs are left before anyone has looked: no count of claims brings it to zero.
const UNKNOWN: usize = usize::MAX / 2;

/// An estimate of the ready jobs, from what this process does. It is too high rather than too low.
#[derive(Clone, Copy)]
struct Ready {
    /// [`UNKNOWN`], less what was claimed, until a claim empties the queue.
    left: usize,
    /// Those among them whose commit has not ended: a claim may not see them yet.
    landing: usize,
    /// How many were ever counted.
    arrived: u64,
}

/// The estimate as a claim begins.
pub(super) struct BeforeClaim(Ready);

impl Lanes {
    /// The lane of `queue`.
    pub(super) fn of(&self, queue: &str) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get(queue) {
            Some(lane) => lane.clone(),
            None => lanes.entry(queue.to_owned()).or_default().clone(),
        }
    }
}

impl Default for Lane {
    fn default() -> Self {
        let ready = Ready { left: UNKNOWN, landing: 0, arrived: 0 };
        Self { turn: tokio::sync::Mutex::default(), ready: Mutex::new(ready) }
    }
}

impl Lane {
    /// A job comes with a commit that begins now.
    pub(super) fn take_off(&self) {
        let mut ready = self.lock();
        ready.left += 1;
        ready.landing += 1;
        ready.arrived += 1;
    }

    /// The commit has ended; the job is not there if it was refused.
    pub(super) fn land(&self, refused: bool) {
        let mut ready = self.lock();
        ready.landing = ready.landing.saturating_sub(1);
        if refused {
            ready.left = ready.left.saturating_sub(1);
        }
    }

    /// A job has come back.
    pub(super) fn come_back(&self) {
        let mut ready = self.lock();
        ready.left += 1;
        ready.arrived += 1;
    }

    /// A claim begins to look.
    pub(super) fn before_claim(&self) -> BeforeClaim {
        BeforeClaim(*self.lock())
    }

    /// The claim took so many jobs, and all that it saw if it `emptied` the queue.
    pub(super) fn claimed(&self, before: &BeforeClaim, taken: usize, emptied: bool) {
        let mut ready = self.lock();
        ready.left = ready.left.saturating_sub(taken);
        if emptied {
            let unseen = u64::try_from(before.0.landing).unwrap_or(u64::MAX) + (ready.arrived - before.0.arrived);
            ready.left = ready.left.min(usize::try_from(unseen).unwrap_or(usize::MAX));
        }
    }

    /// Whether jobs may be left.
    pub(super) fn may_have_more(&self) -> bool {
        self.lock().left > 0
    }

    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane that a claim has found empty.
    fn emptied() -> Lane {
        let lane = Lane::default();
        assert!(lane.may_have_more(), "nobody has looked yet");
        lane.claimed(&lane.before_claim(), 0, true);
        assert!(!lane.may_have_more());
        lane
    }

    #[test]
    fn full_claims_do_not_tell_what_earlier_processes_left() {
        let lane = Lane::default();
        for _ in 0..100 {
            lane.claimed(&lane.before_claim(), 64, false);
            assert!(lane.may_have_more());
        }
    }

    #[test]
    fn a_claim_of_all_that_came_leaves_nothing() {
        let lane = emptied();
        lane.take_off();
        lane.take_off();
        lane.land(false);
        lane.claimed(&lane.before_claim(), 1, false);
        assert!(lane.may_have_more());
        lane.claimed(&lane.before_claim(), 1, false);
        assert!(!lane.may_have_more());
        lane.land(false);
        assert!(!lane.may_have_more());
    }

    #[test]
    fn a_job_that_comes_behind_the_back_of_a_claim_is_left() {
        for lands_in_time in [false, true] {
            let lane = emptied();
            lane.take_off();
            let claim = lane.before_claim();
            if lands_in_time {
                lane.land(false);
            }
            lane.claimed(&claim, 0, true);
            assert!(lane.may_have_more());
            let lane = emptied();
            let claim = lane.before_claim();
            lane.take_off();
            if lands_in_time {
                lane.land(false);
            }
            lane.claimed(&claim, 0, true);
            assert!(lane.may_have_more());
        }
    }

    #[test]
    fn a_refused_commit_brings_nothing_and_a_lost_lease_brings_a_job_back() {
        let lane = emptied();
        lane.take_off();
        lane.land(true);
        assert!(!lane.may_have_more());
        lane.come_back();
        assert!(lane.may_have_more());
    }
}

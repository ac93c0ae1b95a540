//! The world outside, as far as it shows: what was done there, and how often.

use std::fmt;

use super::Sim;
use super::log::Event;

/// Tells what steps and hooks do outside: charges, mails, calls of other systems. It outlives the process that does it,
/// and an exploration compares it with what is done when nothing fails.
///
/// Fakes hold a clone and tell each call before it returns. One that knows a repetition by its idempotency key tells
/// [`does_for`](Self::does_for) that key, so that the repetition does not count.
#[derive(Clone)]
pub struct Outside {
    sim: Sim,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("done", &self.done()).finish()
    }
}

impl Outside {
    pub(super) fn new(sim: Sim) -> Self {
        Self { sim }
    }

    /// `what` is done. The process may die right before, and right after.
    pub async fn does(&self, what: impl fmt::Display) {
        let what = what.to_string();
        self.sim.world.points.pass(&self.sim, || format!("before {what}")).await;
        let times = self.done().iter().filter(|done| **done == what).count();
        self.sim.world.log.tell(Event::Outside(what.clone(), times + 1));
        self.sim.world.points.pass(&self.sim, || format!("after {what}")).await;
    }

    /// `what` is done for `key`, unless it has been: then it is a repetition that the other system knows. Says whether
    /// it was done now.
    pub async fn does_for(&self, key: &str, what: impl fmt::Display) -> bool {
        let what = format!("{what} ({key})");
        let is_new = !self.done().contains(&what);
        if is_new {
            self.does(what).await;
        } else {
            self.sim.world.points.pass(&self.sim, || format!("repeating {what}")).await;
        }
        is_new
    }

    /// What was done so far, in order.
    pub fn done(&self) -> Vec<String> {
        let events = self.sim.world.log.events();
        let done = events.into_iter().filter_map(|event| match event {
            Event::Outside(what, _) => Some(what),
            _ => None,
        });
        done.collect()
    }
}

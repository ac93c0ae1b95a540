//! The world outside, as far as it shows: what was done there, and how often.

use std::fmt;
use std::sync::Arc;

use super::Sim;
use super::log::{Event, Log};

/// Tells what steps and hooks do outside: charges, mails, calls of other systems. It outlives the process that does it,
/// and an exploration compares it with what is done when nothing fails.
///
/// Fakes hold a clone and tell each call before it returns. One that knows a repetition by its idempotency key tells
/// [`does_for`](Self::does_for) that key, so that the repetition does not count.
///
/// The process may die right before and right after a deed. So what a fake remembers of its own is changed too early or too
/// late; what it asks [`done`](Self::done) is always right.
///
/// A scenario has the one of its [`Sim`], the test of a single step the one of its
/// [`StepFixture`](crate::StepFixture): the same fakes work in both.
#[derive(Clone)]
pub struct Outside(World);

#[derive(Clone)]
enum World {
    /// Whoever does something there may die.
    Simulated(Sim),
    Detached(Arc<Log>),
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("done", &self.done()).finish()
    }
}

impl Outside {
    pub(super) fn new(sim: Sim) -> Self {
        Self(World::Simulated(sim))
    }

    /// A world of its own, where nothing has been done and nobody dies.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let bank = workflow_testkit::Outside::detached();
    /// bank.does("charge 17").await;
    /// assert!(bank.does_for("order-1", "refund 17").await);
    /// assert!(!bank.does_for("order-1", "refund 17").await); // the bank knows the key
    /// assert_eq!(bank.done(), ["charge 17", "refund 17 (order-1)"]);
    /// # }
    /// ```
    pub fn detached() -> Self {
        Self(World::Detached(Arc::default()))
    }

    /// `what` is done. In a simulation, the process may die right before, and right after.
    pub async fn does(&self, what: impl fmt::Display) {
        let what = what.to_string();
        self.pass(|| format!("before {what}")).await;
        let times = self.done().iter().filter(|done| **done == what).count();
        self.log().tell(Event::Outside(what.clone(), times + 1));
        self.pass(|| format!("after {what}")).await;
    }

    /// `what` is done for `key`, unless it has been: then it is a repetition that the other system knows. Says whether
    /// it was done now.
    pub async fn does_for(&self, key: &str, what: impl fmt::Display) -> bool {
        let what = format!("{what} ({key})");
        let is_new = !self.done().contains(&what);
        if is_new {
            self.does(what).await;
        } else {
            self.pass(|| format!("repeating {what}")).await;
        }
        is_new
    }

    /// What was done so far, in order.
    pub fn done(&self) -> Vec<String> {
        let events = self.log().events().into_iter();
        let done = events.filter_map(|event| match event {
            Event::Outside(what, _) => Some(what),
            _ => None,
        });
        done.collect()
    }

    fn log(&self) -> &Log {
        match &self.0 {
            World::Simulated(sim) => &sim.world.log,
            World::Detached(log) => log,
        }
    }

    /// A point at which the process may die.
    async fn pass(&self, what: impl FnOnce() -> String) {
        match &self.0 {
            World::Simulated(sim) => sim.world.points.pass(sim, what).await,
            World::Detached(_) => {}
        }
    }
}

//! The points of an execution, and the faults that are injected at some of them.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Sim;
use super::log::Event;

/// What happens at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The process dies.
    Crash,
    /// Every lease ends.
    LeaseLost,
}

/// A fault at the point with this number, counted from the start of the execution or from the fault before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Injection {
    pub(crate) at: u64,
    pub(crate) fault: Fault,
}

/// A point that was reached without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// A step or hook was being executed.
    pub(crate) in_user_code: bool,
}

/// Counts the points of an execution.
pub(crate) struct Points {
    state: Mutex<State>,
    dead: watch::Sender<bool>,
}

struct State {
    /// Points since the last fault.
    passed: u64,
    /// Those of the execution so far that met no fault.
    reached: Vec<Reached>,
    injections: VecDeque<Injection>,
    in_user_code: u32,
}

impl Points {
    pub(super) fn new(injections: Vec<Injection>) -> Self {
        let state = State { passed: 0, reached: Vec::new(), injections: injections.into(), in_user_code: 0 };
        Self { state: Mutex::new(state), dead: watch::Sender::new(false) }
    }

    /// Passes a point, unless the process dies there.
    pub(super) async fn pass(&self, sim: &Sim, what: impl FnOnce() -> String) {
        self.pass_now(sim, what);
        if *self.dead.borrow() {
            pending::<()>().await;
        }
    }

    /// Passes a point where nothing can wait. Says whether the process is dead.
    pub(super) fn pass_now(&self, sim: &Sim, what: impl FnOnce() -> String) -> bool {
        if *self.dead.borrow() {
            return true;
        }
        let fault = {
            let mut state = self.lock();
            let fault = state.injections.front().filter(|next| next.at == state.passed).map(|next| next.fault);
            state.passed += 1;
            match fault {
                Some(_) => {
                    state.injections.pop_front();
                    state.passed = 0;
                }
                None => {
                    let in_user_code = state.in_user_code > 0;
                    state.reached.push(Reached { in_user_code });
                }
            }
            fault
        };
        match fault {
            None => {}
            Some(Fault::LeaseLost) => {
                sim.world.log.tell(Event::Fault(Fault::LeaseLost, what()));
                sim.world.disk.end_leases();
            }
            Some(Fault::Crash) => {
                sim.world.log.tell(Event::Fault(Fault::Crash, what()));
                self.dead.send_replace(true);
            }
        }
        *self.dead.borrow()
    }

    /// Injects `fault` at the point that is passed after so many more, in place of what was to be injected.
    #[cfg(feature = "property")]
    pub(crate) fn arm(&self, after: u64, fault: Fault) {
        let mut state = self.lock();
        let at = state.passed.saturating_add(after);
        state.injections = VecDeque::from([Injection { at, fault }]);
    }

    /// Injects nothing any more.
    #[cfg(feature = "property")]
    pub(crate) fn disarm(&self) {
        self.lock().injections.clear();
    }

    pub(super) fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// How many points were passed.
    pub(super) fn count(&self) -> usize {
        self.lock().reached.len()
    }

    /// The user's code runs until what is returned is dropped.
    pub(super) fn enter_user_code(&self) -> InUserCode<'_> {
        self.lock().in_user_code += 1;
        InUserCode(self)
    }

    /// Returns when the process dies.
    pub(crate) async fn death(&self) {
        let mut dead = self.dead.subscribe();
        // The sender lives as long as this.
        let _ = dead.wait_for(|dead| *dead).await;
    }

    /// Another process begins: whether there is one to come after this.
    pub(crate) fn revive(&self) {
        self.dead.send_replace(false);
        self.lock().in_user_code = 0;
    }

    /// The points that met no fault.
    pub(crate) fn reached(&self) -> Vec<Reached> {
        self.lock().reached.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Points::enter_user_code`].
pub(super) struct InUserCode<'a>(&'a Points);

impl Drop for InUserCode<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_user_code = state.in_user_code.saturating_sub(1);
    }
}

//! Calls that are under way, and what happens beside them.

use std::collections::BTreeMap;

use crate::simulation::op::Op;

/// The calls whose answer depends on what happens before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meanwhile(BTreeMap<u64, Call>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    about: About,
    is_disturbed: bool,
}

/// What would disturb a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    /// A signal for this key.
    Key(String),
    /// A run that leaves its state.
    Runs,
}

impl Meanwhile {
    pub(super) fn asked(&mut self, number: u64, op: &Op) {
        let about = match op {
            Op::Clear(key) => About::Key(key.clone()),
            Op::List(..) | Op::Count(_) => About::Runs,
            _ => return,
        };
        self.0.insert(number, Call { about, is_disturbed: false });
    }

    pub(super) fn signal_came(&mut self, key: &str) {
        self.disturb(|about| matches!(about, About::Key(of) if of == key));
    }

    pub(super) fn run_moved(&mut self) {
        self.disturb(|about| *about == About::Runs);
    }

    /// Whether something has happened since the call with this number was asked that its answer may have missed.
    pub(super) fn answered(&mut self, number: u64) -> bool {
        self.0.remove(&number).is_some_and(|call| call.is_disturbed)
    }

    fn disturb(&mut self, is_about: impl Fn(&About) -> bool) {
        self.0.values_mut().filter(|call| is_about(&call.about)).for_each(|call| call.is_disturbed = true);
    }
}

//! The systems of others: a hotel, an airline, a mail server. What they remember is what was done there, so that a crash
//! of ours never falls between the two.

use workflow_runtime::StepError;
use workflow_testkit::Outside;

/// A system of somebody else.
#[derive(Clone)]
pub(crate) struct Partner {
    pub(crate) outside: Outside,
    /// How many there are to reserve.
    pub(crate) places: usize,
    /// Whether it knows a repetition by its key.
    pub(crate) knows_repetitions: bool,
}

impl Partner {
    pub(crate) fn new(outside: Outside, places: usize) -> Self {
        Self { outside, places, knows_repetitions: true }
    }

    /// Whether something is reserved; `false` when there is nothing left.
    pub(crate) async fn reserve(&self, key: &str, what: &str) -> Result<bool, StepError> {
        let reservation = format!("{what} reserved");
        if !self.knows_repetitions {
            self.outside.does(reservation).await;
            return Ok(true);
        }
        let done = self.outside.done();
        let is_known = done.contains(&format!("{reservation} ({key})"));
        let taken = done.iter().filter(|done| done.starts_with(&reservation)).count();
        if !is_known && taken >= self.places {
            return Ok(false);
        }
        self.outside.does_for(key, reservation).await;
        Ok(true)
    }

    pub(crate) async fn give_back(&self, key: &str, what: &str) {
        self.outside.does_for(key, format!("{what} given back")).await;
    }

    pub(crate) async fn mail(&self, key: &str, text: &str) {
        self.outside.does_for(key, format!("mail: {text}")).await;
    }
}

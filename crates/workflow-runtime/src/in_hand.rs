//! What this process has in hand: the runs whose rows or objects it may be about to write. Whoever removes a run leaves
//! alone what is busy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tracing::Instrument;
use workflow_core::{Incarnation, RunId};
use workflow_memo::Spawn;

/// The submissions, deliveries and puts in hand, by run and incarnation. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct InHand(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    /// The last of some run was let go.
    let_go: Notify,
}

type Counts = BTreeMap<(RunId, Incarnation), usize>;

/// Something in hand, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held {
    in_hand: InHand,
    run: (RunId, Incarnation),
}

impl InHand {
    /// Takes something of this incarnation of a run in hand.
    pub(crate) fn enter(&self, run_id: &RunId, incarnation: Incarnation) -> Held {
        let run = (run_id.clone(), incarnation);
        *self.lock().entry(run.clone()).or_default() += 1;
        Held { in_hand: self.clone(), run }
    }

    /// Whether anything of this incarnation of a run is in hand.
    pub(crate) fn is_busy(&self, run_id: &RunId, incarnation: Incarnation) -> bool {
        self.lock().contains_key(&(run_id.clone(), incarnation))
    }

    /// Waits until nothing of this incarnation of a run is in hand.
    pub(crate) async fn until_let_go(&self, run_id: &RunId, incarnation: Incarnation) {
        loop {
            let let_go = self.0.let_go.notified();
            if !self.is_busy(run_id, incarnation) {
                return;
            }
            let_go.await;
        }
    }

    /// Runs the memo's puts of this incarnation of a run, each in a task of its own and in hand to its end. It is in
    /// hand before it looks whether its attempt has ended: so, once all attempts have and nothing is in hand, no put
    /// begins any more.
    pub(crate) fn spawn(&self, run_id: &RunId, incarnation: Incarnation) -> Spawn {
        let (in_hand, run_id) = (self.clone(), run_id.clone());
        Spawn::new(move |work| {
            let held = in_hand.enter(&run_id, incarnation);
            let task = async move {
                work.await;
                drop(held);
            };
            let task = tokio::spawn(task.in_current_span());
            Box::pin(async move { drop(task.await) })
        })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut counts = self.in_hand.lock();
        if let Some(count) = counts.get_mut(&self.run) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.run);
                self.in_hand.0.let_go.notify_waiters();
            }
        }
    }
}

#[cfg(test)]
mod tests;

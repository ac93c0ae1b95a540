//! Slots bound how much of the user's code runs at once; suspects take turns.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::port::Clock;

/// The slots of one lane.
#[derive(Clone)]
pub(crate) struct Slots(Arc<Semaphore>);

/// A slot, taken or given back.
pub(crate) struct Slot {
    slots: Slots,
    permit: Option<OwnedSemaphorePermit>,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Whether a slot is free.
    pub(crate) fn any_free(&self) -> bool {
        self.0.available_permits() > 0
    }

    /// Waits for one slot and takes as many more as are free, up to `max` in all.
    pub(crate) async fn take(&self, max: usize) -> Vec<Slot> {
        let first = self.0.clone().acquire_owned().await.expect("the semaphore is never closed");
        let mut slots = vec![self.slot(first)];
        while slots.len() < max {
            let Ok(permit) = self.0.clone().try_acquire_owned() else { break };
            slots.push(self.slot(permit));
        }
        slots
    }

    fn slot(&self, permit: OwnedSemaphorePermit) -> Slot {
        Slot { slots: self.clone(), permit: Some(permit) }
    }
}

impl Slot {
    /// Whether another slot of the lane is free.
    pub(crate) fn others_free(&self) -> bool {
        self.slots.any_free()
    }

    /// Gives the slot back. The delivery may go on without one.
    pub(crate) fn release(&mut self) {
        self.permit = None;
    }

    /// Takes a slot again.
    pub(crate) async fn retake(&mut self) {
        if self.permit.is_none() {
            let permit = self.slots.0.clone().acquire_owned().await;
            self.permit = Some(permit.expect("the semaphore is never closed"));
        }
    }
}

/// A suspect's turn: suspects of all workflow runtimes on one async runtime, which is mostly the process's only one, run
/// one at a time, in order of arrival. It ends when it is dropped, or by itself after [`LONGEST_TURN`]: a suspect that
/// never returns must not keep the others from starting for ever.
pub(crate) struct Turn {
    _ends_when_dropped: DropGuard,
}

/// The longest time for which one suspect keeps the others waiting.
const LONGEST_TURN: Duration = Duration::from_secs(300);

/// The turns of each async runtime, for as long as somebody waits for one or has it. Simulations in one test process do
/// not keep each other waiting.
static TURNS: LazyLock<Mutex<HashMap<Id, Weak<Semaphore>>>> = LazyLock::new(Mutex::default);

/// The turns of the async runtime that this runs on.
fn turns() -> Arc<Semaphore> {
    let runtime = Handle::current().id();
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = turns.get(&runtime).and_then(Weak::upgrade) {
        return known;
    }
    turns.retain(|_, turns| turns.strong_count() > 0);
    let new = Arc::new(Semaphore::new(1));
    turns.insert(runtime, Arc::downgrade(&new));
    new
}

/// Waits for a suspect's turn, without a slot, and takes a slot again.
pub(crate) async fn next_turn(slot: &mut Slot, clock: Arc<dyn Clock>) -> Turn {
    slot.release();
    let permit = turns().acquire_owned().await.expect("the semaphore is never closed");
    slot.retake().await;
    let over = CancellationToken::new();
    let dropped = over.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = dropped.cancelled() => {}
            () = clock.sleep(LONGEST_TURN) => {}
        }
        drop(permit);
    });
    Turn { _ends_when_dropped: over.drop_guard() }
}

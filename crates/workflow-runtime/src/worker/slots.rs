//! Slots bound how much of the user's code runs at once; suspects take turns.

use std::sync::Arc;
use std::time::Duration;

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

/// A suspect's turn: suspects of the process, of all runtimes together, run one at a time, in order of arrival. It ends
/// when it is dropped, or by itself after [`LONGEST_TURN`]: a suspect that never returns must not keep the others from
/// starting for ever.
pub(crate) struct Turn {
    _ends_when_dropped: DropGuard,
}

/// The longest time for which one suspect keeps the others waiting.
const LONGEST_TURN: Duration = Duration::from_secs(300);

/// Waits for a suspect's turn, without a slot, and takes a slot again.
pub(crate) async fn next_turn(slot: &mut Slot, clock: Arc<dyn Clock>) -> Turn {
    static TURNS: Semaphore = Semaphore::const_new(1);
    slot.release();
    let permit = TURNS.acquire().await.expect("the semaphore is never closed");
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

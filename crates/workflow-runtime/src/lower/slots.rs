//! Lowering what happens to the slots of correlation keys.

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, Run, Slot, Transition, Waiter};
use workflow_effects::{Commit, encode_slot};

use super::Lowering;
use crate::signals::GatheredSlot;

impl Lowering<'_> {
    /// Enters the step of `transition` as the waiter of `keys`.
    pub(super) fn register_waiter(
        &self,
        commit: &mut Commit,
        transition: &Transition,
        incarnation: Incarnation,
        keys: &[CorrelationKey],
    ) {
        let Run::Active(run) = &transition.next else { return };
        for key in keys {
            let waiter = Waiter { run_id: self.run_id.clone(), incarnation, step: run.step };
            self.change_slot(commit, key, |slot| slot.registered(waiter));
        }
    }

    /// Frees `keys`, which the run waited for.
    pub(super) fn free_waiter(&self, commit: &mut Commit, keys: &[CorrelationKey]) {
        for key in keys {
            let is_ours = |slot: &Slot| slot.waiter.as_ref().is_some_and(|waiter| waiter.run_id == *self.run_id);
            if self.slots.get(key).is_some_and(|gathered| is_ours(&gathered.slot)) {
                self.change_slot(commit, key, Slot::freed);
            }
        }
    }

    /// Takes the oldest buffered signal of `key` away, with all rows that there are of it but its idempotency id's.
    pub(super) fn take_signal(&self, commit: &mut Commit, key: &CorrelationKey) {
        let Some((number, oldest)) = self.slots.get(key).and_then(|gathered| gathered.oldest.as_ref()) else { return };
        commit.deletes.push(self.keys.buffered_signal(key, *number));
        if oldest.idempotency_id.is_none() {
            commit.deletes.push(self.keys.signal_expiry(oldest.expires_at, oldest.id));
        }
        self.change_slot(commit, key, |slot| slot.without_oldest(1, self.drawn));
    }

    fn change_slot(&self, commit: &mut Commit, key: &CorrelationKey, change: impl FnOnce(&Slot) -> Slot) {
        let gathered = self.slots.get(key).cloned().unwrap_or_default();
        write_slot(commit, self.keys.slot(key), &gathered, &change(&gathered.slot));
    }
}

/// Lets `commit` turn the slot that was `gathered` into `next`.
pub(crate) fn write_slot(commit: &mut Commit, key: Bytes, gathered: &GatheredSlot, next: &Slot) {
    commit.expect.push((key.clone(), gathered.bytes.clone()));
    match encode_slot(next) {
        Some(bytes) => commit.puts.push((key, bytes)),
        None => commit.deletes.push(key),
    }
}

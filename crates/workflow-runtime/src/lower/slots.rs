//! Lowering what happens to the slots of correlation keys.

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, Run, Slot, Transition, Waiter};
use workflow_effects::{BufferedSignal, Commit, KeySpace, encode_slot};

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

    /// Takes the oldest buffered signal of `key` away, see [`delete_signal`].
    pub(super) fn take_signal(&self, commit: &mut Commit, key: &CorrelationKey) {
        let Some((number, oldest)) = self.slots.get(key).and_then(|gathered| gathered.oldest.as_ref()) else { return };
        delete_signal(commit, self.keys, key, *number, oldest);
        self.change_slot(commit, key, |slot| slot.without_oldest(1, self.drawn));
    }

    fn change_slot(&self, commit: &mut Commit, key: &CorrelationKey, change: impl FnOnce(&Slot) -> Slot) {
        let gathered = self.slots.get(key).cloned().unwrap_or_default();
        write_slot(commit, self.keys.slot(key), &gathered, &change(&gathered.slot));
    }
}

/// Lets `commit` delete a buffered signal, with all rows that there are of it but its idempotency id's, which is
/// remembered for as long as it would have been.
pub(crate) fn delete_signal(
    commit: &mut Commit,
    keys: &KeySpace,
    key: &CorrelationKey,
    number: u64,
    signal: &BufferedSignal,
) {
    commit.deletes.push(keys.buffered_signal(key, number));
    if signal.idempotency_id.is_none() {
        commit.deletes.push(keys.signal_expiry(signal.expires_at, signal.id));
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

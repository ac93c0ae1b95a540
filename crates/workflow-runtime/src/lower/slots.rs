//! Lowering what happens to the slots of correlation keys.

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, Run, SignalId, Slot, Transition, Waiter};
use workflow_effects::{
    BufferedSignal, Commit, KeySpace, SignalObjectsRow, SignalObjectsState, encode_signal_objects_row, encode_slot,
};

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
            self.change_slot(commit, key, |slot| slot.registered(waiter, self.drawn));
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
    pub(super) fn take_signal(&self, commit: &mut Commit, incarnation: Incarnation, key: &CorrelationKey) {
        let Some(gathered) = self.slots.get(key) else { return };
        let Some((number, oldest)) = &gathered.oldest else { return };
        delete_signal(commit, self.keys, key, *number, oldest);
        if let Some(row) = &gathered.objects {
            self.own_objects(commit, incarnation, oldest.id, row);
        }
        self.change_slot(commit, key, |slot| slot.without_oldest(1, self.drawn));
    }

    /// Says in the row of a signal's object that the run has it now. The row is not expected: the slot is, so that the
    /// signal is in the buffer and nobody else takes it. Whoever condemns rows sees it there and leaves the row alone;
    /// should he not, this takes the row back, and it is his commit that expects in vain. And two deliveries of a run
    /// that take the same signal put the same bytes, which no two commits may at a key that they expect.
    fn own_objects(&self, commit: &mut Commit, incarnation: Incarnation, id: SignalId, row: &SignalObjectsRow) {
        let state = SignalObjectsState::Owned { run_id: self.run_id.clone(), incarnation };
        let row = SignalObjectsRow { state, ..row.clone() };
        commit.puts.push((self.keys.signal_objects(id), encode_signal_objects_row(&row)));
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

//! Slots of correlation keys: whoever waits there waits, and whatever is buffered there is there.

use bytes::Bytes;
use workflow_core::{CorrelationKey, SignalId, Slot};
use workflow_effects::decode_slot;

use super::ViolationKind;
use super::found::{Found, MAX_KEYS};
use super::reading::Store;
use crate::Result;

impl Store {
    pub(super) async fn look_into_slot(&self, of: &CorrelationKey, key: &Bytes, row: &Bytes) -> Result<Found> {
        let mut found = Found::default();
        let Some(slot) = found.decoded(key, decode_slot(of, Some(row))) else { return Ok(found) };
        if let Some(waiter) = &slot.waiter {
            found = Found::of(&waiter.run_id);
            // It keeps nobody from waiting and no signal from being buffered, so that nobody is stuck. It is left over.
            if !self.reads.still_waits(waiter, of).await? {
                found.report(
                    ViolationKind::Orphan,
                    key,
                    "the slot of a key names it, and it does not wait for the key",
                );
            }
            if slot.buffered() > 0 {
                found.report(ViolationKind::Stuck, key, "it waits for a key for which signals are buffered");
            }
        }
        if slot.is_idle() {
            found.report(ViolationKind::Orphan, key, "the slot of a key holds nothing");
        }
        self.buffer(&mut found, of, &slot).await?;
        Ok(found)
    }

    /// Every signal between the head and the tail of the buffer has its row.
    async fn buffer(&self, found: &mut Found, of: &CorrelationKey, slot: &Slot) -> Result<()> {
        let keys = &self.reads.keys;
        let mut missing = Missing::default();
        let mut expected = slot.head;
        let mut pages = self.pages(keys.buffered_signals_prefix(of));
        if let Some(before) = slot.head.checked_sub(1) {
            pages.skip_to(keys.buffered_signal(of, before));
        }
        while expected < slot.tail
            && let Some(entries) = pages.next().await?
        {
            for number in entries.iter().filter_map(|(key, _)| keys.parse_buffered_signal(key)) {
                missing.add(expected, number.min(slot.tail));
                expected = number.saturating_add(1).max(expected);
            }
        }
        missing.add(expected, slot.tail);
        if missing.count > 0 {
            let first = missing.first.iter().map(|number| keys.buffered_signal(of, *number)).collect();
            // Numbers begin anew with an empty buffer: the last signal tells this one from others.
            let last = slot.last.map_or(0, SignalId::value);
            let detail = format!("{} signals are gone that were buffered before {last:032x}", missing.count);
            found.report_all(ViolationKind::Lost, first, detail);
        }
        Ok(())
    }
}

/// Numbers of signals that are gone.
#[derive(Default)]
struct Missing {
    count: u64,
    first: Vec<u64>,
}

impl Missing {
    fn add(&mut self, from: u64, before: u64) {
        self.count += before.saturating_sub(from);
        self.first.extend((from..before).take(MAX_KEYS.saturating_sub(self.first.len())));
    }
}

//! Buffered signals, idempotency ids, and what tells when they are forgotten.

use bytes::Bytes;
use workflow_core::{CorrelationKey, SignalId};
use workflow_effects::{
    SignalExpiry, decode_buffered_signal, decode_signal_expiry, decode_signal_id, decode_slot, encode_signal_id,
};

use super::ViolationKind;
use super::found::{Found, Remembered};
use super::reading::Store;
use crate::Result;

impl Store {
    /// A buffered signal is in the buffer, whole, and forgotten some day.
    pub(super) async fn look_into_signal(
        &self,
        of: &CorrelationKey,
        number: u64,
        key: &Bytes,
        row: &Bytes,
    ) -> Result<Found> {
        let mut found = Found::default();
        let Some(signal) = found.decoded(key, decode_buffered_signal(of, row)) else { return Ok(found) };
        if !self.may_buffer(of, number).await? {
            let detail = format!("signal {:032x} lies outside of the buffer", signal.id.value());
            found.report(ViolationKind::Orphan, key, detail);
            return Ok(found);
        }
        self.object(&mut found, key, &signal.payload).await?;
        let expiry = self.reads.keys.signal_expiry(signal.expires_at, signal.id);
        // That of an idempotency id is missed where the id is remembered.
        if signal.idempotency_id.is_none() && self.get(&expiry).await?.is_none() {
            found.report(ViolationKind::Orphan, &expiry, "nothing tells when a buffered signal is forgotten");
        }
        Ok(found)
    }

    /// Whether the slot of a key says that a signal of this number is buffered; where it does not read, it may.
    async fn may_buffer(&self, of: &CorrelationKey, number: u64) -> Result<bool> {
        let row = self.get(&self.reads.keys.slot(of)).await?;
        Ok(decode_slot(of, row.as_deref()).map_or(true, |slot| (slot.head..slot.tail).contains(&number)))
    }

    /// That it is forgotten some day is looked up for many ids at once.
    pub(super) fn look_into_id(of: CorrelationKey, id: String, key: &Bytes, row: &Bytes) -> Found {
        let mut found = Found::default();
        let signal = found.decoded(key, decode_signal_id(row));
        found.remembered = signal.map(|signal| Remembered { signal, key: of, id });
        found
    }

    /// What is to be forgotten is there.
    pub(super) async fn look_into_expiry(&self, signal: SignalId, key: &Bytes, row: &Bytes) -> Result<Found> {
        let mut found = Found::default();
        let Some(expiry) = found.decoded(key, decode_signal_expiry(row)) else { return Ok(found) };
        if expiry.signal != signal {
            found.report(ViolationKind::Corrupt, key, "the expiry of a signal is another's");
            return Ok(found);
        }
        match &expiry.idempotency_id {
            Some(id) => {
                let id = self.reads.keys.signal_id(&expiry.key, id);
                let remembered = self.get(&id).await?;
                // One that does not read is reported of the row.
                let is_other = |row: &Bytes| *row != encode_signal_id(signal) && decode_signal_id(row).is_ok();
                if remembered.as_ref().is_none_or(is_other) {
                    found.report(ViolationKind::Lost, &id, "the idempotency id of a signal is forgotten too early");
                }
            }
            None if !self.may_be_buffered(&expiry).await? => {
                found.report(ViolationKind::Orphan, key, "the expiry of a signal that is gone is left");
            }
            None => {}
        }
        Ok(found)
    }

    /// Whether the signal is in the buffer; where its row is gone and must not be, or does not read, it may.
    async fn may_be_buffered(&self, expiry: &SignalExpiry) -> Result<bool> {
        let Some(number) = expiry.number else { return Ok(false) };
        match self.get(&self.reads.keys.buffered_signal(&expiry.key, number)).await? {
            Some(row) => {
                Ok(decode_buffered_signal(&expiry.key, &row).map_or(true, |buffered| buffered.id == expiry.signal))
            }
            None => self.may_buffer(&expiry.key, number).await,
        }
    }
}

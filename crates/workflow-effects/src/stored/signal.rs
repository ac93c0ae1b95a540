//! What is stored of signals: the slot of a key, a buffered signal, and what is to be forgotten when.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{CorrelationKey, Incarnation, RunId, SignalId, Slot, Timestamp, Value, Waiter};

use super::codec;
use super::parts::{MillisV1, ValueV1};
use crate::error::{Error, Result, key_text};

/// A signal that waits for somebody who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferedSignal {
    /// Which.
    pub id: SignalId,
    /// What it carries.
    pub payload: Value,
    /// When it came.
    pub sent_at: Timestamp,
    /// Until when it is kept, at least.
    pub expires_at: Timestamp,
    /// The id by which its sender makes sure that it counts once.
    pub idempotency_id: Option<String>,
}

/// What is to be forgotten of a signal when its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalExpiry {
    /// Which.
    pub signal: SignalId,
    /// The key that it was sent to.
    pub key: CorrelationKey,
    /// Its number in the buffer, if it was buffered.
    pub number: Option<u64>,
    /// Its idempotency id, if it has one.
    pub idempotency_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum StoredSlot {
    V1(SlotV1),
}

#[derive(Serialize, Deserialize)]
struct SlotV1 {
    revision: u64,
    waiter: Option<WaiterV1>,
    head: u64,
    tail: u64,
    last: Option<u128>,
}

#[derive(Serialize, Deserialize)]
struct WaiterV1 {
    run_id: String,
    incarnation: u128,
    step: u32,
}

#[derive(Serialize, Deserialize)]
enum StoredSignal {
    V1(SignalV1),
}

#[derive(Serialize, Deserialize)]
struct SignalV1 {
    id: u128,
    payload: ValueV1,
    sent_at: MillisV1,
    expires_at: MillisV1,
    idempotency_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum StoredExpiry {
    V1(ExpiryV1),
}

#[derive(Serialize, Deserialize)]
struct ExpiryV1 {
    signal: u128,
    key: String,
    number: Option<u64>,
    idempotency_id: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum StoredId {
    /// The signal with this id has been taken.
    V1(IdV1),
}

#[derive(Serialize, Deserialize)]
struct IdV1 {
    signal: u128,
}

/// The bytes of a key's slot; `None` for a slot that is idle, of which nothing is kept.
pub fn encode_slot(slot: &Slot) -> Option<Bytes> {
    if slot.is_idle() {
        return None;
    }
    let Slot { revision, waiter, head, tail, last } = slot;
    let waiter = waiter.as_ref().map(|waiter| WaiterV1 {
        run_id: waiter.run_id.to_string(),
        incarnation: waiter.incarnation.value(),
        step: waiter.step,
    });
    let last = last.map(SignalId::value);
    Some(codec::encode(&StoredSlot::V1(SlotV1 { revision: *revision, waiter, head: *head, tail: *tail, last })))
}

/// The slot of `key` whose row is `bytes`; without a row it is idle.
///
/// # Errors
///
/// [`Error::Corrupt`], naming the key, when the bytes are no slot.
pub fn decode_slot(key: &CorrelationKey, bytes: Option<&[u8]>) -> Result<Slot> {
    let Some(bytes) = bytes else {
        return Ok(Slot::default());
    };
    let what = || format!("the slot of correlation key {}", key_text(key.as_str().as_bytes()));
    let StoredSlot::V1(slot) = codec::decode(bytes, what)?;
    if slot.head > slot.tail {
        return Err(Error::corrupt(what(), "its buffer ends before it begins"));
    }
    let waiter = match slot.waiter {
        Some(waiter) => Some(Waiter {
            run_id: RunId::parse(waiter.run_id).map_err(|error| Error::corrupt(what(), error))?,
            incarnation: Incarnation::new(waiter.incarnation),
            step: waiter.step,
        }),
        None => None,
    };
    let last = slot.last.map(SignalId::new);
    Ok(Slot { revision: slot.revision, waiter, head: slot.head, tail: slot.tail, last })
}

/// The bytes of a buffered signal.
pub fn encode_buffered_signal(signal: &BufferedSignal) -> Bytes {
    let BufferedSignal { id, payload, sent_at, expires_at, idempotency_id } = signal;
    codec::encode(&StoredSignal::V1(SignalV1 {
        id: id.value(),
        payload: payload.into(),
        sent_at: (*sent_at).into(),
        expires_at: (*expires_at).into(),
        idempotency_id: idempotency_id.clone(),
    }))
}

/// The signal buffered for `key` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`], naming the key, when the bytes are no signal.
pub fn decode_buffered_signal(key: &CorrelationKey, bytes: &[u8]) -> Result<BufferedSignal> {
    let what = || format!("a signal for correlation key {}", key_text(key.as_str().as_bytes()));
    let StoredSignal::V1(signal) = codec::decode(bytes, what)?;
    Ok(BufferedSignal {
        id: SignalId::new(signal.id),
        payload: signal.payload.into(),
        sent_at: signal.sent_at.into(),
        expires_at: signal.expires_at.into(),
        idempotency_id: signal.idempotency_id,
    })
}

/// The bytes of the row that tells what to forget of a signal.
pub fn encode_signal_expiry(expiry: &SignalExpiry) -> Bytes {
    let SignalExpiry { signal, key, number, idempotency_id } = expiry;
    codec::encode(&StoredExpiry::V1(ExpiryV1 {
        signal: signal.value(),
        key: key.to_string(),
        number: *number,
        idempotency_id: idempotency_id.clone(),
    }))
}

/// What `bytes` tell to forget of a signal.
///
/// # Errors
///
/// [`Error::Corrupt`] when the bytes are no such row.
pub fn decode_signal_expiry(bytes: &[u8]) -> Result<SignalExpiry> {
    let what = || "the expiry of a signal".to_owned();
    let StoredExpiry::V1(expiry) = codec::decode(bytes, what)?;
    let key = CorrelationKey::parse(expiry.key).map_err(|error| Error::corrupt(what(), error))?;
    let signal = SignalId::new(expiry.signal);
    Ok(SignalExpiry { signal, key, number: expiry.number, idempotency_id: expiry.idempotency_id })
}

/// The bytes of the row that remembers an idempotency id. They may be compared: no two signals' are equal.
pub fn encode_signal_id(signal: SignalId) -> Bytes {
    codec::encode(&StoredId::V1(IdV1 { signal: signal.value() }))
}

/// The signal that was taken with the idempotency id whose row `bytes` are.
///
/// # Errors
///
/// [`Error::Corrupt`] when the bytes are no such row.
pub fn decode_signal_id(bytes: &[u8]) -> Result<SignalId> {
    let StoredId::V1(IdV1 { signal }) = codec::decode(bytes, || "the row of an idempotency id".to_owned())?;
    Ok(SignalId::new(signal))
}

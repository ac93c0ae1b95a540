//! A memo entry: a value, and how new the attempt was that stored it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{RunId, Value};

use super::codec;
use super::parts::ValueV1;
use crate::error::{Result, key_text};

/// A memoized value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoEntry {
    /// The revision of the run's record that the attempt which stored the value had started from. A late attempt has a
    /// lower one than the entry that it must not replace.
    pub revision: u64,
    /// The value.
    pub value: Value,
}

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(MemoV1),
}

#[derive(Serialize, Deserialize)]
struct MemoV1 {
    revision: u64,
    value: ValueV1,
}

/// The bytes of `entry`.
pub fn encode_memo_entry(entry: &MemoEntry) -> Bytes {
    codec::encode(&Stored::V1(MemoV1 { revision: entry.revision, value: (&entry.value).into() }))
}

/// The entry that `bytes` hold, of memo `key` of run `run_id`.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), naming the run and the key, when the bytes are no memo entry.
pub fn decode_memo_entry(run_id: &RunId, key: &str, bytes: &[u8]) -> Result<MemoEntry> {
    let what = || format!("memo {} of run {run_id}", key_text(key.as_bytes()));
    let Stored::V1(entry) = codec::decode(bytes, what)?;
    Ok(MemoEntry { revision: entry.revision, value: entry.value.into() })
}

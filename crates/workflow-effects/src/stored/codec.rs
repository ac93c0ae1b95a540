//! Bytes and back. The only file that names the format, so that another one touches nothing else.

use bincode::config::{self, Config};
use bincode::error::DecodeError;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The most bytes that a record may take up when it is read, far above what any record needs.
pub const MAX_RECORD_LEN: usize = 1024 * 1024;

fn format() -> impl Config {
    config::standard().with_limit::<MAX_RECORD_LEN>()
}

/// The bytes of a stored record.
pub(super) fn encode(record: &impl Serialize) -> Bytes {
    let bytes = bincode::serde::encode_to_vec(record, format())
        .expect("a record is plain data of known length, which always encodes");
    debug_assert!(bytes.len() <= MAX_RECORD_LEN, "a record of {} bytes could not be read again", bytes.len());
    bytes.into()
}

/// The record that `bytes` hold, all of them; `what` names it in the error.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8], what: impl FnOnce() -> String) -> Result<T> {
    match bincode::serde::decode_from_slice(bytes, format()) {
        Ok((record, consumed)) if consumed == bytes.len() => Ok(record),
        Ok((_, consumed)) => Err(Error::corrupt(what(), format!("{} bytes follow its end", bytes.len() - consumed))),
        Err(error) => Err(Error::corrupt(what(), describe(&error))),
    }
}

fn describe(error: &DecodeError) -> String {
    match error {
        DecodeError::UnexpectedEnd { .. } => "it ends too early".to_owned(),
        DecodeError::LimitExceeded => "it is too long".to_owned(),
        DecodeError::Utf8 { .. } => "it holds a text that is none".to_owned(),
        _ => "its bytes have another shape, perhaps that of a newer version".to_owned(),
    }
}

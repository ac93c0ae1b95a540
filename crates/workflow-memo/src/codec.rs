//! How typed values are stored: as JSON, which people can read and which lets fields be added.

use std::fmt::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The stored bytes of the value of memo `key`.
pub(crate) fn encode<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|source| Error::Encode { key: key.to_owned(), source })
}

/// The value of memo `key`.
pub(crate) fn decode<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|source| Error::Decode { key: key.to_owned(), source })
}

/// The key of what is computed from `input`: the same for inputs of the same JSON.
pub(crate) fn content_key<K: Serialize + ?Sized>(input: &K) -> Result<String> {
    let name = format!("content:{}", std::any::type_name::<K>());
    let json = encode(&name, input)?;
    let mut key = String::from("content:");
    for byte in Sha256::digest(&json) {
        write!(key, "{byte:02x}").expect("writing to a string succeeds");
    }
    Ok(key)
}

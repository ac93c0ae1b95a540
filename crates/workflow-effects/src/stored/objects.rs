//! The row that says that a run has, or may have, objects.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::codec;

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(ObjectsV1),
}

#[derive(Serialize, Deserialize)]
enum ObjectsV1 {
    /// Objects may be written.
    InUse,
}

/// The bytes of the row.
pub(crate) fn encode_objects_row() -> Bytes {
    codec::encode(&Stored::V1(ObjectsV1::InUse))
}

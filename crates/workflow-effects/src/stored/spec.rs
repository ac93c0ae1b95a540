//! What a run was submitted with, written once beside its record.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{InputHash, RunId, Timestamp};

use super::codec;
use super::parts::MillisV1;
use crate::error::Result;

/// What a run was submitted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The submitter's headers.
    pub headers: BTreeMap<String, String>,
    /// The attempts that each step may use.
    pub max_attempts: u32,
    /// The run's priority, if not the default.
    pub priority: Option<u32>,
    /// The hash of the input's bytes.
    pub input_hash: InputHash,
    /// When the run was submitted.
    pub submitted_at: Timestamp,
    /// What the paths of the run's objects begin with.
    pub object_prefix: String,
}

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(SpecV1),
}

#[derive(Serialize, Deserialize)]
struct SpecV1 {
    headers: BTreeMap<String, String>,
    max_attempts: u32,
    priority: Option<u32>,
    input_hash: [u8; 32],
    submitted_at: MillisV1,
    object_prefix: String,
}

/// The bytes of `spec`.
pub fn encode_spec(spec: &Spec) -> Bytes {
    let Spec { headers, max_attempts, priority, input_hash, submitted_at, object_prefix } = spec;
    codec::encode(&Stored::V1(SpecV1 {
        headers: headers.clone(),
        max_attempts: *max_attempts,
        priority: *priority,
        input_hash: input_hash.0,
        submitted_at: (*submitted_at).into(),
        object_prefix: object_prefix.clone(),
    }))
}

/// The spec of run `run_id` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), naming the run, when the bytes are no spec.
pub fn decode_spec(run_id: &RunId, bytes: &[u8]) -> Result<Spec> {
    let Stored::V1(spec) = codec::decode(bytes, || format!("the spec of run {run_id}"))?;
    Ok(Spec {
        headers: spec.headers,
        max_attempts: spec.max_attempts,
        priority: spec.priority,
        input_hash: InputHash(spec.input_hash),
        submitted_at: spec.submitted_at.into(),
        object_prefix: spec.object_prefix,
    })
}

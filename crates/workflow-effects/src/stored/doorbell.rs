//! What a queue job of the runtime carries. Anybody can put a job into a queue: the bytes are taken as hostile.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{Incarnation, RunId};

use super::codec;
use crate::error::{Error, Result};

/// Asks for a look at a run. It proves nothing: what it names is compared with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// The run.
    pub run_id: RunId,
    /// Which submission of it.
    pub incarnation: Incarnation,
    /// The queue name of the runtime that rang.
    pub queue_name: String,
    /// The random number of the open that rang.
    pub open: u64,
    /// What it rings for.
    pub target: BellTarget,
}

/// What a [`Doorbell`] rings for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BellTarget {
    /// A step of the run.
    Step,
    /// A terminal notification of the run.
    Notification {
        /// The redrive whose end it tells.
        redrive: u32,
    },
}

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(DoorbellV1),
}

#[derive(Serialize, Deserialize)]
struct DoorbellV1 {
    run_id: String,
    incarnation: u128,
    queue_name: String,
    open: u64,
    target: TargetV1,
}

#[derive(Serialize, Deserialize)]
enum TargetV1 {
    Step,
    Notification { redrive: u32 },
}

/// The bytes of `bell`.
pub fn encode_doorbell(bell: &Doorbell) -> Bytes {
    let Doorbell { run_id, incarnation, queue_name, open, target } = bell;
    codec::encode(&Stored::V1(DoorbellV1 {
        run_id: run_id.as_str().to_owned(),
        incarnation: incarnation.value(),
        queue_name: queue_name.clone(),
        open: *open,
        target: match *target {
            BellTarget::Step => TargetV1::Step,
            BellTarget::Notification { redrive } => TargetV1::Notification { redrive },
        },
    }))
}

/// The doorbell that a job's payload holds.
///
/// # Errors
///
/// [`Error::Corrupt`] when the bytes are no doorbell, or one of something that is no run id.
pub fn decode_doorbell(bytes: &[u8]) -> Result<Doorbell> {
    let Stored::V1(bell) = codec::decode(bytes, || "a doorbell".to_owned())?;
    let run_id = RunId::parse(bell.run_id).map_err(|error| Error::corrupt("a doorbell", error))?;
    Ok(Doorbell {
        run_id,
        incarnation: Incarnation::new(bell.incarnation),
        queue_name: bell.queue_name,
        open: bell.open,
        target: match bell.target {
            TargetV1::Step => BellTarget::Step,
            TargetV1::Notification { redrive } => BellTarget::Notification { redrive },
        },
    })
}

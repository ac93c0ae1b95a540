//! The row of a terminal notification: put by the commit that ends the run, gone once the hook has been heard.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{JobId, Notification, RunId, Status};

use super::codec;
use super::parts::{AttemptsV1, MillisV1, StatusV1};
use crate::error::Result;

/// A terminal hook call that is owed, with what the hook is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationRow {
    /// How far the calls are.
    pub state: Notification,
    /// How the run ended.
    pub status: Status,
    /// Why it failed or was cancelled.
    pub error: Option<String>,
    /// The step that ended it.
    pub final_step: u32,
}

#[derive(Serialize, Deserialize)]
enum Stored {
    V1(NotificationV1),
}

#[derive(Serialize, Deserialize)]
struct NotificationV1 {
    revision: u64,
    job: String,
    attempts: AttemptsV1,
    due: Option<MillisV1>,
    dead: bool,
    status: StatusV1,
    error: Option<String>,
    final_step: u32,
}

/// The bytes of `row`.
pub fn encode_notification(row: &NotificationRow) -> Bytes {
    let NotificationRow { state, status, error, final_step } = row;
    let Notification { revision, job, attempts, due, dead } = state;
    codec::encode(&Stored::V1(NotificationV1 {
        revision: *revision,
        job: job.as_str().to_owned(),
        attempts: (*attempts).into(),
        due: due.map(Into::into),
        dead: *dead,
        status: (*status).into(),
        error: error.clone(),
        final_step: *final_step,
    }))
}

/// The notification row of run `run_id` that `bytes` hold.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), naming the run, when the bytes are no notification row.
pub fn decode_notification(run_id: &RunId, bytes: &[u8]) -> Result<NotificationRow> {
    let Stored::V1(row) = codec::decode(bytes, || format!("the notification of run {run_id}"))?;
    let state = Notification {
        revision: row.revision,
        job: JobId::from(row.job),
        attempts: row.attempts.into(),
        due: row.due.map(Into::into),
        dead: row.dead,
    };
    Ok(NotificationRow { state, status: row.status.into(), error: row.error, final_step: row.final_step })
}

//! The stored records: which bytes stand for what. The rest of the workspace sees the types of `workflow-core` and of
//! this module, never their encoding.
//!
//! Every record is a versioned enum of private types that exist for storage alone, so that a change of the types in
//! memory cannot change what is stored. Golden bytes pin each version: what was once written is read for ever.
//! Decoding takes hostile bytes: it is bounded, refuses bytes after the end and parses ids again.

mod codec;
mod doorbell;
mod history;
mod memo;
mod notification;
mod objects;
mod outcome;
mod parts;
mod run;
mod signal;
mod spec;

pub use codec::MAX_RECORD_LEN;
pub use doorbell::{BellTarget, Doorbell, decode_doorbell, encode_doorbell};
pub use history::{RecordedEnd, StepRow, decode_step_row, encode_step_row};
pub use memo::{MemoEntry, decode_memo_entry, encode_memo_entry};
pub use notification::{NotificationRow, decode_notification, encode_notification};
pub use objects::{
    ObjectsRow, ObjectsState, SignalObjectsRow, SignalObjectsState, decode_objects_row, decode_signal_objects_row,
    encode_objects_row, encode_signal_objects_row,
};
pub use outcome::{
    OutcomeRow, RecordedOutcome, decode_outcome, decode_outcome_row, encode_outcome, encode_outcome_row,
};
pub use run::{decode_run, encode_run};
pub use signal::{
    BufferedSignal, SignalExpiry, decode_buffered_signal, decode_signal_expiry, decode_signal_id, decode_slot,
    encode_buffered_signal, encode_signal_expiry, encode_signal_id, encode_slot,
};
pub use spec::{Spec, decode_spec, encode_spec};

#[cfg(test)]
mod tests;

//! The durable key-value layer below workflow runs.
//!
//! Everything that is stored goes through one port, [`KvStore`]: reads, scans, and commits that are all-or-nothing and
//! durable when they return. Above it stand the [`KeySpace`] (which key is what), the stored records (which bytes are
//! what: `encode_…` and `decode_…`), the [`ObjectValues`] that keep large values out of the store, the [`Committer`]
//! that settles commits of unknown outcome, and the two handles that a step gets: [`EffectsHandle`] stages writes
//! which commit with the step, [`KvReadHandle`] reads what has been committed.
//!
//! Nothing here knows a queue, a clock or a runtime: the same code runs over every implementation of the port.
//!
//! ```
//! use workflow_effects::EffectsHandle;
//!
//! let effects = EffectsHandle::detached();
//! effects.put("balance/alice", "17")?;
//! effects.delete("pending/alice")?;
//! assert_eq!(effects.staged().puts.len(), 1);
//! # Ok::<(), workflow_effects::Error>(())
//! ```

mod committer;
mod error;
mod keys;
mod memory;
mod objects;
mod pages;
mod port;
mod read;
mod seal;
mod staged;
mod stored;

pub use committer::{CommitError, Committer};
pub use error::{Error, Result, key_text};
pub use keys::{Index, IndexEntry, KeySpace, MemoScope, OwnedRow, RESERVED_PREFIX, StoredKey, is_reserved};
pub use memory::MemoryKv;
pub use objects::{MAX_INLINE_LIMIT, Naming, ObjectConfig, ObjectOwner, ObjectValues};
pub use pages::Pages;
pub use port::{Commit, Enqueue, KvStore, Read, Rejected, ScanOrder, ScanPage, ScanRange};
pub use read::KvReadHandle;
pub use seal::{InFlight, Seal};
pub use staged::{
    EffectsHandle, EffectsSeal, MAX_EFFECT_BYTES, MAX_EFFECT_KEY_LEN, MAX_EFFECT_VALUE_LEN, MAX_EFFECTS, StagedEffects,
};
pub use stored::{
    BellTarget, BufferedSignal, Doorbell, MAX_RECORD_LEN, MemoEntry, NotificationRow, ObjectsRow, ObjectsState,
    OutcomeRow, RecordedEnd, RecordedOutcome, SignalExpiry, SignalObjectsRow, SignalObjectsState, Spec, StepRow,
    decode_buffered_signal, decode_doorbell, decode_memo_entry, decode_notification, decode_objects_row,
    decode_outcome, decode_outcome_row, decode_run, decode_signal_expiry, decode_signal_id, decode_signal_objects_row,
    decode_slot, decode_spec, decode_step_row, encode_buffered_signal, encode_doorbell, encode_memo_entry,
    encode_notification, encode_objects_row, encode_outcome, encode_outcome_row, encode_run, encode_signal_expiry,
    encode_signal_id, encode_signal_objects_row, encode_slot, encode_spec, encode_step_row,
};

//! Effects: key-value writes that a step stages and that commit together with its outcome.
//!
//! Every limit is checked at the staging call, so that a commit never fails for what its step staged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result, key_text};
use crate::keys::is_reserved;

/// The longest effect key in bytes. The shortest has one.
pub const MAX_EFFECT_KEY_LEN: usize = 1024;
/// The longest effect value in bytes.
pub const MAX_EFFECT_VALUE_LEN: usize = 256 * 1024;
/// The most distinct keys that a step may stage.
pub const MAX_EFFECTS: usize = 1000;
/// The most bytes that a step may stage, keys and values together.
pub const MAX_EFFECT_BYTES: usize = 4 * 1024 * 1024;

/// Stages key-value writes that are applied if and only if the step's outcome is committed, in the same transaction.
///
/// Clones stage into the same set. Once the step has returned, the handle refuses ([`Error::EffectsSealed`]).
/// The limits are [`MAX_EFFECTS`] distinct keys, [`MAX_EFFECT_BYTES`] in all, keys of 1 to [`MAX_EFFECT_KEY_LEN`]
/// bytes outside [`RESERVED_PREFIX`](crate::RESERVED_PREFIX), values of at most [`MAX_EFFECT_VALUE_LEN`] bytes.
/// A refused call stages nothing.
///
/// ```
/// use workflow_effects::EffectsHandle;
///
/// let effects = EffectsHandle::detached();
/// effects.put("seen/17", "yes")?;
/// effects.put("seen/17", "twice")?; // replaces
/// assert!(effects.delete("seen/17").is_err());
/// assert_eq!(effects.staged().puts[&b"seen/17"[..]], "twice");
/// # Ok::<(), workflow_effects::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct EffectsHandle {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    staged: StagedEffects,
    bytes: usize,
    sealed: bool,
}

/// What a step staged. No key is in both sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StagedEffects {
    /// Keys and the values they get.
    pub puts: BTreeMap<Bytes, Bytes>,
    /// Keys that are gone afterwards.
    pub deletes: BTreeSet<Bytes>,
}

impl StagedEffects {
    /// Whether nothing was staged.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty()
    }

    /// How many bytes of keys and values it holds.
    pub fn bytes(&self) -> usize {
        let puts = self.puts.iter().map(|(key, value)| key.len() + value.len());
        puts.chain(self.deletes.iter().map(Bytes::len)).sum()
    }
}

/// Ends the staging of a handle: whoever calls the user's code keeps it, and gives only the handle away.
#[derive(Debug)]
pub struct EffectsSeal(EffectsHandle);

impl EffectsSeal {
    /// Takes what was staged; the handle and its clones refuse everything from now on. A second call finds nothing.
    pub fn take(&self) -> StagedEffects {
        let mut state = self.0.lock();
        state.sealed = true;
        state.bytes = 0;
        std::mem::take(&mut state.staged)
    }
}

impl EffectsHandle {
    /// A handle that has staged nothing, and its seal.
    pub fn sealable() -> (Self, EffectsSeal) {
        let handle = Self::default();
        (handle.clone(), EffectsSeal(handle))
    }

    /// A handle outside any runtime, for tests of step runners: [`EffectsHandle::staged`] tells what was staged.
    pub fn detached() -> Self {
        Self::default()
    }

    /// Stages a write of `value` at `key`. A later put of the same key replaces it.
    ///
    /// # Errors
    ///
    /// [`Error::EffectsSealed`], [`Error::KeyLength`], [`Error::ReservedKey`], [`Error::ValueTooLarge`],
    /// [`Error::ConflictingEffect`] when the step deletes the key, [`Error::TooManyEffects`] and
    /// [`Error::EffectsTooLarge`]. All are permanent.
    pub fn put(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<()> {
        let (key, value) = (key.into(), value.into());
        let mut state = self.open_state(&key)?;
        if value.len() > MAX_EFFECT_VALUE_LEN {
            let what = format!("key {}", key_text(&key));
            return Err(Error::ValueTooLarge { what, len: value.len() as u64, max: MAX_EFFECT_VALUE_LEN as u64 });
        }
        if state.staged.deletes.contains(key.as_slice()) {
            return Err(Error::ConflictingEffect { key: key_text(&key) });
        }
        let replaced = state.staged.puts.get(key.as_slice()).map(|value| key.len() + value.len());
        state.grow(key.len() + value.len(), replaced)?;
        state.staged.puts.insert(key.into(), value.into());
        Ok(())
    }

    /// Stages the removal of `key`, whether or not it has a value.
    ///
    /// # Errors
    ///
    /// [`Error::EffectsSealed`], [`Error::KeyLength`], [`Error::ReservedKey`], [`Error::ConflictingEffect`] when the
    /// step puts the key, [`Error::TooManyEffects`] and [`Error::EffectsTooLarge`]. All are permanent.
    pub fn delete(&self, key: impl Into<Vec<u8>>) -> Result<()> {
        let key = key.into();
        let mut state = self.open_state(&key)?;
        if state.staged.puts.contains_key(key.as_slice()) {
            return Err(Error::ConflictingEffect { key: key_text(&key) });
        }
        let replaced = state.staged.deletes.get(key.as_slice()).map(Bytes::len);
        state.grow(key.len(), replaced)?;
        state.staged.deletes.insert(key.into());
        Ok(())
    }

    /// A copy of what has been staged so far.
    pub fn staged(&self) -> StagedEffects {
        self.lock().staged.clone()
    }

    /// The state, for a write of `key` that is allowed as far as the key goes.
    fn open_state(&self, key: &[u8]) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.sealed {
            return Err(Error::EffectsSealed);
        }
        check_key(key)?;
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that `key` may be an application's.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > MAX_EFFECT_KEY_LEN {
        return Err(Error::KeyLength { len: key.len() });
    }
    if is_reserved(key) {
        return Err(Error::ReservedKey { key: key_text(key) });
    }
    Ok(())
}

impl State {
    /// Accounts for an entry of `bytes` bytes, in the place of one of `replaced` bytes.
    fn grow(&mut self, bytes: usize, replaced: Option<usize>) -> Result<()> {
        let count = self.staged.puts.len() + self.staged.deletes.len();
        if replaced.is_none() && count >= MAX_EFFECTS {
            return Err(Error::TooManyEffects);
        }
        let total = self.bytes - replaced.unwrap_or(0) + bytes;
        if total > MAX_EFFECT_BYTES {
            return Err(Error::EffectsTooLarge);
        }
        self.bytes = total;
        Ok(())
    }
}

/// Counts, never keys or values.
impl fmt::Debug for EffectsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("EffectsHandle")
            .field("puts", &state.staged.puts.len())
            .field("deletes", &state.staged.deletes.len())
            .field("bytes", &state.bytes)
            .field("sealed", &state.sealed)
            .finish()
    }
}

#[cfg(test)]
mod tests;

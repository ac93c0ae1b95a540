//! What can go wrong in this layer, in its own terms.

use std::error::Error as StdError;

/// The answer of this layer's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. [`Error::is_permanent`] sums up what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The step that the handle belongs to has returned: its effects are settled.
    #[error("the step has ended and takes no more effects")]
    EffectsSealed,
    /// A key is empty or longer than [`MAX_EFFECT_KEY_LEN`](crate::MAX_EFFECT_KEY_LEN) bytes.
    #[error("a key has 1 to {} bytes, not {len}", crate::MAX_EFFECT_KEY_LEN)]
    KeyLength {
        /// Its length in bytes.
        len: usize,
    },
    /// A key lies below [`RESERVED_PREFIX`](crate::RESERVED_PREFIX), which is the runtime's own.
    #[error("key {key} lies below `workflow/`, which is reserved")]
    ReservedKey {
        /// The key, as [`key_text`] shows it.
        key: String,
    },
    /// A value is longer than it may be.
    #[error("the value of {what} has {len} bytes and may have {max}")]
    ValueTooLarge {
        /// What the value is of.
        what: String,
        /// Its length in bytes.
        len: u64,
        /// The most it may have.
        max: u64,
    },
    /// A key is both put and deleted by one step.
    #[error("key {key} is both put and deleted by one step")]
    ConflictingEffect {
        /// The key, as [`key_text`] shows it.
        key: String,
    },
    /// A step stages more than [`MAX_EFFECTS`](crate::MAX_EFFECTS) keys.
    #[error("a step stages at most {} keys", crate::MAX_EFFECTS)]
    TooManyEffects,
    /// A step stages more than [`MAX_EFFECT_BYTES`](crate::MAX_EFFECT_BYTES) bytes.
    #[error("a step stages at most {} bytes of keys and values", crate::MAX_EFFECT_BYTES)]
    EffectsTooLarge,
    /// The store cannot answer at the moment.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The store was closed, or another process has taken it over. Transient for the run, which goes on wherever the
    /// store is open next; the end for this process ([`Error::is_closed`]).
    #[error("the store is closed: {reason}")]
    Closed {
        /// Why.
        reason: String,
    },
    /// Somebody else has changed the run: the steps before this one are undone, and this one with them.
    #[error("the run has changed, and the steps before this one are undone")]
    Undone,
    /// The object store refused a request.
    #[error("the object store refused a request")]
    Store(#[source] object_store::Error),
    /// Something stored does not read as what it should be.
    #[error("{what} is corrupt: {detail}")]
    Corrupt {
        /// What is corrupt, with its key or id.
        what: String,
        /// How.
        detail: String,
    },
    /// A job cannot be queued by a store without queues.
    #[error("there is no queue here")]
    NoQueue,
    /// A store that is open for reading takes no commit.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// A commit breaks a rule of [`Commit`](crate::Commit): a bug of whoever built it.
    #[error("a commit {detail}")]
    InvalidCommit {
        /// The rule and the key.
        detail: String,
    },
}

impl Error {
    /// Whether trying again cannot help.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::EffectsSealed
            | Self::KeyLength { .. }
            | Self::ReservedKey { .. }
            | Self::ValueTooLarge { .. }
            | Self::ConflictingEffect { .. }
            | Self::TooManyEffects
            | Self::EffectsTooLarge
            | Self::Corrupt { .. }
            | Self::NoQueue
            | Self::ReadOnly
            | Self::InvalidCommit { .. } => true,
            Self::Store(source) => matches!(source, object_store::Error::NotFound { .. }),
            Self::Unavailable(_) | Self::Closed { .. } | Self::Undone => false,
        }
    }

    /// Whether the store is gone for this process: every further call will fail in the same way.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    pub(crate) fn corrupt(what: impl Into<String>, detail: impl ToString) -> Self {
        Self::Corrupt { what: what.into(), detail: detail.to_string() }
    }
}

/// The most bytes of a key that a message shows.
const SHOWN_KEY_LEN: usize = 64;

/// A key for a message: quoted, with control characters escaped, bytes that are no text replaced, and cut when long.
///
/// ```
/// assert_eq!(workflow_effects::key_text(b"user/\0\xff"), "\"user/\\0\u{fffd}\"");
/// ```
pub fn key_text(key: &[u8]) -> String {
    if key.len() <= SHOWN_KEY_LEN {
        return format!("{:?}", String::from_utf8_lossy(key));
    }
    let shown = String::from_utf8_lossy(&key[..SHOWN_KEY_LEN]);
    let shown = shown.trim_end_matches('\u{fffd}');
    format!("{shown:?}… ({} bytes)", key.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_whole_or_cut() {
        assert_eq!(key_text(b"a/b"), r#""a/b""#);
        assert_eq!(key_text(&[b'x'; 64]), format!("{:?}", "x".repeat(64)));
        assert_eq!(key_text(&[b'x'; 65]), format!("{:?}… (65 bytes)", "x".repeat(64)));
        let split = format!("{}é{}", "x".repeat(63), "y".repeat(100));
        assert_eq!(key_text(split.as_bytes()), format!("{:?}… (165 bytes)", "x".repeat(63)));
    }

    #[test]
    fn only_bad_input_and_damage_are_permanent() {
        let unavailable = Error::Unavailable("down".into());
        let closed = Error::Closed { reason: "fenced".into() };
        assert!(!unavailable.is_permanent() && !unavailable.is_closed());
        assert!(!closed.is_permanent() && closed.is_closed());
        assert!(Error::EffectsSealed.is_permanent() && Error::corrupt("a", "b").is_permanent());
        let missing = object_store::Error::NotFound { path: "p".into(), source: "gone".into() };
        assert!(Error::Store(missing).is_permanent());
        let refused = object_store::Error::Generic { store: "s", source: "busy".into() };
        assert!(!Error::Store(refused).is_permanent());
    }

    #[test]
    fn a_foreign_error_is_the_source_and_not_the_message() {
        let error = Error::Unavailable("down".into());
        assert_eq!(error.to_string(), "the store is unavailable");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("down"));
    }
}

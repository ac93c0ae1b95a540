//! What can go wrong with a memo, in its own terms.

use workflow_effects::key_text;

/// The answer of this layer's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. [`Error::is_permanent`] sums up what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The attempt that the memo belongs to has ended: it may still read, not write.
    #[error("the attempt has ended and stores no more memos: {}", key_text(key.as_bytes()))]
    Sealed {
        /// The memo's key.
        key: String,
    },
    /// A key is longer than [`MAX_MEMO_KEY_LEN`](crate::MAX_MEMO_KEY_LEN) bytes.
    #[error("a memo key has at most {} bytes, not {len}", crate::MAX_MEMO_KEY_LEN)]
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A newer attempt has stored a value under the key, so this attempt is late and stores nothing.
    #[error("a newer attempt has stored the memo {}", key_text(key.as_bytes()))]
    Late {
        /// The memo's key.
        key: String,
    },
    /// A value does not encode.
    #[error("the value of memo {} does not encode", key_text(key.as_bytes()))]
    Encode {
        /// The memo's key.
        key: String,
        /// Why.
        source: serde_json::Error,
    },
    /// Stored bytes do not decode as the type that is asked for.
    #[error("the value of memo {} does not decode", key_text(key.as_bytes()))]
    Decode {
        /// The memo's key.
        key: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The store, or a value that is too large for it.
    #[error(transparent)]
    Effects(#[from] workflow_effects::Error),
}

impl Error {
    /// Whether trying again cannot help.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Sealed { .. }
            | Self::KeyTooLong { .. }
            | Self::Late { .. }
            | Self::Encode { .. }
            | Self::Decode { .. } => true,
            Self::Effects(error) => error.is_permanent(),
        }
    }
}

//! A payload or result: small ones travel in the record, large ones live in an object that the record names.

use std::fmt;

use bytes::Bytes;

/// Bytes of the user's, held here or by reference.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// The bytes themselves.
    Inline(Bytes),
    /// The object that holds them.
    Object(ObjectRef),
}

/// Names an object that holds a [`Value`]. Objects are written once, under a fresh name, and never overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// The object's path below the runtime's prefix.
    pub path: String,
    /// Its length in bytes.
    pub len: u64,
}

impl Value {
    /// The length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Object(object) => object.len,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object, if there is one.
    pub fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Inline(_) => None,
            Self::Object(object) => Some(object),
        }
    }
}

/// No bytes.
impl Default for Value {
    fn default() -> Self {
        Self::Inline(Bytes::new())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Inline(bytes.into())
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Inline(Bytes::from_static(text.as_bytes()))
    }
}

/// Lengths and paths, never the user's bytes.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(bytes) => write!(f, "Inline({} bytes)", bytes.len()),
            Self::Object(object) => write!(f, "Object({}, {} bytes)", object.path, object.len),
        }
    }
}

//! Identifiers of runs, incarnations and queue jobs: parsed once at the edge, valid ever after.

use std::fmt;

/// The longest run id in bytes.
pub const MAX_RUN_ID_LEN: usize = 128;

/// The id of a run: 1 to [`MAX_RUN_ID_LEN`] bytes of `[A-Za-z0-9_-]`, safe in keys, object paths and log lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// Checks `id` and keeps it.
    ///
    /// # Errors
    ///
    /// [`ParseRunIdError`] when `id` is empty, too long or holds another character.
    ///
    /// ```
    /// use workflow_core::RunId;
    ///
    /// assert_eq!(RunId::parse("order-17").unwrap().as_str(), "order-17");
    /// assert!(RunId::parse("../etc").is_err());
    /// ```
    pub fn parse(id: impl Into<String>) -> Result<Self, ParseRunIdError> {
        let id = id.into();
        if id.is_empty() {
            return Err(ParseRunIdError::Empty);
        }
        if id.len() > MAX_RUN_ID_LEN {
            return Err(ParseRunIdError::TooLong { len: id.len() });
        }
        let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match id.chars().find(|c| !allowed(c)) {
            Some(character) => Err(ParseRunIdError::Character { character }),
            None => Ok(Self(id)),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not a run id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseRunIdError {
    /// The text is empty.
    #[error("a run id must not be empty")]
    Empty,
    /// The text is longer than [`MAX_RUN_ID_LEN`] bytes.
    #[error("a run id has at most {MAX_RUN_ID_LEN} bytes, not {len}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The text holds a character outside `[A-Za-z0-9_-]`.
    #[error("a run id holds letters, digits, `_` and `-` only, not {character:?}")]
    Character {
        /// The first such character.
        character: char,
    },
}

/// What tells one submission of a run id from every other: drawn at random once per submission and carried by every
/// row, object and job of it, so that nothing of an earlier run of an id can touch a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// The incarnation with this random value.
    pub const fn new(random: u128) -> Self {
        Self(random)
    }

    /// The value it was made from.
    pub const fn value(self) -> u128 {
        self.0
    }
}

/// 32 hexadecimal digits, safe in an object path.
impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The id of a queue job, as the queue made it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(String);

impl JobId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for JobId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<&str> for JobId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, expected: Result<(), ParseRunIdError>) {
        assert_eq!(RunId::parse(id).map(|_| ()), expected, "{id:?}");
    }

    #[test]
    fn a_run_id_is_short_plain_text() {
        check("a", Ok(()));
        check("Az09_-", Ok(()));
        check(&"x".repeat(128), Ok(()));
        check(&"x".repeat(129), Err(ParseRunIdError::TooLong { len: 129 }));
        check("", Err(ParseRunIdError::Empty));
        for character in ['/', '.', ' ', '\0', 'é', '\n'] {
            check(&format!("a{character}b"), Err(ParseRunIdError::Character { character }));
        }
    }

    #[test]
    fn an_incarnation_prints_all_its_digits() {
        assert_eq!(Incarnation::new(10).to_string(), "0000000000000000000000000000000a");
    }
}

//! Words, numbers and quoted bytes of a line.

use std::fmt::{self, Write as _};
use std::time::Duration;

/// Why a line is no [`Operation`](super::Operation).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseLineError {
    /// It begins with a word that names none.
    UnknownOperation(String),
    /// Something else stands where this must.
    Expected {
        /// What must stand there.
        what: String,
        /// What does; empty at the end of the line.
        found: String,
    },
    /// A quoted string ends too early, or holds an escape that there is not.
    Quoted(String),
    /// A quoted string is not UTF-8, where only text can be.
    NotText(String),
    /// More follows than there can.
    Trailing(String),
}

impl ParseLineError {
    pub(super) fn expected(what: &str, found: &str) -> Self {
        Self::Expected { what: what.to_owned(), found: found.to_owned() }
    }
}

impl std::error::Error for ParseLineError {}

impl fmt::Display for ParseLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOperation(word) => write!(f, "`{word}` is no operation"),
            Self::Expected { what, found } if found.is_empty() => write!(f, "{what} is missing"),
            Self::Expected { what, found } => write!(f, "{what} is expected, not `{found}`"),
            Self::Quoted(text) => write!(f, "`{text}` is no quoted string"),
            Self::NotText(text) => write!(f, "{text} is not UTF-8"),
            Self::Trailing(rest) => write!(f, "nothing can follow, but `{rest}` does"),
        }
    }
}

/// `bytes` in quotes: text as itself, with Rust's escapes, and each byte that is none as `\xff`.
pub(super) fn quoted(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.as_ref().utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\'' => text.push(char),
                char => text.extend(char.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes what is written to it");
        }
    }
    text + "\""
}

/// A time, in milliseconds if it is whole ones.
pub(super) fn time_text(duration: Duration) -> String {
    match u64::try_from(duration.as_millis()) {
        Ok(millis) if Duration::from_millis(millis) == duration => format!("{millis}ms"),
        Ok(_) | Err(_) => format!("{}ns", duration.as_nanos()),
    }
}

fn nanos(nanos: u128) -> Option<Duration> {
    const SECOND: u128 = 1_000_000_000;
    let seconds = u64::try_from(nanos / SECOND).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % SECOND).ok()?))
}

/// What is left of a line.
pub(super) struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line.trim() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What follows up to the next blank; empty at the end.
    pub(super) fn word(&mut self) -> &'a str {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest.trim_start();
        word
    }

    pub(super) fn expect(&mut self, expected: &str) -> Result<(), ParseLineError> {
        match self.word() {
            word if word == expected => Ok(()),
            word => Err(ParseLineError::expected(&format!("`{expected}`"), word)),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, ParseLineError> {
        let word = self.word();
        word.parse().map_err(|_| ParseLineError::expected("a number", word))
    }

    pub(super) fn duration(&mut self) -> Result<Duration, ParseLineError> {
        let word = self.word();
        let millis = word.strip_suffix("ms").and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
        let duration = millis.or_else(|| nanos(word.strip_suffix("ns")?.parse().ok()?));
        duration.ok_or_else(|| ParseLineError::expected("a time such as `1500ms`", word))
    }

    /// The quoted bytes that follow.
    pub(super) fn bytes(&mut self, what: &str) -> Result<Vec<u8>, ParseLineError> {
        let Some(text) = self.rest.strip_prefix('"') else {
            return Err(ParseLineError::expected(&format!("{what} in quotes"), self.word()));
        };
        let (bytes, rest) = unquoted(text).ok_or_else(|| ParseLineError::Quoted(self.rest.to_owned()))?;
        // Quoted strings do not touch what follows.
        if !rest.is_empty() && !rest.starts_with(' ') {
            return Err(ParseLineError::Quoted(self.rest.to_owned()));
        }
        self.rest = rest.trim_start();
        Ok(bytes)
    }

    /// The quoted text that follows.
    pub(super) fn string(&mut self, what: &str) -> Result<String, ParseLineError> {
        let bytes = self.bytes(what)?;
        String::from_utf8(bytes).map_err(|error| ParseLineError::NotText(quoted(error.as_bytes())))
    }

    pub(super) fn end(&self) -> Result<(), ParseLineError> {
        if self.is_empty() { Ok(()) } else { Err(ParseLineError::Trailing(self.rest.to_owned())) }
    }
}

/// The bytes up to the closing quote, and what follows it.
fn unquoted(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let char = rest.chars().next()?;
        rest = &rest[char.len_utf8()..];
        match char {
            '"' => return Some((bytes, rest)),
            '\\' => rest = unescaped(rest, &mut bytes)?,
            char => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

/// Reads the escape that begins after a backslash. Gives what follows it.
fn unescaped<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Option<&'a str> {
    let kind = text.chars().next()?;
    let rest = &text[kind.len_utf8()..];
    let plain = match kind {
        '0' => b'\0',
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        '\\' | '"' | '\'' => kind as u8,
        'x' => {
            bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
            return rest.get(2..);
        }
        'u' => {
            let (digits, rest) = rest.strip_prefix('{')?.split_once('}')?;
            let char = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
            return Some(rest);
        }
        _ => return None,
    };
    bytes.push(plain);
    Some(rest)
}

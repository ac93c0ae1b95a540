//! What a check reports: a place in the repository and what is wrong there.

use std::fmt;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: Option<usize>,
    message: String,
}

impl Finding {
    /// About a whole file or crate.
    pub(crate) fn in_file(path: &str, message: impl Into<String>) -> Self {
        Finding { path: path.to_owned(), line: None, message: message.into() }
    }

    /// About one line, counted from 1.
    pub(crate) fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { line: Some(line), ..Finding::in_file(path, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

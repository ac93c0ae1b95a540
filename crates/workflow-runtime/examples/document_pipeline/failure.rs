//! Failures as people and scripts meet them: one line that says what, where and what to do, and an exit code.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

use workflow_runtime::Error;

use crate::catalog::ForeignRow;

/// Exit code: some files failed, or a query or a name found nothing.
pub(crate) const FAILED: u8 = 1;
/// Exit code: the command line is wrong, or a path on it.
pub(crate) const USAGE: u8 = 2;
/// Exit code: the store is held, foreign, damaged, or cannot be written.
pub(crate) const STORE: u8 = 3;
/// Exit code: stopped by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why the program ends otherwise than it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    line: String,
}

impl Failure {
    pub(crate) fn new(code: u8, line: impl Into<String>) -> Self {
        Self { code, line: line.into() }
    }

    /// The store at `path` cannot be used; `problem` goes on with the sentence.
    pub(crate) fn store(path: &Path, problem: impl fmt::Display) -> Self {
        Self::new(STORE, format!("{} {problem}", path.display()))
    }

    pub(crate) fn disk_full(store: &Path) -> Self {
        Self::store(
            store,
            "cannot grow: the disk, or your share of it, is full; make room, and the same command goes on from here",
        )
    }

    /// What `error` means to someone who works with the store at `path`.
    pub(crate) fn of(error: anyhow::Error, path: &Path) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        if is_disk_full(&error) {
            return Self::disk_full(path);
        }
        if error.is::<ForeignRow>() {
            let problem = "was written by another program or version; name another with --store, or delete it";
            return Self::store(path, problem);
        }
        if let Some(kind) = io_kind(&error)
            && kind == ErrorKind::PermissionDenied
        {
            return Self::store(path, "cannot be used: permission denied; change its owner or its mode");
        }
        match error.downcast_ref::<Error>() {
            Some(Error::Held { holder, .. }) => {
                Self::store(path, format!("is in use by {holder}; wait for its end, or name another with --store"))
            }
            Some(Error::NoStore { .. }) => {
                Self::store(path, "is no index; run ingest first, or name another with --store")
            }
            Some(Error::Closed(reason)) => {
                Self::store(path, format!("was closed: {reason}; the same command goes on from here"))
            }
            _ => Self::store(
                path,
                format!(
                    "cannot be used: {}; if it is damaged, bring back a copy of it, or delete it and ingest again",
                    one_line(&error)
                ),
            ),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl StdError for Failure {}

/// What an error of the file system says about its reason.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// All causes, each said once.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string().replace('\n', " ");
        if line.contains(&cause) {
            continue;
        }
        if !line.is_empty() {
            line += ": ";
        }
        line += &cause;
    }
    line
}

/// Whether a write was refused for want of room: on the disk, or below a limit of the user or the process.
pub(crate) fn is_no_room(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    // The storage engine hands on some errors as text only.
    let texts = ["No space left on device", "Disk quota exceeded", "File too large"];
    let says = |cause: &(dyn StdError + 'static)| texts.iter().any(|text| cause.to_string().contains(text));
    io_kind(error).is_some_and(is_no_room) || error.chain().any(says)
}

fn io_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::path::Path;

    use workflow_runtime::Error;

    use super::Failure;
    use crate::catalog::{ForeignRow, read};

    fn check(error: impl Into<anyhow::Error>, expected: &str) {
        let failure = Failure::of(error.into(), Path::new("/store"));
        assert_eq!((failure.code, failure.to_string().as_str()), (super::STORE, expected));
    }

    #[test]
    fn every_failure_says_what_where_and_what_to_do() {
        check(
            Error::Held { path: "/store".into(), holder: "process 7".into() },
            "/store is in use by process 7; wait for its end, or name another with --store",
        );
        let full = "/store cannot grow: the disk, or your share of it, is full; make room, and the same command goes \
                    on from here";
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge] {
            check(Error::Queue(Box::new(io::Error::from(kind))), full);
        }
        check(Error::Queue("write: No space left on device (os error 28)".into()), full);
        check(
            read::<u64>(b"text").unwrap_err(),
            "/store was written by another program or version; name another with --store, or delete it",
        );
        check(
            Error::Queue("bad checksum".into()),
            "/store cannot be used: the queue failed: bad checksum; if it is damaged, bring back a copy of it, or \
             delete it and ingest again",
        );
    }

    #[test]
    fn a_failure_stays_what_it_is() {
        let failure = Failure::of(Failure::new(1, "no hit").into(), Path::new("/store"));
        assert_eq!((failure.code, failure.to_string().as_str()), (1, "no hit"));
        assert!(!ForeignRow.to_string().is_empty());
    }
}

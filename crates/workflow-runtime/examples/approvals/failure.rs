//! Why the server does not start or go on: one line that says what and where, and an exit code.

use std::fmt;
use std::path::Path;

use workflow_runtime::Error;

/// Exit code: the command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// Exit code: the store is held, foreign, damaged, or cannot be written.
pub(crate) const STORE: u8 = 3;
/// Exit code: the address cannot be listened on.
pub(crate) const LISTEN: u8 = 4;
/// Exit code: stopped at once by a second Ctrl-C.
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
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Failure {}

/// What `error` means to someone who works with the store at `path`.
pub(crate) fn of(error: anyhow::Error, path: &Path) -> Failure {
    let error = match error.downcast::<Failure>() {
        Ok(failure) => return failure,
        Err(error) => error,
    };
    let path = path.display();
    let line = match error.downcast_ref::<Error>() {
        Some(Error::Held { holder, .. }) => {
            format!("{path} is in use by {holder}; wait for its end, or name another with --store")
        }
        Some(Error::Closed(reason)) => format!("{path} was closed: {reason}; start again to go on"),
        _ => format!("{path} cannot be used: {error:#}"),
    };
    Failure::new(STORE, line.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use workflow_runtime::Error;

    use super::{Failure, LISTEN, STORE, of};

    fn check(error: impl Into<anyhow::Error>, code: u8, line: &str) {
        let failure = of(error.into(), Path::new("/store"));
        assert_eq!((failure.code, failure.to_string().as_str()), (code, line));
    }

    #[test]
    fn every_failure_is_one_line() {
        let held = Error::Held { path: "/store".into(), holder: "process 7".into() };
        check(held, STORE, "/store is in use by process 7; wait for its end, or name another with --store");
        check(Error::Closed("taken over".into()), STORE, "/store was closed: taken over; start again to go on");
        check(Error::Queue("bad\nchecksum".into()), STORE, "/store cannot be used: the queue failed: bad checksum");
        check(Failure::new(LISTEN, "no port"), LISTEN, "no port");
    }
}

//! Opening the file of a document: only a regular one, and without ever waiting for another process.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens the file at `path` to read it, and gives what is known of the open file.
///
/// # Errors
///
/// It cannot be opened, or it is a pipe, a device or something else that [`is_not_regular`].
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    // A device may act on being opened, so what is none now is not even tried.
    check_regular(&path.metadata()?)?;
    open_at_once(path)
}

/// The error for a path at which there is neither a regular file nor a folder.
pub(crate) fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, NotRegular)
}

/// Whether `error` is the one of [`not_regular`]; another attempt does not help.
pub(crate) fn is_not_regular(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<NotRegular>())
}

/// Opening a pipe waits for a writer, unless it is asked not to. A pipe can take the place of a file at any moment, so
/// only what is open tells what it is.
fn open_at_once(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() { Ok(()) } else { Err(not_regular()) }
}

#[derive(Debug)]
struct NotRegular;

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a regular file")
    }
}

impl std::error::Error for NotRegular {}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::{fs, io};

    use super::{is_not_regular, open, open_at_once};

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, socket) = (folder.path().join("pipe"), folder.path().join("socket"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [&pipe, &socket, folder.path(), "/dev/null".as_ref()] {
            assert!(open(path).is_err_and(|error| is_not_regular(&error)), "{}", path.display());
        }
        // As if it had taken the place of a file after the first look.
        assert!(open_at_once(&pipe).is_err_and(|error| is_not_regular(&error)));
    }

    #[test]
    fn a_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "text").unwrap();
        assert_eq!(open(&path).unwrap().1.len(), 4);
        let error = open(&folder.path().join("missing")).unwrap_err();
        assert!(error.kind() == io::ErrorKind::NotFound && !is_not_regular(&error));
    }
}

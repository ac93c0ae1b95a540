//! The lock of a store in a directory: a second opening is refused, instead of taking the store away from the first.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::{Error, Result};

/// The file in the store's directory that is locked, and tells who holds it.
const LOCK_FILE: &str = "lock";
/// The most of it that is read.
const MAX_HOLDER_LEN: u64 = 200;

/// Holds the lock of a directory until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct DirectoryLock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl DirectoryLock {
    /// Locks the store in `directory`.
    pub(super) fn take(directory: &Path) -> Result<Self> {
        let path = directory.join(LOCK_FILE);
        let failed = |cause: std::io::Error| Error::Lock { path: path.display().to_string(), source: cause };
        let options = OpenOptions::new().create(true).truncate(false).read(true).write(true).clone();
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Held { path: directory.display().to_string(), holder: holder(&mut file) });
            }
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        // Who holds it is told as a courtesy: a disk that is full refuses the store later, with a better error.
        let _ = write_holder(&mut file);
        Ok(Self(file))
    }
}

fn write_holder(file: &mut File) -> std::io::Result<()> {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).map_or("a program".into(), |name| name.to_string_lossy());
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "process {} ({name})", std::process::id())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(MAX_HOLDER_LEN).read_to_string(&mut text);
    if read.is_err() || text.trim().is_empty() {
        return "another opening".to_owned();
    }
    text.escape_debug().to_string()
}

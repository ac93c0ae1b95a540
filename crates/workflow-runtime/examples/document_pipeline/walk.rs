//! Which files to index: every file below some folders, and files that are named themselves.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use crate::file::not_regular;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Canonical paths of the folders that were asked for.
    pub(crate) roots: Vec<PathBuf>,
    /// Canonical paths of the files to index.
    pub(crate) files: BTreeSet<String>,
    /// What could not be looked at, each with the reason.
    pub(crate) failed: Vec<(PathBuf, String)>,
}

/// Finds the files that `paths` name and those below the folders that they name.
///
/// Hidden folders, `target` and `store` (a canonical path) are left out below a folder. Symbolic links there are not
/// followed, so no cycle of links is ever entered.
///
/// # Errors
///
/// One of `paths` itself cannot be read, or is neither file nor folder; it is given with the error.
pub(crate) fn walk(paths: &[PathBuf], store: &Path) -> Result<Walk, (PathBuf, io::Error)> {
    let mut walk = Walk::default();
    for path in paths {
        let found = path.metadata().and_then(|metadata| Ok((metadata.file_type(), fs::canonicalize(path)?)));
        let (kind, found) = found.map_err(|error| (path.clone(), error))?;
        if kind.is_file() {
            walk.add(found);
        } else if !kind.is_dir() {
            return Err((path.clone(), not_regular()));
        } else if !found.starts_with(store) {
            walk.enter(&found, store);
            walk.roots.push(found);
        }
    }
    Ok(walk)
}

impl Walk {
    fn enter(&mut self, folder: &Path, store: &Path) {
        // A list of folders instead of recursion: no depth of nesting overflows the stack.
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            match list(&folder) {
                Err(error) => self.fail(folder, error),
                Ok(entries) => {
                    for entry in entries {
                        self.look_at(&entry, store, &mut folders);
                    }
                }
            }
        }
    }

    fn look_at(&mut self, entry: &DirEntry, store: &Path, folders: &mut Vec<PathBuf>) {
        let path = entry.path();
        // The type of an entry is that of a symbolic link, not of what it points to.
        match entry.file_type() {
            Err(error) => self.fail(path, error),
            Ok(kind) if kind.is_dir() => {
                if path != store && !is_left_out(&entry.file_name()) {
                    folders.push(path);
                }
            }
            Ok(kind) if kind.is_file() => self.add(path),
            Ok(_) => {}
        }
    }

    fn add(&mut self, path: PathBuf) {
        match path.into_os_string().into_string() {
            Ok(path) => {
                self.files.insert(path);
            }
            Err(path) => self.fail(path.into(), "its path is not UTF-8"),
        }
    }

    fn fail(&mut self, path: PathBuf, reason: impl ToString) {
        self.failed.push((path, reason.to_string()));
    }
}

/// Whether an ingest of the folders `roots` has to take `path` out of the index: it lies below one of them, and
/// there is no such file any more.
pub(crate) fn is_vanished(path: &Path, roots: &[PathBuf]) -> bool {
    let is_gone = || match path.symlink_metadata() {
        Ok(metadata) => !metadata.is_file(),
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    };
    roots.iter().any(|root| path.starts_with(root)) && is_gone()
}

/// The absolute path of a file that may be gone: links are followed as far as there are any.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    let full = std::path::absolute(path)?;
    for ancestor in full.ancestors() {
        if let Ok(found) = fs::canonicalize(ancestor) {
            let below = full.strip_prefix(ancestor).unwrap_or(Path::new(""));
            // Joining nothing would add a separator.
            return Ok(if below.as_os_str().is_empty() { found } else { found.join(below) });
        }
    }
    Ok(full)
}

fn list(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

fn is_left_out(folder: &OsStr) -> bool {
    folder == "target" || folder.as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests;

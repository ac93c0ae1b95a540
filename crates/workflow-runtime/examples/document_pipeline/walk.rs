//! Which files to index: every text file below some folders, in order of path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// A larger file is data rather than text, and would keep a run at work for minutes.
pub(crate) const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

const EXTENSIONS: &[&str] = &[
    "adoc", "bash", "c", "cc", "cfg", "clj", "cmake", "conf", "cpp", "cs", "css", "csv", "dart", "diff", "ex", "exs",
    "go", "graphql", "h", "hpp", "hs", "html", "ini", "java", "js", "json", "jsx", "kt", "lua", "md", "mjs", "ml",
    "nix", "php", "pl", "proto", "py", "r", "rb", "rs", "rst", "scala", "sh", "sql", "swift", "tex", "toml", "ts",
    "tsv", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig",
];

/// What was found below the folders.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Canonical paths of the files to index.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Text files and folders left out although they were asked for, each with the reason.
    pub(crate) skipped: Vec<(PathBuf, String)>,
}

/// Finds the text files below `folders`. Hidden folders, `target` and `store` (a canonical path) are
/// left out, and symbolic links are not followed.
///
/// # Errors
///
/// One of `folders` itself is missing or no folder.
pub(crate) fn walk(folders: &[PathBuf], store: &Path) -> anyhow::Result<Walk> {
    let mut walk = Walk::default();
    for folder in folders {
        let root = fs::canonicalize(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        ensure!(root.is_dir(), "{} is not a folder", folder.display());
        if !root.starts_with(store) {
            walk.enter(&root, store);
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
                Err(error) => self.skip(folder, error),
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
        // The metadata of an entry are those of a symbolic link, not of what it points to.
        match entry.metadata() {
            Err(error) => self.skip(path, error),
            Ok(metadata) if metadata.is_dir() => {
                if path != store && !is_left_out(&entry.file_name()) {
                    folders.push(path);
                }
            }
            Ok(metadata) if metadata.is_file() && is_text(&path) => {
                if metadata.len() > MAX_FILE_BYTES {
                    self.skip(path, format!("larger than {MAX_FILE_BYTES} bytes"));
                } else {
                    self.files.insert(path);
                }
            }
            Ok(_) => {}
        }
    }

    fn skip(&mut self, path: PathBuf, reason: impl ToString) {
        self.skipped.push((path, reason.to_string()));
    }
}

fn list(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

fn is_left_out(folder: &OsStr) -> bool {
    folder == "target" || folder.as_encoded_bytes().starts_with(b".")
}

fn is_text(path: &Path) -> bool {
    path.extension()
        .and_then(OsStr::to_str)
        .is_some_and(|extension| EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests;

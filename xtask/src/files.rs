//! Reads the repository's text files, so that every check is a function over paths and texts.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// A file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    /// Relative to the repository root, with `/` between its parts.
    pub(crate) path: String,
    /// The whole content.
    pub(crate) text: String,
}

impl TextFile {
    /// Whether this is Rust source.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether this is Markdown.
    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Whether this is a cargo manifest.
    pub(crate) fn is_manifest(&self) -> bool {
        self.path == "Cargo.toml" || self.path.ends_with("/Cargo.toml")
    }
}

/// Every Rust, Markdown and manifest file under `root`, sorted by path.
///
/// Hidden folders, build output and symbolic links are left out.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<TextFile>> {
    let mut files = Vec::new();
    read_folder(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<TextFile>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && name != "target" {
            read_folder(&entry.path(), &format!("{prefix}{name}/"), files)?;
        }
        if kind.is_file() && is_checked(name) {
            let path = format!("{prefix}{name}");
            let text = fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path} as text"))?;
            files.push(TextFile { path, text });
        }
    }
    Ok(())
}

fn is_checked(name: &str) -> bool {
    name.ends_with(".rs") || name.ends_with(".md") || name == "Cargo.toml"
}

//! A document: one generation of one file, and the ids made of it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Hex digits of a path's id: 96 bits, so that two paths never share one.
const ID_DIGITS: usize = 24;

/// One generation of one file. Every time that a file is indexed anew it gets a higher one, also when
/// its content is an earlier one again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Document {
    /// The absolute path.
    pub(crate) path: String,
    /// Counts from 1.
    pub(crate) generation: u64,
}

impl Document {
    /// The id of the run that brings this generation into the index, or takes the file out of it.
    ///
    /// Submitted again, it is answered as a duplicate.
    pub(crate) fn run_id(&self) -> String {
        format!("doc-{}-{}", path_id(&self.path), self.generation)
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of(Path::new(&self.path))
    }
}

/// Stands for a path in keys and run ids: a path may be longer than those.
pub(crate) fn path_id(path: &str) -> String {
    let mut id = content_hash(path.as_bytes());
    id.truncate(ID_DIGITS);
    id
}

/// How the text of a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Links may be in brackets.
    Markdown,
    /// Lines without further structure.
    Plain,
}

impl Kind {
    fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("md") => Self::Markdown,
            _ => Self::Plain,
        }
    }
}

/// SHA-256 of `content` in lower-case hex digits.
pub(crate) fn content_hash(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Document, Kind, content_hash};

    fn document(path: &str, generation: u64) -> Document {
        Document { path: path.to_owned(), generation }
    }

    #[test]
    fn the_content_hash_is_sha_256() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content_hash(b"abc"), of_abc);
    }

    #[test]
    fn a_run_id_names_one_generation_of_one_path() {
        let id = document("/a", 1).run_id();
        assert_eq!(id, document("/a", 1).run_id());
        assert_ne!(id, document("/a", 2).run_id());
        assert_ne!(id, document("/b", 1).run_id());
        assert_eq!(id.len(), "doc-".len() + 24 + "-1".len());
    }

    #[test]
    fn markdown_is_told_by_its_extension() {
        assert_eq!(document("/a/README.MD", 1).kind(), Kind::Markdown);
        assert_eq!(document("/a/md", 1).kind(), Kind::Plain);
    }
}

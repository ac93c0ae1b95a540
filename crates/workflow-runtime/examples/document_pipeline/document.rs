//! A file as a run sees it: its path, the hash of its content, and the run id made of both.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Hex digits of a run id: 128 bits, so that two files never share one.
const ID_DIGITS: usize = 32;

/// One content of one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    /// The absolute path.
    pub(crate) path: String,
    /// SHA-256 of the content in hex digits.
    pub(crate) hash: String,
}

impl Document {
    pub(crate) fn new(path: impl Into<String>, content: &[u8]) -> Self {
        Self { path: path.into(), hash: content_hash(content) }
    }

    /// The id of the run that indexes this document, and of the document in the index.
    ///
    /// The same file submitted again gets the same id, so it is answered as a duplicate; a file that
    /// has changed is another run.
    pub(crate) fn id(&self) -> String {
        let name = [self.path.as_bytes(), b"\0", self.hash.as_bytes()].concat();
        format!("doc-{}", &content_hash(&name)[..ID_DIGITS])
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of(Path::new(&self.path))
    }
}

/// How the text of a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Headings open sections, and links may be in brackets.
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
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Document, Kind, content_hash};

    #[test]
    fn the_content_hash_is_sha_256() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content_hash(b"abc"), of_abc);
    }

    #[test]
    fn an_id_names_one_content_of_one_path() {
        let id = Document::new("/a", b"text").id();
        assert_eq!(id, Document::new("/a", b"text").id());
        assert_ne!(id, Document::new("/a", b"texts").id());
        assert_ne!(id, Document::new("/b", b"text").id());
        assert_eq!(id.len(), "doc-".len() + 32);
    }

    #[test]
    fn markdown_is_told_by_its_extension() {
        assert_eq!(Document::new("/a/README.MD", b"").kind(), Kind::Markdown);
        assert_eq!(Document::new("/a/md", b"").kind(), Kind::Plain);
    }
}

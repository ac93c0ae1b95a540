//! Folders of generated files: every encoding, no text at all, one part and many.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A folder for the files, with stores beside it.
pub(super) struct Corpus {
    root: tempfile::TempDir,
}

impl Corpus {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("files")).unwrap();
        Self { root }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.root.path().join("files")
    }

    /// The path of a store of this name, which is outside of the folder.
    pub(super) fn store(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file whose date is long past, so that the index may rely on it. It gives its canonical path.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = content.as_ref();
        fs::write(&path, content).unwrap();
        // Another content has another date, and the same one the same.
        let age = Duration::from_secs(100_000 + content.iter().map(|&byte| u64::from(byte)).sum::<u64>() % 100_000);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) - age).unwrap();
        fs::canonicalize(&path).unwrap().to_str().unwrap().to_owned()
    }

    /// Writes a file that takes very long to read, and no room: text of characters that are zero.
    pub(super) fn write_endless(&self, name: &str) {
        let path = self.write(name, wide("\u{feff}"));
        fs::File::options().write(true).open(path).unwrap().set_len(1 << 38).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.folder().join(name)).unwrap();
    }

    /// Files of every kind in the version `version`, which changes some of them.
    pub(super) fn write_all(&self, version: u64) {
        let mut chance = StdRng::seed_from_u64(version);
        for number in 0..24 {
            let version = if number % 3 == 0 { version } else { 0 };
            self.write(
                &format!("small/{number}.md"),
                prose(&mut StdRng::seed_from_u64(version * 100 + number), 60, 40),
            );
        }
        for number in 0..6 {
            self.write(&format!("words/{number}.txt"), prose(&mut chance, 3_000, 2_500));
        }
        for number in 0..2 {
            // More parts than one step cleans up.
            let text = prose(&mut chance, 30_000, 1_500).repeat(20);
            self.write(&format!("long/{number}.txt"), format!("{text}{version}"));
        }
        let text = prose(&mut chance, 200, 150);
        self.write("encoded/wide.txt", wide(&format!("\u{feff}{text}")));
        let latin_1: Vec<u8> = text.bytes().chain(*b"Gr\xF6\xDFe\n").collect();
        self.write("encoded/latin-1.txt", latin_1);
        self.write("encoded/empty.txt", "");
        self.write("encoded/picture", format!("{text}\0{version}"));
    }
}

/// So many words out of so many different ones, in lines.
pub(super) fn prose(chance: &mut StdRng, words: usize, different: u32) -> String {
    let mut text = String::new();
    for number in 0..words {
        text += &format!("word{:x}", chance.random_range(0..different));
        text.push(if number % 12 == 11 { '\n' } else { ' ' });
    }
    text.push('\n');
    text
}

/// UTF-16, its first byte the lower one.
pub(super) fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// This repository's own documents.
pub(super) fn own_documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

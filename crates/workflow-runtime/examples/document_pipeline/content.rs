//! Files on disk, read in pieces: what they hold, whether they changed, and one part of them at a time.
//!
//! No function here holds more than a part of a file. All of them block; the steps call them on
//! threads that may.

use std::fs::Metadata;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::document::{content_hash, hex};
use crate::encoding::Encoding;
use crate::file;

/// The most bytes that are analysed at a time.
pub(crate) const MAX_PART_BYTES: usize = 256 * 1024;
/// Bytes asked for in one read.
const READ_BYTES: usize = 64 * 1024;
/// A file that was written to so short a time ago may be written to again without a newer date.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// What was found in a file, and what tells later whether it is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) size: u64,
    /// When the file was written last, in nanoseconds since 1970; none if that was just before it was read.
    pub(crate) modified_ns: Option<u64>,
    /// SHA-256 in hex digits.
    pub(crate) hash: String,
    pub(crate) encoding: Encoding,
    /// How many parts the file was cut into.
    pub(crate) parts: usize,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) length: usize,
    /// SHA-256 in hex digits.
    pub(crate) hash: String,
}

/// What a look through a whole file found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Survey {
    Text(Content, Vec<Part>),
    /// It holds a zero byte. It was not read any further, so only its size and date are known.
    Binary {
        size: u64,
        modified_ns: Option<u64>,
    },
    /// Somebody wrote to it meanwhile.
    Changed,
}

/// Reads the file at `path` once, in pieces.
pub(crate) fn survey(path: &Path) -> io::Result<Survey> {
    let (mut file, before) = file::open(path)?;
    let modified_ns = settled_date(&before);
    let mut whole = Sha256::new();
    let mut cutter = Cutter::default();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                whole.update(&buffer[..length]);
                if cutter.push(&buffer[..length]).is_break() {
                    return Ok(Survey::Binary { size: before.len(), modified_ns });
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let after = file.metadata()?;
    let (encoding, parts, size) = cutter.finish();
    if size != before.len() || size != after.len() || date(&before) != date(&after) {
        return Ok(Survey::Changed);
    }
    let hash = hex(&whole.finalize());
    Ok(Survey::Text(Content { size, modified_ns, hash, encoding, parts: parts.len() }, parts))
}

/// The bytes of a part; none if they are not what they were.
pub(crate) fn read_part(path: &Path, part: &Part) -> io::Result<Option<Vec<u8>>> {
    let (mut file, _) = file::open(path)?;
    file.seek(SeekFrom::Start(part.offset))?;
    let mut bytes = vec![0; part.length];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes).filter(|bytes| content_hash(bytes) == part.hash)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the file at `path` still holds what was found in it, by size and date alone if they are the same. One that
/// was no text has no `hash`.
pub(crate) fn is_unchanged(path: &Path, size: u64, modified_ns: Option<u64>, hash: Option<&str>) -> io::Result<bool> {
    let metadata = path.metadata()?;
    if metadata.len() != size {
        return Ok(false);
    }
    if modified_ns.is_some_and(|modified| modified == date(&metadata)) {
        return Ok(true);
    }
    match hash {
        Some(hash) => Ok(file_hash(path)? == hash),
        // It counts as the same for as long as it is no text.
        None => Ok(matches!(survey(path)?, Survey::Binary { .. })),
    }
}

fn file_hash(path: &Path) -> io::Result<String> {
    let (mut file, _) = file::open(path)?;
    let mut whole = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&whole.finalize())),
            Ok(length) => whole.update(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn date(metadata: &Metadata) -> u64 {
    let since_1970 = metadata.modified().unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}

fn settled_date(metadata: &Metadata) -> Option<u64> {
    let age = SystemTime::now().duration_since(metadata.modified().ok()?).ok()?;
    (age >= SETTLED_AFTER).then(|| date(metadata))
}

/// Cuts a file into parts while it streams by.
#[derive(Default)]
struct Cutter {
    encoding: Option<Encoding>,
    parts: Vec<Part>,
    open: Vec<u8>,
    offset: u64,
}

impl Cutter {
    /// Takes the next bytes of the file; breaks when they show that it is no text.
    fn push(&mut self, bytes: &[u8]) -> std::ops::ControlFlow<()> {
        self.open.extend_from_slice(bytes);
        if self.encoding.is_none() && self.open.len() >= 2 {
            self.encoding = Some(Encoding::of_start(&self.open));
        }
        let encoding = self.encoding.unwrap_or(Encoding::Utf8);
        if encoding.is_refuted_by(bytes) {
            return std::ops::ControlFlow::Break(());
        }
        while self.open.len() > MAX_PART_BYTES {
            self.close(encoding.cut(&self.open[..MAX_PART_BYTES]));
        }
        std::ops::ControlFlow::Continue(())
    }

    fn close(&mut self, length: usize) {
        let part = &self.open[..length];
        self.encoding = Some(self.encoding.unwrap_or(Encoding::Utf8).or_as(part));
        self.parts.push(Part { offset: self.offset, length, hash: content_hash(part) });
        self.offset += length as u64;
        self.open.drain(..length);
    }

    /// The encoding, the parts and the bytes of the file.
    fn finish(mut self) -> (Encoding, Vec<Part>, u64) {
        if !self.open.is_empty() {
            self.close(self.open.len());
        }
        (self.encoding.unwrap_or(Encoding::Utf8), self.parts, self.offset)
    }
}

#[cfg(test)]
mod tests;

//! Files on disk and what is found in them.

use std::fs;
use std::time::{Duration, SystemTime};

use super::{Content, MAX_PART_BYTES, Part, Survey, is_unchanged, read_part, survey};
use crate::document::content_hash;
use crate::encoding::Encoding;

struct OnDisk {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
}

/// A file that was written an hour ago.
fn file(content: &[u8]) -> OnDisk {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, content).unwrap();
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
    OnDisk { _folder: folder, path }
}

fn text(content: &[u8]) -> (Content, Vec<Part>) {
    match survey(&file(content).path).unwrap() {
        Survey::Text(content, parts) => (content, parts),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_file_has_no_part() {
    let (content, parts) = text(b"");
    assert_eq!((content.size, content.parts, parts.len()), (0, 0, 0));
}

#[test]
fn parts_follow_each_other_to_the_end() {
    let long = "a line of text\n".repeat(MAX_PART_BYTES / 4);
    let (content, parts) = text(long.as_bytes());
    assert_eq!((content.hash, content.parts), (content_hash(long.as_bytes()), 4));
    let mut end = 0;
    for part in &parts {
        assert_eq!(part.offset, end);
        assert!(part.length <= MAX_PART_BYTES);
        end += part.length as u64;
        assert!(long[..end as usize].ends_with('\n'));
    }
    assert_eq!(end, content.size);
}

#[test]
fn one_part_that_is_no_utf_8_makes_the_file_latin_1() {
    let mut long = "word ".repeat(MAX_PART_BYTES).into_bytes();
    assert_eq!(text(&long).0.encoding, Encoding::Utf8);
    long.extend_from_slice(b"Gr\xF6\xDFe");
    assert_eq!(text(&long).0.encoding, Encoding::Latin1);
}

#[test]
fn characters_of_several_bytes_stay_whole() {
    let long = "€".repeat(MAX_PART_BYTES);
    let (content, parts) = text(long.as_bytes());
    assert_eq!(content.encoding, Encoding::Utf8);
    assert!(parts.len() >= 3);
}

#[test]
fn a_zero_byte_at_the_end_makes_a_file_binary() {
    let mut long = "word ".repeat(MAX_PART_BYTES).into_bytes();
    long.push(0);
    assert!(matches!(survey(&file(&long).path).unwrap(), Survey::Binary { .. }));
}

#[test]
fn a_part_that_changed_or_went_away_is_not_read() {
    let on_disk = file(b"one two");
    let part = Part { offset: 4, length: 3, hash: content_hash(b"two") };
    assert_eq!(read_part(&on_disk.path, &part).unwrap().as_deref(), Some(b"two".as_slice()));
    for other in ["one Two", "one", ""] {
        fs::write(&on_disk.path, other).unwrap();
        assert_eq!(read_part(&on_disk.path, &part).unwrap(), None, "{other}");
    }
}

#[test]
fn a_file_is_unchanged_by_date_or_by_hash() {
    let on_disk = file(b"text");
    let Survey::Text(Content { size, modified_ns, hash, .. }, _) = survey(&on_disk.path).unwrap() else { panic!() };
    let check = |expected: bool| {
        assert_eq!(is_unchanged(&on_disk.path, size, modified_ns, Some(&hash)).unwrap(), expected);
    };
    check(true);
    fs::write(&on_disk.path, "text").unwrap();
    check(true);
    fs::write(&on_disk.path, "TEXT").unwrap();
    check(false);
    fs::write(&on_disk.path, "texts").unwrap();
    check(false);
}

#[test]
fn a_file_just_written_has_no_date_to_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fresh");
    fs::write(&path, "text").unwrap();
    let Survey::Text(content, _) = survey(&path).unwrap() else { panic!() };
    assert_eq!(content.modified_ns, None);
    assert!(is_unchanged(&path, content.size, content.modified_ns, Some(&content.hash)).unwrap());
}

#[test]
fn a_file_that_is_no_text_is_unchanged_until_it_is_text() {
    let on_disk = file(b"data\0");
    let check = |modified_ns, expected: bool| {
        assert_eq!(is_unchanged(&on_disk.path, 5, modified_ns, None).unwrap(), expected);
    };
    let Survey::Binary { size: 5, modified_ns } = survey(&on_disk.path).unwrap() else { panic!() };
    assert!(modified_ns.is_some());
    check(modified_ns, true);
    check(None, true);
    fs::write(&on_disk.path, "text.").unwrap();
    check(modified_ns, false);
}

//! Small trees on disk, and which of their files are indexed.

use std::fs::{self, File};
use std::path::Path;

use super::{MAX_FILE_BYTES, Walk, walk};

/// Makes a folder of the named files, each with a few bytes in it.
fn tree(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text").unwrap();
    }
    root
}

fn walk_tree(root: &Path, folders: &[&str], store: &str) -> Walk {
    let folders: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    walk(&folders, &fs::canonicalize(root).unwrap().join(store)).unwrap()
}

fn check(files: &[&str], folders: &[&str], expected: &[&str]) {
    let root = tree(files);
    let found = walk_tree(root.path(), folders, "store").files;
    let canonical = fs::canonicalize(root.path()).unwrap();
    let found: Vec<_> = found.iter().map(|path| path.strip_prefix(&canonical).unwrap().to_str().unwrap()).collect();
    assert_eq!(found, expected);
}

#[test]
fn text_files_are_found_at_every_depth_in_order() {
    check(&["z.rs", "a/b/c.md", "a/UPPER.TXT", "image.png", "Makefile"], &["."], &["a/UPPER.TXT", "a/b/c.md", "z.rs"]);
}

#[test]
fn hidden_folders_target_and_the_store_are_left_out() {
    check(
        &[".git/a.txt", "target/b.rs", "x/target/c.rs", "store/d.txt", "e.txt", "targets/f.rs"],
        &["."],
        &["e.txt", "targets/f.rs"],
    );
}

#[test]
fn a_hidden_folder_is_read_when_it_is_named() {
    check(&[".notes/a.txt"], &[".notes"], &[".notes/a.txt"]);
}

#[test]
fn a_file_below_two_folders_is_found_once() {
    check(&["a/b.txt"], &[".", "a", "a/../a"], &["a/b.txt"]);
}

#[test]
fn a_file_over_the_limit_is_skipped_with_the_reason() {
    let root = tree(&["fits.txt", "large.txt"]);
    for (name, length) in [("fits.txt", MAX_FILE_BYTES), ("large.txt", MAX_FILE_BYTES + 1)] {
        let file = File::create(root.path().join(name)).unwrap();
        file.set_len(length).unwrap();
    }
    let walk = walk_tree(root.path(), &["."], "store");
    assert_eq!(walk.files.len(), 1);
    assert_eq!(walk.skipped.len(), 1);
    assert!(walk.skipped[0].0.ends_with("large.txt"));
    assert_eq!(walk.skipped[0].1, "larger than 8388608 bytes");
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    let root = tree(&["a/b.txt"]);
    std::os::unix::fs::symlink(root.path(), root.path().join("a/loop")).unwrap();
    std::os::unix::fs::symlink("b.txt", root.path().join("a/c.txt")).unwrap();
    assert_eq!(walk_tree(root.path(), &["."], "store").files.len(), 1);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let root = tree(&["a.txt"]);
    let error = |folder: &str| walk(&[root.path().join(folder)], Path::new("/store")).unwrap_err();
    assert!(error("missing").to_string().starts_with("cannot read "));
    assert!(error("a.txt").to_string().ends_with("a.txt is not a folder"));
}

//! Small trees on disk, and which of their files are indexed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Walk, absolute, is_vanished, walk};
use crate::file::is_not_regular;

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

fn canonical(root: &tempfile::TempDir) -> PathBuf {
    fs::canonicalize(root.path()).unwrap()
}

fn walk_tree(root: &tempfile::TempDir, paths: &[&str]) -> Walk {
    let paths: Vec<_> = paths.iter().map(|path| root.path().join(path)).collect();
    walk(&paths, &canonical(root).join("store")).unwrap()
}

fn check(files: &[&str], paths: &[&str], expected: &[&str]) {
    let root = tree(files);
    let prefix = format!("{}/", canonical(&root).display());
    let found = walk_tree(&root, paths).files;
    let found: Vec<_> = found.iter().map(|path| path.strip_prefix(&prefix).unwrap()).collect();
    assert_eq!(found, expected);
}

#[test]
fn files_are_found_at_every_depth_in_order() {
    check(&["z.rs", "a/b/c.md", "Makefile"], &["."], &["Makefile", "a/b/c.md", "z.rs"]);
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
fn what_is_named_is_read_even_if_it_is_hidden() {
    check(&[".notes/a.txt", ".notes/b.txt", "c/.d"], &[".notes", "c/.d"], &[".notes/a.txt", ".notes/b.txt", "c/.d"]);
}

#[test]
fn a_file_below_two_folders_is_found_once() {
    check(&["a/b.txt"], &[".", "a", "a/../a", "a/b.txt"], &["a/b.txt"]);
}

#[cfg(unix)]
#[test]
fn symbolic_links_in_folders_are_not_followed_but_those_that_are_named_are() {
    let root = tree(&["a/b.txt", "elsewhere/c.txt"]);
    std::os::unix::fs::symlink(root.path(), root.path().join("a/cycle")).unwrap();
    std::os::unix::fs::symlink("b.txt", root.path().join("a/d.txt")).unwrap();
    std::os::unix::fs::symlink("elsewhere", root.path().join("e")).unwrap();
    assert_eq!(walk_tree(&root, &["a"]).files.len(), 1);
    assert_eq!(walk_tree(&root, &["e"]).files.len(), 1);
}

#[cfg(unix)]
#[test]
fn what_is_neither_file_nor_folder_is_passed_by_in_folders_and_an_error_where_it_is_named() {
    let root = tree(&["a/b.txt"]);
    let socket = root.path().join("a/socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(walk_tree(&root, &["a"]).files.len(), 1);
    let (path, error) = walk(&[root.path().into(), socket.clone()], Path::new("/store")).unwrap_err();
    assert!(path == socket && is_not_regular(&error), "{error}");
}

#[test]
fn a_path_that_is_not_there_is_an_error() {
    let root = tree(&["a.txt"]);
    let (path, error) = walk(&[root.path().join("missing")], Path::new("/store")).unwrap_err();
    assert!(path.ends_with("missing"));
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn only_what_is_gone_from_the_folders_named_is_vanished() {
    let root = tree(&["a/there.txt"]);
    let folder = canonical(&root);
    let vanished = |path: &str, folders: &[&str]| {
        let roots: Vec<_> = folders.iter().map(|below| folder.join(below)).collect();
        is_vanished(&folder.join(path), &roots)
    };
    assert!(vanished("a/gone.txt", &["a"]));
    assert!(vanished("a/there.txt/gone.txt", &["a"]));
    assert!(!vanished("a/there.txt", &["a"]));
    assert!(!vanished("b/gone.txt", &["a"]));
    assert!(!vanished("a/gone.txt", &[]));
}

#[test]
fn the_path_of_a_file_that_is_gone_is_that_of_before() {
    let root = tree(&["a/b.txt"]);
    let path = root.path().join("a/b.txt");
    let before = fs::canonicalize(&path).unwrap();
    assert_eq!(absolute(&path).unwrap(), before);
    fs::remove_dir_all(root.path().join("a")).unwrap();
    assert_eq!(absolute(&path).unwrap(), before);
}

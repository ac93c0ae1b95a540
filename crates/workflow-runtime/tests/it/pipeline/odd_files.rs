//! Files that are none, that may not be read, or whose names are not what names should be.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::corpus::Corpus;
use super::program::{Running, command, error, finish, for_people, ingest, is_step, lines, run, total};

/// A user who is not root; none of that id has to be known to the system.
const NOBODY: u32 = 65_534;

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_pipe_is_passed_by_in_a_folder_and_wrong_usage_where_it_is_named() {
    let corpus = Corpus::new();
    let (store, pipe) = (corpus.store("store"), corpus.folder().join("pipe"));
    make_pipe(&pipe);
    let line = format!("error: cannot read {}: it is not a regular file; check the path", pipe.display());
    assert_eq!(error(&run(&store, &["ingest", pipe.to_str().unwrap()])), (2, line));
    assert!(!store.exists());

    corpus.write("file", "lanternfish");
    assert_eq!(total(&ingest(&store, &corpus.folder()), "files"), 1);
}

#[test]
fn a_file_that_becomes_a_pipe_while_it_is_read_fails() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    // Many parts: when the first one is entered, the last one is not read yet.
    let path = corpus.write("file", "lanternfish swims\n".repeat(300_000));
    let mut running = Running::start(&store, &["ingest", &path]);
    assert!(running.read_until(|line| is_step(line, "enter")));
    let pipe = corpus.store("pipe");
    make_pipe(&pipe);
    // It takes the place of the file in one move: at no time is there neither.
    fs::rename(pipe, &path).unwrap();
    let output = running.finish();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = lines(&output);
    let failed = lines.iter().find(|line| line["event"] == "failed").unwrap();
    assert_eq!((&failed["path"], &failed["reason"]), (&path.as_str().into(), &"it is not a regular file".into()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_fails_and_is_counted() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let corpus = Corpus::new();
    corpus.write("file", "lanternfish");
    fs::write(corpus.folder().join(OsStr::from_bytes(b"\xFF")), "anglerfish").unwrap();
    let output = run(&corpus.store("store"), &["ingest", corpus.folder().to_str().unwrap()]);
    assert_eq!(error(&output), (1, "error: 1 files failed, see above".to_owned()));
    let lines = lines(&output);
    assert_eq!(["files", "indexed", "failed"].map(|name| total(&lines, name)), [2, 1, 1]);
    assert_eq!(lines.last().unwrap()["left"], 0);
}

#[test]
fn a_name_cannot_put_anything_into_the_lines_for_people() {
    let corpus = Corpus::new();
    let (store, folder) = (corpus.store("store"), corpus.folder());
    let path = corpus.write("a\nb\u{1b}[2Jc", "lanternfish");
    let name = r"a\nb\u{1b}[2Jc";
    let check = |args: [&str; 2], is_found: bool| {
        let output = for_people(&store, &args).output().unwrap();
        let told = String::from_utf8(if is_found { output.stdout } else { output.stderr }).unwrap();
        assert!(told.contains(name) && !told.contains('\u{1b}'), "{args:?}: {told}");
    };
    check(["ingest", folder.to_str().unwrap()], true);
    check(["query", "lanternfish"], true);
    check(["show", &path], true);
    check(["forget", &path], true);
    check(["show", &path], false);
    check(["forget", &path], false);
}

#[test]
fn a_file_that_may_not_be_read_fails_and_the_others_are_indexed() {
    let corpus = Corpus::new();
    let (store, folder) = (corpus.store("store"), corpus.folder());
    corpus.write("open", "lanternfish");
    let locked = corpus.write("locked", "anglerfish");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let mut ingest = command(&store, &["ingest", folder.to_str().unwrap()]);
    if fs::metadata(&locked).unwrap().uid() == 0 {
        // Nothing is locked to root, so the program runs as somebody else, from a place that they may reach.
        let (root, program) = (folder.parent().unwrap(), folder.with_file_name("program"));
        fs::copy(ingest.get_program(), &program).unwrap();
        chown(root, Some(NOBODY), None).unwrap();
        let mut by_nobody = Command::new(program);
        by_nobody.args(ingest.get_args()).current_dir(root).uid(NOBODY).gid(NOBODY);
        ingest = by_nobody;
    }
    let output = match ingest.output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("skipped: no process of another user can be started here");
            return;
        }
        output => output.unwrap(),
    };
    assert_eq!(error(&output), (1, "error: 1 files failed, see above".to_owned()));
    let lines = lines(&output);
    assert_eq!(["files", "indexed", "failed"].map(|name| total(&lines, name)), [2, 1, 1]);
    let failed = lines.iter().find(|line| line["event"] == "failed").unwrap();
    assert_eq!((&failed["path"], &failed["reason"]), (&locked.as_str().into(), &"you may not read the file".into()));
}

#[test]
fn a_file_that_is_no_text_is_not_read_again_until_it_changes() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    let path = corpus.write("picture", "lanternfish\0");
    // A date in the future proves nothing.
    let future = std::time::SystemTime::now() + std::time::Duration::from_secs(100_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(future).unwrap();
    for (name, other) in [("skipped", "unchanged"), ("unchanged", "skipped"), ("unchanged", "skipped")] {
        let lines = finish(&store, &["ingest", &path]);
        assert_eq!((total(&lines, name), total(&lines, other)), (1, 0), "{lines:?}");
    }
    let shown = &lines(&run(&store, &["show", &path]))[0];
    assert_eq!(shown["document"]["generation"], 1);
    fs::write(&path, "lanternfish ").unwrap();
    assert_eq!(total(&finish(&store, &["ingest", &path]), "indexed"), 1);
}

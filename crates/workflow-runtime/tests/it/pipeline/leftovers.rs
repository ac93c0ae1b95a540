//! What earlier commands have left in the store: unfinished runs, failed ones, and files that are gone.

use std::path::Path;

use super::corpus::Corpus;
use super::program::{Running, error, finish, ingest, is_step, run};

fn check_error(store: &Path, args: &[&str], code: i32, part: &str) {
    let (found, line) = error(&run(store, args));
    assert!(found == code && line.contains(part), "{found}: {line}");
}

#[test]
fn a_run_that_an_earlier_command_left_does_not_decide_how_another_one_ends() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    // Many parts: when the first one is entered, the run is far from its end.
    let left = corpus.write("left/file.txt", "lanternfish swims\n".repeat(300_000));
    let mut running = Running::start(&store, &["ingest", &left]);
    assert!(running.read_until(|line| is_step(line, "enter")));
    running.kill();
    corpus.remove("left/file.txt");

    let own = corpus.write("own.txt", "anglerfish");
    let lines = finish(&store, &["ingest", &own]);
    let totals = &lines.last().unwrap()["totals"];
    assert_eq!((&totals["files"], &totals["indexed"], &totals["failed"]), (&1.into(), &1.into(), &0.into()));
    assert_eq!(totals["earlier"], serde_json::json!({ "runs": 1, "done": 0, "failed": 1 }));
    let failed = lines.iter().find(|line| line["event"] == "failed").unwrap();
    assert_eq!((&failed["path"], &failed["earlier"]), (&left.as_str().into(), &true.into()));

    // It never became visible, but `show` tells of it; so it can be forgotten.
    assert!(run(&store, &["show", &left]).status.success());
    finish(&store, &["forget", &left]);
    check_error(&store, &["show", &left], 1, "is not in the index");
    check_error(&store, &["forget", &left], 1, "is not in the index");
}

#[test]
fn a_file_that_is_gone_is_told_apart_from_a_wrong_path_where_it_is_named() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    let (file, other) = (corpus.write("gone/file.txt", "lanternfish"), corpus.write("other.txt", "anglerfish"));
    ingest(&store, &corpus.folder());
    std::fs::remove_dir_all(corpus.folder().join("gone")).unwrap();

    let folder = Path::new(&file).parent().unwrap().to_str().unwrap();
    for gone in [&file, folder] {
        let advice =
            format!("cannot read {gone}: there is no such file or folder; `forget {gone}` takes what was there");
        check_error(&store, &["ingest", gone], 2, &advice);
    }
    check_error(&store, &["ingest", &format!("{file}.bak")], 2, "there is no such file or folder; check the path");

    finish(&store, &["forget", folder]);
    check_error(&store, &["ingest", &file], 2, "there is no such file or folder; check the path");
    finish(&store, &["show", &other]);
}

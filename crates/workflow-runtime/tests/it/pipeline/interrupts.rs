//! Ctrl-C, once and twice, while steps are in hand that end soon, or never.

use super::corpus::Corpus;
use super::program::{Running, finish, is_step, lines, total};

const NOTE: &str = "finishing the steps in hand, for 5 s at most; Ctrl-C again stops at once";

#[test]
fn an_interrupt_finishes_the_steps_in_hand_and_says_what_is_left() {
    let corpus = Corpus::new();
    let (folder, store) = (corpus.folder(), corpus.store("store"));
    // Many parts: most of them are left when the first one is entered.
    corpus.write("file.txt", "lanternfish swims\n".repeat(1_000_000));
    let args = ["ingest", folder.to_str().unwrap()];
    let mut running = Running::start(&store, &args);
    assert!(running.read_until(|line| is_step(line, "enter")));
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    let end = "error: interrupted with 1 files left; the same command goes on from here";
    assert_eq!(told.lines().collect::<Vec<_>>(), [NOTE, end]);
    assert_eq!(lines(&output).last().unwrap()["left"], 1);

    let lines = finish(&store, &args);
    assert_eq!(total(&lines, "resumed"), 1, "{lines:?}");
}

/// Starts an ingest of a file that takes very long to read; another one, whose run began after it, is indexed by now.
fn start_endless(corpus: &Corpus) -> Running {
    corpus.write_endless("endless");
    corpus.write("short", "lanternfish");
    let mut running = Running::start(&corpus.store("store"), &["ingest", corpus.folder().to_str().unwrap()]);
    assert!(running.read_until(|line| line["event"] == "indexed"));
    running
}

#[test]
fn a_step_that_does_not_end_keeps_an_interrupted_process_for_its_grace_only() {
    let corpus = Corpus::new();
    let running = start_endless(&corpus);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(lines(&output).last().unwrap()["left"], 1);
}

#[test]
fn a_second_interrupt_stops_at_once() {
    let corpus = Corpus::new();
    let mut running = start_endless(&corpus);
    running.interrupt();
    assert_eq!(running.note(), NOTE);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(told, "stopped at once; the same command goes on from here\n");
    assert!(lines(&output).iter().all(|line| line["event"] != "totals"));
}

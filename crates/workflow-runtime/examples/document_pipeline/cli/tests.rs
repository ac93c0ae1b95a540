//! Command lines and what is read from them.

use super::{Command, IngestArgs, QueryArgs, UsageError, parse};

fn check(line: &str, expected: Result<Command, &str>) {
    let parsed = parse(line.split_whitespace().map(Into::into));
    let expected = expected.map_err(|message| UsageError(message.into()));
    assert_eq!(parsed, expected, "{line}");
}

fn ingest(store: &str, concurrency: usize, folders: &[&str]) -> Command {
    let folders = folders.iter().map(Into::into).collect();
    Command::Ingest(IngestArgs { store: store.into(), concurrency, verbose: false, folders })
}

fn query(store: &str, words: &[&str]) -> Command {
    Command::Query(QueryArgs { store: store.into(), words: words.iter().map(|word| (*word).to_owned()).collect() })
}

#[test]
fn ingest_without_arguments_reads_the_current_directory() {
    check("ingest", Ok(ingest(".data/document-pipeline", 64, &["."])));
}

#[test]
fn options_stand_before_between_and_after_the_folders() {
    let expected = || Ok(ingest("s", 3, &["a", "b"]));
    check("--store s ingest --concurrency 3 a b", expected());
    check("ingest a --store=s b --concurrency=3", expected());
    check("ingest --store s --concurrency 3 -- a b", expected());
}

#[test]
fn what_follows_two_dashes_is_no_option() {
    check("query --store s -- --help", Ok(query("s", &["--help"])));
}

#[test]
fn help_wins_over_a_missing_command() {
    check("--help", Ok(Command::Help));
    check("query -h", Ok(Command::Help));
}

#[test]
fn a_wrong_line_is_refused_with_its_reason() {
    check("", Err("no command given"));
    check("index", Err("no command `index`"));
    check("query", Err("query needs a word"));
    check("query word --concurrency 2", Err("--concurrency is an option of ingest only"));
    check("query -v word", Err("--verbose is an option of ingest only"));
    check("ingest --store", Err("--store needs a value"));
    check("ingest --store= a", Err("--store needs a value"));
    check("ingest --fast", Err("no option `--fast`"));
    for value in ["0", "-1", "many"] {
        let reason = format!("--concurrency needs a number above zero, not `{value}`");
        check(&format!("ingest --concurrency {value}"), Err(&reason));
    }
}

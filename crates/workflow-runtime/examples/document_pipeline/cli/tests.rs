//! Command lines and what is read from them.

use std::path::PathBuf;

use super::{Command, Options, UsageError, parse};
use crate::report::Style;

fn check(line: &str, expected: Result<Command, &str>) {
    let parsed = parse(line.split_whitespace().map(Into::into));
    let expected = expected.map_err(|message| UsageError(message.into()));
    assert_eq!(parsed, expected, "{line}");
}

fn options(store: &str, concurrency: usize) -> Options {
    Options { store: store.into(), concurrency, style: Style::default() }
}

fn by_default() -> Options {
    options(".data/document-pipeline", 64)
}

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(Into::into).collect()
}

#[test]
fn ingest_without_arguments_reads_the_current_directory() {
    check("ingest", Ok(Command::Ingest(by_default(), paths(&["."]))));
}

#[test]
fn options_stand_before_between_and_after_the_words() {
    let expected = || Ok(Command::Ingest(options("s", 3), paths(&["a", "b"])));
    check("--store s ingest --concurrency 3 a b", expected());
    check("ingest a --store=s b --concurrency=3", expected());
    check("ingest --store s --concurrency 3 -- a b", expected());
}

#[test]
fn every_command_tells_in_the_style_it_is_asked_for() {
    let style = Style { json: true, verbose: true };
    let options = || Options { style, ..by_default() };
    check("query --json -v word", Ok(Command::Query(options(), vec!["word".into()])));
    check("show --verbose a --json", Ok(Command::Show(options(), "a".into())));
    check("--json -v forget a b", Ok(Command::Forget(options(), paths(&["a", "b"]))));
}

#[test]
fn what_follows_two_dashes_is_no_option() {
    check("query -- --help", Ok(Command::Query(by_default(), vec!["--help".into()])));
}

#[test]
fn help_and_version_win_over_a_missing_command() {
    check("--help", Ok(Command::Help));
    check("query -h", Ok(Command::Help));
    check("-V", Ok(Command::Version));
}

#[test]
fn a_wrong_line_is_refused_with_its_reason() {
    check("", Err("no command given"));
    check("index", Err("no command `index`"));
    check("query", Err("query needs a word"));
    check("show", Err("show needs one file"));
    check("show a b", Err("show needs one file"));
    check("forget", Err("forget needs a file"));
    check("ingest --store", Err("--store needs a value"));
    check("ingest --store= a", Err("--store needs a value"));
    check("ingest --fast", Err("no option `--fast`"));
    check("ingest --json=yes", Err("no option `--json` that takes a value"));
    for value in ["0", "-1", "many", "5000"] {
        let reason = format!("--concurrency needs a number from 1 to 4096, not `{value}`");
        check(&format!("ingest --concurrency {value}"), Err(&reason));
    }
}

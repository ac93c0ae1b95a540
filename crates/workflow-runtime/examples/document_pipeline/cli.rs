//! The command line: what the arguments ask for, and what is wrong with those that ask for nothing.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::report::Style;

/// The answer to `--help`.
pub(crate) const HELP: &str = "\
Index files with durable workflows, and search them.

usage:
  document_pipeline ingest [DIR|FILE...]   bring the index up to date with the
                                           files below (default: this directory)
  document_pipeline query WORD...          documents with any of the words
  document_pipeline show FILE              what the index holds of a file, and
                                           how the run went that put it there
  document_pipeline forget FILE|DIR...     take documents out of the index

ingest leaves out hidden directories, `target` and the store, and follows no
links inside of directories. A file that did not change is left as it is; one
that is no text, because it holds a zero byte, is skipped and not found by
query; one that is gone from a DIR is forgotten. ingest may be killed at any
moment: the same command goes on where it was, and so does any other ingest.
Ctrl-C first lets the steps in hand finish, for a few seconds; a second one
stops at once. query and show work at any time, also during an ingest, which
goes first where both want the processor.

A word is a run of letters, digits and their accents, in any script and any
case, of 2 to 64 bytes. The most frequent English words are left out.

Documents are known by their absolute paths. Those of a folder that was moved
stay in the index under their old ones: forget the old folder, which need not be
there any more. The space that forgotten documents take on disk is not free at
once: later commands free it bit by bit. Runs that have ended stay in the store.

options:
  --store DIR        where runs and index live (default: .data/document-pipeline)
  --concurrency N    steps at work at the same time (default: 64)
  --json             print one JSON object per line
  -v, --verbose      print a line for every step and every unchanged file
  -h, --help         print this
  -V, --version      print the version

exit codes:
  0 all well    1 some files failed, or nothing was found    2 wrong usage
  3 the store is in use, is none, is damaged, or the disk is full
  130 stopped by Ctrl-C";

const DEFAULT_STORE: &str = ".data/document-pipeline";
const DEFAULT_CONCURRENCY: usize = 64;

/// What the user asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Version,
    Ingest(Options, Vec<PathBuf>),
    Query(Options, Vec<String>),
    Show(Options, PathBuf),
    Forget(Options, Vec<PathBuf>),
}

/// What every command understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) store: PathBuf,
    pub(crate) concurrency: usize,
    pub(crate) style: Style,
}

/// Why a command line was not understood, in one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let Arguments { help, version, options, words } = Arguments::read(args.into_iter())?;
    if help {
        return Ok(Command::Help);
    }
    if version {
        return Ok(Command::Version);
    }
    let mut words = words.into_iter();
    let Some(command) = words.next() else {
        return refuse("no command given");
    };
    let words: Vec<_> = words.collect();
    let paths = || words.iter().map(PathBuf::from).collect::<Vec<_>>();
    match command.to_str() {
        Some("ingest") if words.is_empty() => Ok(Command::Ingest(options, vec![PathBuf::from(".")])),
        Some("ingest") => Ok(Command::Ingest(options, paths())),
        Some("query") if words.is_empty() => refuse("query needs a word"),
        Some("query") => {
            Ok(Command::Query(options, words.iter().map(|word| word.to_string_lossy().into_owned()).collect()))
        }
        Some("show") => match words.as_slice() {
            [file] => Ok(Command::Show(options, file.into())),
            _ => refuse("show needs one file"),
        },
        Some("forget") if words.is_empty() => refuse("forget needs a file"),
        Some("forget") => Ok(Command::Forget(options, paths())),
        _ => refuse(format!("no command `{}`", command.display())),
    }
}

/// Options and plain words of a command line, whichever command they belong to.
struct Arguments {
    help: bool,
    version: bool,
    options: Options,
    words: Vec<OsString>,
}

impl Arguments {
    fn read(mut args: impl Iterator<Item = OsString>) -> Result<Self, UsageError> {
        let options =
            Options { store: DEFAULT_STORE.into(), concurrency: DEFAULT_CONCURRENCY, style: Style::default() };
        let mut read = Self { help: false, version: false, options, words: Vec::new() };
        while let Some(arg) = args.next() {
            let Some(option) = arg.to_str().filter(|arg| arg.starts_with('-')) else {
                read.words.push(arg);
                continue;
            };
            let (name, inline) = match option.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (option, None),
            };
            let mut value = || {
                let value = inline.clone().or_else(|| args.next());
                value.filter(|value| !value.is_empty()).ok_or_else(|| UsageError(format!("{name} needs a value")))
            };
            match name {
                "--store" => read.options.store = value()?.into(),
                "--concurrency" => read.options.concurrency = parse_concurrency(&value()?)?,
                "--" => {
                    read.words.extend(args);
                    break;
                }
                _ if inline.is_some() => return refuse(format!("no option `{name}` that takes a value")),
                "--json" => read.options.style.json = true,
                "-v" | "--verbose" => read.options.style.verbose = true,
                "-h" | "--help" => read.help = true,
                "-V" | "--version" => read.version = true,
                _ => return refuse(format!("no option `{name}`")),
            }
        }
        Ok(read)
    }
}

fn parse_concurrency(value: &OsString) -> Result<usize, UsageError> {
    let number = value.to_str().and_then(|value| value.parse().ok());
    number.filter(|count| (1..=MAX_CONCURRENCY).contains(count)).ok_or_else(|| {
        let value = value.display();
        UsageError(format!("--concurrency needs a number from 1 to {MAX_CONCURRENCY}, not `{value}`"))
    })
}

/// More steps at a time only wait for each other.
const MAX_CONCURRENCY: usize = 4096;

fn refuse<T>(message: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(message.into()))
}

#[cfg(test)]
mod tests;

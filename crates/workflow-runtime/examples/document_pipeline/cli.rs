//! The command line: what the arguments ask for, and what is wrong with those that ask for nothing.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// The answer to `--help`.
pub(crate) const HELP: &str = "\
Index text, Markdown and source files with durable workflows, and search them.

usage:
  document_pipeline ingest [--store DIR] [--concurrency N] [--verbose] [DIR...]
  document_pipeline query  [--store DIR] WORD...

ingest reads every text file below each DIR (default: the current directory),
leaving out hidden directories, `target` and the store. It may be killed at any
moment: the same command goes on where it was.
query prints the documents that hold any of the words, the best first.
A store serves one process at a time: a second one takes it over, and the first
stops with an error.

options:
  --store DIR        where runs and index live (default: .data/document-pipeline)
  --concurrency N    steps at work at the same time (default: 64)
  -v, --verbose      print a line for every step
  -h, --help         print this";

const DEFAULT_STORE: &str = ".data/document-pipeline";
const DEFAULT_CONCURRENCY: usize = 64;

/// What the user asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Ingest(IngestArgs),
    Query(QueryArgs),
}

/// The arguments of `ingest`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IngestArgs {
    pub(crate) store: PathBuf,
    pub(crate) concurrency: usize,
    pub(crate) verbose: bool,
    pub(crate) folders: Vec<PathBuf>,
}

/// The arguments of `query`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueryArgs {
    pub(crate) store: PathBuf,
    pub(crate) words: Vec<String>,
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
    let args = Arguments::read(args.into_iter())?;
    if args.help {
        return Ok(Command::Help);
    }
    let mut words = args.words.into_iter();
    let Some(command) = words.next() else {
        return refuse("no command given");
    };
    let store = args.store.unwrap_or_else(|| DEFAULT_STORE.into());
    match command.to_str() {
        Some("ingest") => Ok(Command::Ingest(IngestArgs {
            store,
            concurrency: args.concurrency.unwrap_or(DEFAULT_CONCURRENCY),
            verbose: args.verbose,
            folders: or_current_directory(words.map(PathBuf::from).collect()),
        })),
        Some("query") if args.concurrency.is_some() => refuse("--concurrency is an option of ingest only"),
        Some("query") if args.verbose => refuse("--verbose is an option of ingest only"),
        Some("query") => {
            let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
            if words.is_empty() {
                return refuse("query needs a word");
            }
            Ok(Command::Query(QueryArgs { store, words }))
        }
        _ => refuse(format!("no command `{}`", command.display())),
    }
}

/// Options and plain words of a command line, whichever command they belong to.
#[derive(Default)]
struct Arguments {
    help: bool,
    store: Option<PathBuf>,
    concurrency: Option<usize>,
    verbose: bool,
    words: Vec<OsString>,
}

impl Arguments {
    fn read(mut args: impl Iterator<Item = OsString>) -> Result<Self, UsageError> {
        let mut read = Self::default();
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
                "--store" => read.store = Some(value()?.into()),
                "--concurrency" => read.concurrency = Some(parse_concurrency(&value()?)?),
                "-v" | "--verbose" => read.verbose = true,
                "-h" | "--help" => read.help = true,
                "--" => {
                    read.words.extend(args);
                    break;
                }
                _ => return refuse(format!("no option `{name}`")),
            }
        }
        Ok(read)
    }
}

fn parse_concurrency(value: &OsString) -> Result<usize, UsageError> {
    value.to_str().and_then(|value| value.parse().ok()).filter(|&count| count > 0).ok_or_else(|| {
        let value = value.display();
        UsageError(format!("--concurrency needs a number above zero, not `{value}`"))
    })
}

fn or_current_directory(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    if folders.is_empty() { vec![PathBuf::from(".")] } else { folders }
}

fn refuse<T>(message: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(message.into()))
}

#[cfg(test)]
mod tests;

//! A durable indexer of files: the runtime's main job.
//!
//! ```text
//! cargo run --release --example document_pipeline -- ingest docs
//! cargo run --release --example document_pipeline -- query durable step
//! cargo run --release --example document_pipeline -- show docs/guide.md
//! ```
//!
//! `ingest` submits one run per new or changed file. A run reads its file once in pieces, finds the words of one part
//! after the other and enters them into the index, a step per part; then one commit makes the document visible
//! in place of its former generation, and further steps clean up after that one. Kill the process at any moment and
//! start it again: every run goes on at the step it had reached, and a part that was analysed by a step that did not
//! commit is answered from the memo of its run. `query` and `show` read beside it.
//!
//! Where to read on:
//!
//! | module | holds |
//! | --- | --- |
//! | `indexer` | the `StepRunner`: what each step does |
//! | `state` | what a run carries from step to step |
//! | `work` | submitting runs and waiting for their ends |
//! | `session` | opening the store, running, Ctrl-C, closing |
//! | `ingest`, `forget` | what is to be done, from files and from what the store knows (`catalog`) |
//! | `query`, `rank`, `show`, `courtesy` | reading the index and the runs beside a writer |
//! | `index`, `document` | keys, values and ids |
//! | `file`, `content`, `encoding`, `findings`, `keywords`, `links` | files, and the text in them |
//! | `cli`, `walk`, `store` | arguments, folders, the folder of the store |
//! | `report`, `totals`, `bar`, `print`, `failure` | what is told: progress, numbers, lines, exit codes |

mod bar;
mod catalog;
mod cli;
mod content;
mod courtesy;
mod document;
mod encoding;
mod failure;
mod file;
mod findings;
mod forget;
mod index;
mod indexer;
mod ingest;
mod keywords;
mod links;
mod print;
mod query;
mod rank;
mod report;
mod session;
mod show;
mod state;
mod store;
mod totals;
mod walk;
mod work;

use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Builder;

use cli::{Command, Options};
use failure::Failure;

/// How long a thread that is blocked, in a read of a disk that does not answer, keeps the process from its end.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {} (see --help)", print::plain(&error.to_string()));
            return ExitCode::from(failure::USAGE);
        }
    };
    let started = match &command {
        Command::Query(options, _) | Command::Show(options, _) => courtesy::reading(&options.store),
        _ => Builder::new_multi_thread().enable_all().build(),
    };
    let started = started.map_err(|error| Failure::new(failure::STORE, format!("cannot start: {error}")));
    let ended = started.and_then(|runtime| {
        let ended = runtime.block_on(run(command));
        // Dropping it would wait for such threads for ever.
        runtime.shutdown_timeout(LAST_WAIT);
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", print::plain(&failure.to_string()));
            ExitCode::from(failure.code)
        }
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    let told = |options: Options| move |error| Failure::of(error, &options.store);
    match command {
        Command::Help => print::say(cli::HELP),
        Command::Version => print::say(concat!("document_pipeline ", env!("CARGO_PKG_VERSION"))),
        Command::Ingest(options, paths) => ingest::ingest(&options, &paths).await.map_err(told(options))?,
        Command::Query(options, words) => query::query(&options, &words).await.map_err(told(options))?,
        Command::Show(options, file) => show::show(&options, &file).await.map_err(told(options))?,
        Command::Forget(options, paths) => forget::forget(&options, &paths).await.map_err(told(options))?,
    }
    Ok(())
}

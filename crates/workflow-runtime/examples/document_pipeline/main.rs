//! A durable corpus indexer: the runtime's main job on real files.
//!
//! ```text
//! cargo run --release --example document_pipeline -- ingest docs
//! cargo run --release --example document_pipeline -- query durable step
//! ```
//!
//! `ingest` submits one run per text, Markdown or source file. A run reads its file, splits it into
//! sections, finds the words and links of a batch of sections per step, and at last stages the whole
//! entry of the document in the index, which commits together with the end of the run. Kill the
//! process at any moment and start it again: every run goes on at the step it had reached, and the
//! sections a killed step had analysed are answered from its memo. `query` reads the committed index.
//!
//! Where to read on:
//!
//! | module | holds |
//! | --- | --- |
//! | `indexer` | the `StepRunner`: what each step does |
//! | `state` | what a run carries from step to step |
//! | `ingest` | opening the store, submitting, running, waiting, closing |
//! | `query`, `rank` | reading the index, and the order of the answers |
//! | `index` | keys and values of the index |
//! | `document` | a file as a run sees it: path, content hash, run id |
//! | `findings`, `keywords`, `links`, `split` | the text work, free of IO |
//! | `walk`, `cli`, `progress` | files to read, arguments, lines to print |

mod cli;
mod document;
mod findings;
mod index;
mod indexer;
mod ingest;
mod keywords;
mod links;
mod progress;
mod query;
mod rank;
mod split;
mod state;
mod walk;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use cli::Command;

/// Exit code of a command that was understood and failed.
const FAILED: u8 = 1;
/// Exit code of a command line that was not understood.
const MISUSED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {error} (see --help)");
            return ExitCode::from(MISUSED);
        }
    };
    let done = match command {
        Command::Help => {
            progress::say(cli::HELP);
            Ok(())
        }
        Command::Ingest(args) => ingest::ingest(args).await,
        Command::Query(args) => query::query(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// The address under which the runtime opens the local directory `store`, an absolute path.
fn store_url(store: &Path) -> anyhow::Result<String> {
    let url =
        url::Url::from_file_path(store).ok().with_context(|| format!("{} is not an absolute path", store.display()))?;
    Ok(url.into())
}

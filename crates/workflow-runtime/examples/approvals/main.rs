//! Purchase orders over HTTP: people submit, approve, reject and withdraw them, and time reminds those who do not answer.
//!
//! ```text
//! cargo run --release -p workflow-runtime --example approvals -- --remind-after 60s
//! ```
//!
//! Then open the address that it prints. One run is one order. It asks the approver and waits for a signal; when none
//! comes in time it reminds, then asks a manager, then expires. Kill the process at any moment and start it again:
//! every order that was acknowledged is there, every decision counts, timers go on, and no order is paid twice.
//!
//! There is no authentication: whoever reaches the address is who they say they are.
//!
//! Where to read on:
//!
//! | module | holds |
//! | --- | --- |
//! | `approval` | the `StepRunner`: what each step does |
//! | `clerk` | the `TerminalHook`: closes orders that were ended from outside |
//! | `desk` | submitting, deciding, stopping, looking: what a request becomes |
//! | `order`, `verdict`, `amount` | what people send, and its limits |
//! | `ledger` | the rows in the application's KV |
//! | `bank` | stands for a payment provider |
//! | `web` | HTTP: JSON for programs, pages for people |
//! | `server`, `cli`, `failure` | starting, stopping, arguments, exit codes |

mod amount;
mod approval;
mod bank;
mod clerk;
mod cli;
mod desk;
mod failure;
mod ledger;
mod order;
mod server;
mod verdict;
mod web;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use cli::Command;

/// How long a thread that is blocked keeps the process from its end.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let options = match cli::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            say(cli::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Version) => {
            say(concat!("approvals ", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        Ok(Command::Serve(options)) => options,
        Err(problem) => {
            eprintln!("error: {problem} (see --help)");
            return ExitCode::from(failure::USAGE);
        }
    };
    let served = tokio::runtime::Runtime::new().map_err(anyhow::Error::from).and_then(|runtime| {
        let served = runtime.block_on(server::serve(&options));
        runtime.shutdown_timeout(LAST_WAIT);
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = failure::of(error, &options.store);
            eprintln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

/// Prints a line at once. A reader that has gone away is no reason to stop.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

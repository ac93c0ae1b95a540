//! `cargo xtask nightly`: the checks that take too long for every commit.

use anyhow::bail;
use xshell::Shell;

use crate::flags::Bench;
use crate::{bench, mutants, sim};

/// How long the simulation goes on.
const MINUTES: u64 = 10;

/// Runs every check, whatever becomes of the others, and says which failed and which a tool was missing for.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    let mut tell = |name: &'static str, done: anyhow::Result<()>| {
        if let Err(error) = done {
            eprintln!("==> {name}: {error:#}");
            failed.push(name);
        }
    };
    tell("sim", sim::run(shell, None, Some(MINUTES)));
    tell("mutants", mutants::run(shell, None));
    if bench::can_count(shell) {
        tell("bench --check", bench::run(shell, &Bench { check: true, record: false, args: Vec::new() }));
    } else {
        println!("==> bench --check: skipped, because valgrind is not installed");
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

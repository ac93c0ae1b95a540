//! `cargo xtask`: the project's automation. Checks are plain functions over text; running commands is kept apart
//! from them.

mod bench;
mod ci;
mod files;
mod finding;
mod fix;
mod flags;
mod layers;
mod mutants;
mod nightly;
mod sim;
mod tidy;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use xshell::Shell;

use flags::{Xtask, XtaskCmd};

fn main() -> ExitCode {
    match run(&Xtask::from_env_or_exit()) {
        Ok(()) => ExitCode::SUCCESS,
        // Printed here because a returned error brings a backtrace, which buries what to do next.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Xtask) -> anyhow::Result<()> {
    let root = repository_root()?;
    let shell = Shell::new()?;
    shell.change_dir(&root);
    match &flags.subcommand {
        XtaskCmd::Ci(ci) => ci::run(&shell, ci.only),
        XtaskCmd::Nightly(_) => nightly::run(&shell),
        XtaskCmd::Bench(flags) => bench::run(&shell, flags),
        XtaskCmd::Tidy(_) => tidy::run(&shell),
        XtaskCmd::Fix(_) => fix::run(&shell),
        XtaskCmd::Sim(sim) => sim::run(&shell, sim.seed, sim.minutes),
        XtaskCmd::Mutants(mutants) => mutants::run(&shell, mutants.only.as_deref()),
    }
}

/// The folder above this crate's, as cargo gives it to a running program.
fn repository_root() -> anyhow::Result<PathBuf> {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let parent = PathBuf::from(manifest_dir).parent().map(PathBuf::from);
    parent.context("the folder of xtask has no parent")
}

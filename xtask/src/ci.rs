//! `cargo xtask ci`: the stages of CI, in order. Nothing here changes a file.

mod features;
mod light;
mod stage;

use std::time::{Duration, Instant};

use anyhow::Context;
use xshell::{Shell, cmd};

pub(crate) use stage::Stage;

use crate::{tidy, workspace};

/// Runs every stage, or `only` one, and stops at the first that fails.
pub(crate) fn run(shell: &Shell, only: Option<Stage>) -> anyhow::Result<()> {
    let start = Instant::now();
    let stages = match &only {
        Some(stage) => std::slice::from_ref(stage),
        None => Stage::ALL,
    };
    for &stage in stages {
        println!("==> {stage}");
        let stage_start = Instant::now();
        run_stage(shell, stage)
            .with_context(|| format!("stage `{stage}` failed; run it alone with `cargo xtask ci --only {stage}`"))?;
        println!("==> {stage} took {}", seconds(stage_start.elapsed()));
    }
    if only.is_none() {
        println!("==> ci passed in {}", seconds(start.elapsed()));
    }
    Ok(())
}

/// Warnings are denied through arguments of clippy and rustdoc: `RUSTFLAGS` would rebuild every dependency.
fn run_stage(shell: &Shell, stage: Stage) -> anyhow::Result<()> {
    let command = match stage {
        Stage::Tidy => return tidy::run(shell),
        Stage::Features => return features::run(shell, &workspace::load(shell)?),
        Stage::Light => return light::run(shell, &workspace::load(shell)?),
        Stage::Fmt => cmd!(shell, "cargo fmt --all --check"),
        Stage::Clippy => cmd!(shell, "cargo clippy --workspace --all-targets --all-features --locked -- -D warnings"),
        // Without a choice of targets this covers libraries, binaries, integration tests, examples and doc tests.
        Stage::Tests => cmd!(shell, "cargo test --workspace --all-features --locked"),
        Stage::Docs => {
            cmd!(shell, "cargo doc --workspace --all-features --no-deps --locked").env("RUSTDOCFLAGS", "-D warnings")
        }
    };
    Ok(command.run()?)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

//! `cargo xtask fix`: the writing twin of `ci`. Formatting comes after clippy, whose suggestions need not be formatted.

use xshell::{Shell, cmd};

/// Applies lint suggestions, formats, and rewrites the snapshots.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets").run()?;
    cmd!(shell, "cargo fmt --all").run()?;
    cmd!(shell, "cargo test -p workflow-core --test it").env("UPDATE", "1").run()?;
    Ok(())
}

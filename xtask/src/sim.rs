//! `cargo xtask sim`: the simulation of the testkit, for one seed or for as long as one likes.

use std::time::{SystemTime, UNIX_EPOCH};

use xshell::{Shell, cmd};

/// The test that goes on for as long as the environment says.
const TEST: &str = "simulation::from_one_seed_on_for_as_long_as_asked";

/// Simulates `seed`, or for so many minutes the seeds from it on: optimized then, and from the time on without a seed.
pub(crate) fn run(shell: &Shell, seed: Option<u64>, minutes: Option<u64>) -> anyhow::Result<()> {
    let first = match (seed, minutes) {
        (Some(seed), _) => seed,
        (None, None) => 0,
        (None, Some(_)) => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    let profile: &[&str] = if minutes.is_some() { &["--release"] } else { &[] };
    println!("==> from seed {first} on");
    cmd!(shell, "cargo test -p workflow-testkit {profile...} --test it -- --exact {TEST} --ignored --nocapture")
        .env("SIM_SEED", first.to_string())
        .env("SIM_MINUTES", minutes.unwrap_or(0).to_string())
        .quiet()
        .run()?;
    Ok(())
}

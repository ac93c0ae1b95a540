//! Properties of whole workflows: right ones hold, mistakes are found, shrunk, written and replayed.

mod right;
mod strategies;
mod text;
mod wrong;

/// How many seeds are tried, as the environment says in `SEEDS`; one if it does not.
fn seeds() -> u32 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

//! Properties of every run and event, of waits, cancellations, pauses, redrives and replays, of random histories, and of
//! runs beside one that kills its process.

mod generators;
mod histories;
mod invariants;
mod killer;
mod notifications;
mod pauses;
mod redrives;
mod replays;
mod retries;
mod signals;
mod single;

use proptest::test_runner::Config;

/// The cases that `PROPTEST_CASES` asks for. A failure is printed, not filed: it becomes a test of its own.
fn config() -> Config {
    Config { failure_persistence: None, ..Config::default() }
}

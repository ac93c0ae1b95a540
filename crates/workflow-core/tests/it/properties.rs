//! Properties of every run and event, of random histories, and of runs beside one that kills its process.

mod generators;
mod histories;
mod killer;
mod notifications;
mod retries;
mod single;

use proptest::test_runner::Config;

/// The cases that `PROPTEST_CASES` asks for. A failure is printed, not filed: it becomes a test of its own.
fn config() -> Config {
    Config { failure_persistence: None, ..Config::default() }
}

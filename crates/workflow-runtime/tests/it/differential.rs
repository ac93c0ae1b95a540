//! The in-memory queue and Taquba, driven by the same random operations: every answer and everything that can be seen
//! is the same, or differs in a way that the port leaves open.
//!
//! A failure prints the shortest sequence of operations that shows it; the sequences are the same in every run.

mod operation;
mod pair;

use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use self::operation::{Operation, operations};
use self::pair::Pair;

/// How many sequences are tried at least; every one of its operations must have succeeded and failed by then.
const SEQUENCES: u32 = 96;
/// The most operations of a sequence.
const LENGTH: usize = 40;
/// What must have happened in some sequence.
const COVERED: &[&str] = &[
    "ack: held",
    "ack: gone",
    "change: seen",
    "change: waits",
    "claim: all",
    "claim: none",
    "claim: some of many",
    "commit: conflict",
    "commit: invalid",
    "commit: ok",
    "commit: taken over",
    "dead: held",
    "dead: gone",
    "dead jobs: none",
    "dead jobs: some",
    "drop: dead",
    "drop: gone",
    "drop: held",
    "drop: waiting",
    "extend: held",
    "extend: gone",
    "get: none",
    "get: some",
    "held: in flight",
    "held: landed",
    "held: lost",
    "job: claimed",
    "job: dead",
    "job: none",
    "job: requeued",
    "job: waiting",
    "persist: ok",
    "reopen: clean",
    "requeue: dead",
    "requeue: not dead",
    "scan: all",
    "scan: more",
    "scan: more, backwards",
    "scan: none",
    "wait: due",
    "wait: lapsed",
];

#[test]
fn the_same_operations_have_the_same_answers_on_both_queues() {
    let config = Config { cases: SEQUENCES, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let covered = Mutex::new(BTreeSet::new());
    let ran = runner.run(&vec(operations(), 1..=LENGTH), |operations| {
        let happened = drive(&operations)?;
        covered.lock().unwrap().extend(happened);
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    let covered = covered.into_inner().unwrap();
    let missed: Vec<_> = COVERED.iter().filter(|wanted| !covered.contains(**wanted)).collect();
    assert!(missed.is_empty(), "{SEQUENCES} sequences of operations never came to {missed:?}");
}

/// Runs one sequence on two fresh queues. What happened in it.
fn drive(operations: &[Operation]) -> Result<BTreeSet<&'static str>, TestCaseError> {
    let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    paused.block_on(async {
        let mut pair = Pair::new().await;
        for operation in operations {
            pair.run(operation).await?;
        }
        pair.end().await
    })
}

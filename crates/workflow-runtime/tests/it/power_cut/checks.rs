//! What must hold after a cut (the letters are those of the promises in the design: O1 what was acknowledged is there,
//! O2 one end, O3 everything ends, O5 what is committed does not run again, O6 the same answer each time).

use std::collections::BTreeMap;
use std::time::Duration;

use ::taquba::JobStatus;
use workflow_runtime::{RunOutcome, RunPhase, TerminalStatus};

use super::log::{Log, Told};
use super::scenario::{Process, RUNS};
use crate::support::until;

/// O1, right after opening, before anything runs.
pub(super) async fn what_was_told_holds(process: &Process, log: &Log) {
    let runtime = &process.runtime;
    for told in log.told() {
        match told {
            Told::Started | Told::Memo { .. } => {}
            Told::Submitted { run, .. } | Told::Mismatch { run } => {
                assert!(runtime.status(run).await.unwrap().is_some(), "`{run}` is lost");
            }
            Told::Step { run, step } => {
                let status = runtime.status(&run).await.unwrap().expect("a run whose step was called is there");
                assert!(status.step >= step, "step {step} of `{run}` had started: {status:?}");
            }
            Told::Kv { key, value } => {
                let now = runtime.kv().get(key.as_bytes()).await.unwrap();
                let now = now.map(|now| String::from_utf8_lossy(&now).into_owned());
                assert!(now >= value, "`{key}` was {value:?} and is {now:?}");
            }
            Told::Ended(outcome) | Told::Hook(outcome) => {
                let end = runtime.run_end(&outcome.run_id).await.unwrap();
                assert_eq!(end, Some(outcome), "an end is lost");
            }
        }
    }
}

/// O2 and O3, once the client has seen all ends.
pub(super) async fn everything_ended_right(process: &Process, log: &Log) {
    let (runtime, view) = (&process.runtime, process.queue.view());
    for (run, steps) in RUNS.into_iter().zip(["4", "1", ""]) {
        let status = runtime.status(run).await.unwrap().unwrap();
        assert!(matches!(status.phase, RunPhase::Ended { .. }), "{status:?}");
        let value = async |key: &str| {
            let value = runtime.kv().get(format!("{key}/{run}").as_bytes()).await.unwrap();
            String::from_utf8(value.unwrap_or_default().to_vec()).unwrap()
        };
        assert_eq!(value("steps").await, steps, "each step of `{run}` takes effect once");
        assert_eq!(value("hooks").await, "1", "the hook's effects of `{run}` apply once");
        let end = runtime.run_end(run).await.unwrap().unwrap();
        assert_eq!(value("ended").await, format!("{:?}", end.status));
        let submitted = if run == "long" { "" } else { "yes" };
        assert_eq!(value("submitted").await, submitted, "what `{run}` was submitted with");
        check_end(&end, log);
    }
    // The doorbells are settled a little later than the ends are told.
    let left = async || {
        let mut left = Vec::new();
        for queue in ["workflow-steps", "workflow-steps.notifications"] {
            for status in [JobStatus::Pending, JobStatus::Claimed, JobStatus::Scheduled] {
                left.extend(view.list_jobs(queue, status, None, 10).await.unwrap().jobs);
            }
        }
        left
    };
    let settled = tokio::time::timeout(Duration::from_secs(20), until(async || left().await.is_empty()));
    assert!(settled.await.is_ok(), "jobs are left: {:?}", left().await);
    let dead = view.dead_jobs("workflow-steps", None, 10).await.unwrap();
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert!(view.dead_jobs("workflow-steps.notifications", None, 10).await.unwrap().is_empty());
}

fn check_end(end: &RunOutcome, log: &Log) {
    let memo = log.told().into_iter().find_map(|told| match told {
        Told::Memo { key, value } if key == "run" => Some(value.into_bytes()),
        _ => None,
    });
    let expected = match end.run_id.as_str() {
        "long" => (TerminalStatus::Succeeded, memo, None, 3),
        "short" => (TerminalStatus::Succeeded, Some(vec![2; 40_000]), None, 0),
        _ => (TerminalStatus::Failed, None, Some("dead".to_owned()), 0),
    };
    assert_eq!((end.status, end.result.clone(), end.error.clone(), end.final_step), expected, "{}", end.run_id);
}

/// O2, O5 and O6, over all processes of a case.
pub(super) fn nothing_told_contradicts(log: &Log) {
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    let mut steps: BTreeMap<String, u32> = BTreeMap::new();
    let mut memos: BTreeMap<String, String> = BTreeMap::new();
    let mut ends: BTreeMap<String, RunOutcome> = BTreeMap::new();
    let mut hooks: BTreeMap<String, usize> = BTreeMap::new();
    for told in log.told() {
        match told {
            Told::Started | Told::Mismatch { .. } | Told::Kv { .. } => {}
            Told::Submitted { run, newly } => *made.entry(run).or_default() += usize::from(newly),
            Told::Step { run, step } => {
                assert!(!ends.contains_key(&run), "step {step} of `{run}` runs after the end was told");
                let last = steps.insert(run.clone(), step).unwrap_or_default();
                assert!(step == last || step == last + 1, "step {step} of `{run}` runs after step {last}");
            }
            Told::Memo { key, value } => {
                let first = memos.entry(key.clone()).or_insert_with(|| value.clone());
                assert_eq!(*first, value, "memo `{key}` has changed");
            }
            Told::Ended(outcome) => told_end(&mut ends, outcome),
            Told::Hook(outcome) => {
                *hooks.entry(outcome.run_id.clone()).or_default() += 1;
                told_end(&mut ends, outcome);
            }
        }
    }
    for run in RUNS {
        assert!(made.get(run).is_none_or(|made| *made <= 1), "`{run}` was made twice");
        assert!(hooks.contains_key(run), "nobody told the hook of `{run}`");
    }
}

fn told_end(ends: &mut BTreeMap<String, RunOutcome>, outcome: RunOutcome) {
    let first = ends.entry(outcome.run_id.clone()).or_insert_with(|| outcome.clone());
    assert_eq!(*first, outcome, "two ends");
}

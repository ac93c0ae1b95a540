//! A real bucket, or a server that speaks the protocol of one. The variable `BUCKET_URL` names it, such as `s3://tests`;
//! the variables of its provider say where it is and who may use it.

use std::time::Duration;

use workflow_runtime::{
    Error, NoopTerminalHook, RunSpec, StepOutcome, Storage, TerminalStatus, WorkflowRuntime, open, open_reader,
};

use crate::support::{Runner, spec, succeed};

/// A prefix in the bucket that nobody else uses.
fn fresh_url() -> String {
    let bucket = std::env::var("BUCKET_URL").expect("BUCKET_URL names a bucket that is there");
    format!("{}/{:016x}", bucket.trim_end_matches('/'), rand::random::<u64>())
}

/// Three steps, of which the last has a payload that is an object of its own.
fn runtime(storage: &Storage) -> WorkflowRuntime<Runner, NoopTerminalHook> {
    let runner = Runner::sync(|step| match step.step_number {
        0 => Ok(StepOutcome::continue_now(b"small".to_vec())),
        1 => {
            step.effects.put("seen", "1")?;
            Ok(StepOutcome::continue_after(vec![7; 100_000], Duration::from_millis(5)))
        }
        _ => succeed(step),
    });
    storage.runtime(runner, NoopTerminalHook).build().unwrap()
}

#[tokio::test]
#[ignore = "needs a bucket: docs/testing.md tells how to run it"]
async fn runs_go_on_in_a_bucket_that_is_opened_again() {
    let url = fresh_url();
    assert!(matches!(open_reader(&url).await, Err(Error::NoStore { .. })));
    let storage = open(&url).await.unwrap();
    runtime(&storage).submit(spec("a", "input")).await.unwrap();
    storage.close().await.unwrap();

    let storage = open(&url).await.unwrap();
    let runtime = runtime(&storage);
    let handle = runtime.spawn(std::future::pending());
    let end = runtime.wait("a").await.unwrap();
    assert_eq!((end.status, end.result.map(|result| result.len())), (TerminalStatus::Succeeded, Some(100_000)));
    let reader = open_reader(&url).await.unwrap();
    let seen_end = reader.runs("workflow-steps").unwrap().run_end("a").await.unwrap();
    assert_eq!(seen_end.map(|end| end.status), Some(TerminalStatus::Succeeded));
    assert_eq!(reader.kv().get(b"seen").await.unwrap().as_deref(), Some(&b"1"[..]));
    reader.close().await.unwrap();
    handle.shutdown().await.unwrap();
    drop(runtime);
    storage.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a bucket: docs/testing.md tells how to run it"]
async fn a_bucket_that_is_not_there_is_told() {
    let url = fresh_url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let bucket = rest.split('/').next().unwrap();
    let nowhere = format!("{scheme}://{bucket}-that-is-not-there/prefix");
    assert!(matches!(open(&nowhere).await, Err(Error::Store(_))));
    assert!(matches!(open_reader(&nowhere).await, Err(Error::Store(_))));
}

#[tokio::test]
#[ignore = "needs a bucket: docs/testing.md tells how to run it"]
async fn a_bucket_is_taken_away_from_its_first_opening_by_the_second() {
    let url = fresh_url();
    let first = open(&url).await.unwrap();
    let second = open(&url).await.unwrap();
    let refused = runtime(&first).submit(RunSpec::default()).await.unwrap_err();
    assert!(refused.is_closed(), "{refused}");
    runtime(&second).submit(RunSpec::default()).await.unwrap();
    second.close().await.unwrap();
}

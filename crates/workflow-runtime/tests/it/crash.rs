//! User code that aborts the process on every call: it uses up its own attempts and not its neighbours'.
//!
//! The process that dies is this test program once more, started with the ignored test [`child`] alone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{
    RunOutcome, RunSpec, Step, StepError, StepOutcome, StepRunner, Storage, TerminalEffects, TerminalHook,
    TerminalStatus, WorkflowRuntime, open,
};

use crate::support::{Answer, at_once, until};

/// Where the child finds its store, and which part of it aborts.
const STORE: &str = "CRASH_TEST_STORE";
const KILLER: &str = "CRASH_TEST_KILLER";

const STEP_QUEUE: &str = "workflow-steps";
const HOOK_QUEUE: &str = "workflow-steps.notifications";

const NEIGHBOURS: usize = 50;
const STEPS: u32 = 3;
/// How long a neighbour's step or hook takes: long enough that each death of the process meets all of them at work.
const WORK: Duration = Duration::from_millis(20);
const STEP_ATTEMPTS: u32 = 5;
/// A neighbour loses at most three.
const HOOK_ATTEMPTS: u32 = 4;
/// Far more than it takes.
const MAX_STARTS: usize = 12;
const CHILD_TIMEOUT: Duration = Duration::from_secs(60);

/// Three steps and a hook; the run `killer` aborts the process where it is told to.
struct Program {
    killer: Killer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Killer {
    Step,
    Hook,
}

impl StepRunner for Program {
    async fn run_step(&self, step: &Step) -> Answer {
        if step.run_id == "killer" && step.step_number == 1 && self.killer == Killer::Step {
            std::process::abort();
        }
        tokio::time::sleep(WORK).await;
        step.effects.put(format!("attempts/{}/{}", step.run_id, step.step_number), step.attempts.to_string())?;
        let payload = step.payload.clone();
        Ok(match step.step_number + 1 {
            STEPS => StepOutcome::Succeed { result: payload },
            // Some go through the queue and its timer.
            next if payload.len().is_multiple_of(5) => StepOutcome::continue_after(payload, WORK / next),
            _ => StepOutcome::continue_now(payload),
        })
    }
}

impl TerminalHook for Program {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        if outcome.run_id == "killer" && self.killer == Killer::Hook {
            std::process::abort();
        }
        tokio::time::sleep(WORK).await;
        let RunOutcome { status, error, .. } = outcome;
        effects
            .put(format!("told/{}", outcome.run_id), format!("{status:?} {}", error.as_deref().unwrap_or_default()))?;
        Ok(())
    }
}

fn runtime(storage: &Storage, killer: Killer) -> WorkflowRuntime<Program, Program> {
    let builder = storage.runtime(Program { killer }, Program { killer }).retry_policy(at_once());
    builder.max_attempts_per_step(STEP_ATTEMPTS).hook_attempts(HOOK_ATTEMPTS).build().unwrap()
}

/// The killer and its neighbours, whose inputs are of different lengths.
fn specs() -> impl Iterator<Item = RunSpec> {
    let neighbours = (0..NEIGHBOURS).map(|number| (format!("neighbour-{number}"), vec![b'x'; number]));
    let runs = std::iter::once(("killer".to_owned(), Vec::new())).chain(neighbours);
    runs.map(|(run_id, input)| RunSpec { run_id: Some(run_id), input, ..RunSpec::default() })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that the other tests start; alone it has nothing to do"]
async fn child() {
    let Ok(store) = std::env::var(STORE) else { return };
    let killer = if std::env::var(KILLER).as_deref() == Ok("hook") { Killer::Hook } else { Killer::Step };
    let work = async {
        let storage = open(&store).await.unwrap();
        let runtime = runtime(&storage, killer);
        for spec in specs() {
            runtime.submit(spec).await.unwrap();
        }
        let runner = runtime.spawn(std::future::pending());
        for spec in specs() {
            runtime.wait(&spec.run_id.unwrap()).await.unwrap();
        }
        // Every hook was called or given up, and the killer's job is settled.
        until(async || rows(&storage, "told/").await.len() + dead_jobs(&storage, HOOK_QUEUE).await.len() > NEIGHBOURS)
            .await;
        until(async || killer == Killer::Hook || !dead_jobs(&storage, STEP_QUEUE).await.is_empty()).await;
        runner.shutdown().await.unwrap();
        drop(runtime);
        storage.close().await.unwrap();
    };
    tokio::time::timeout(CHILD_TIMEOUT, work).await.expect("the runs end in time");
}

/// Starts the child until it survives, and says how often it was started.
fn start_until_done(store: &str, killer: &str) -> usize {
    for start in 1..=MAX_STARTS {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--ignored", "--nocapture"])
            .env(STORE, store)
            .env(KILLER, killer)
            .output()
            .unwrap();
        if output.status.success() {
            return start;
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        // A test that fails ends with a code; a process that aborts ends by a signal.
        assert_eq!(output.status.code(), None, "start {start}: {stderr}");
    }
    panic!("the process still dies at start {MAX_STARTS}");
}

fn url(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// The rows of the application below `prefix`: the rest of the key, and the value.
async fn rows(storage: &Storage, prefix: &str) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rows: Vec<_> = storage.kv().scan(prefix.as_bytes()).try_collect().await.unwrap();
    rows.iter().map(|(key, value)| (text(&key[prefix.len()..]), text(value))).collect()
}

/// The ids of the dead jobs of `queue`.
async fn dead_jobs(storage: &Storage, queue: &str) -> Vec<String> {
    let jobs = storage.queue().view().dead_jobs(queue, None, 1_000).await.unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}

/// What every neighbour is owed: its success, told to its hook, after at most three lost attempts of each step.
async fn check_neighbours(storage: &Storage, runtime: &WorkflowRuntime<Program, Program>) {
    let told = rows(storage, "told/neighbour-").await;
    assert_eq!(told.len(), NEIGHBOURS);
    assert!(told.iter().all(|(_, end)| end == "Succeeded "), "{told:?}");
    let attempts = rows(storage, "attempts/neighbour-").await;
    assert_eq!(attempts.len(), NEIGHBOURS * STEPS as usize);
    assert!(attempts.iter().all(|(_, number)| number.parse::<u32>().unwrap() <= 1 + 3), "{attempts:?}");
    for spec in specs().skip(1) {
        let end = runtime.run_end(&spec.run_id.unwrap()).await.unwrap().unwrap();
        assert_eq!((end.status, end.result), (TerminalStatus::Succeeded, Some(spec.input)));
    }
}

#[tokio::test]
async fn a_runner_that_aborts_the_process_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let starts = start_until_done(&url(folder.path()), "step");
    assert!(starts > STEP_ATTEMPTS as usize, "{starts} starts for {STEP_ATTEMPTS} attempts that each end the process");

    let storage = open(&url(folder.path())).await.unwrap();
    let runtime = runtime(&storage, Killer::Step);
    check_neighbours(&storage, &runtime).await;
    let end = runtime.run_end("killer").await.unwrap().unwrap();
    let error = "step 1 used up its 5 attempts: each was lost with its process or its lease";
    assert_eq!((end.status, end.error.as_deref(), end.final_step), (TerminalStatus::Failed, Some(error), 1));
    assert_eq!(rows(&storage, "told/killer").await, [(String::new(), format!("Failed {error}"))]);
    let job = runtime.submit(specs().next().unwrap()).await.unwrap().job_id;
    assert_eq!(dead_jobs(&storage, STEP_QUEUE).await, [job]);
    assert_eq!(dead_jobs(&storage, HOOK_QUEUE).await, [""; 0]);
}

#[tokio::test]
async fn a_hook_that_aborts_the_process_is_given_up_alone() {
    let folder = tempfile::tempdir().unwrap();
    let starts = start_until_done(&url(folder.path()), "hook");
    assert!(starts > HOOK_ATTEMPTS as usize, "{starts} starts for {HOOK_ATTEMPTS} calls that each end the process");

    let storage = open(&url(folder.path())).await.unwrap();
    let runtime = runtime(&storage, Killer::Hook);
    check_neighbours(&storage, &runtime).await;
    let end = runtime.run_end("killer").await.unwrap().unwrap();
    assert_eq!((end.status, end.result), (TerminalStatus::Succeeded, Some(Vec::new())));
    assert_eq!(rows(&storage, "told/killer").await, []);
    assert_eq!(dead_jobs(&storage, STEP_QUEUE).await, [""; 0]);
    assert_eq!(dead_jobs(&storage, HOOK_QUEUE).await.len(), 1);
}

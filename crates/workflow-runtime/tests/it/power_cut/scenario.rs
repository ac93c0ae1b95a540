//! The scenario: three runs that use every way in which a step, a submission and a hook can write.
//!
//! - `long`: four steps with effects, memos, an object, a delay, a failed attempt, a result made of the memos.
//! - `short`: submitted with KV writes, one step.
//! - `dies`: a permanent error, so that its job becomes a dead letter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ::taquba::{OpenOptions, Queue};
use object_store::ObjectStore;
use workflow_effects::KvReadHandle;
use workflow_runtime::{
    Error, Memo, RunOutcome, RunSpec, Step, StepError, StepOutcome, StepRunner, TaqubaQueue, TerminalEffects,
    TerminalHook, WorkflowRuntime,
};

use super::log::{Log, Told};
use crate::support::{Answer, at_once, spec};

pub(super) const RUNS: [&str; 3] = ["long", "short", "dies"];
/// Above the inline limit: carried by an object.
const LARGE: usize = 40_000;

/// A process that has the store open.
pub(super) struct Process {
    pub(super) queue: Arc<Queue>,
    pub(super) runtime: WorkflowRuntime<Worker, Observer>,
}

/// Opens the store and starts a runtime on it, its loop not running yet.
pub(super) async fn opened(store: Arc<dyn ObjectStore>, log: &Log) -> Process {
    let mut options = OpenOptions::default()
        .flush_interval(Duration::from_millis(1))
        .scheduler_interval(Duration::from_secs(60))
        .payload_offload_threshold(None);
    options.default_queue_config = options.default_queue_config.dead_retention(None);
    let queue = Arc::new(Queue::open_with_options(store.clone(), "queue", options).await.unwrap());
    let kv = KvReadHandle::new(Arc::new(TaqubaQueue::over(queue.clone())));
    let (worker, observer) = (Worker { log: log.clone() }, Observer { log: log.clone(), kv });
    let builder = WorkflowRuntime::builder(queue.clone(), store, worker, observer);
    let runtime = builder.retry_policy(at_once()).build().unwrap();
    Process { queue, runtime }
}

/// What the application's own code does in each of its processes: starts the loop, submits everything, waits for all.
pub(super) async fn client(process: &Process, log: &Log) {
    let runtime = &process.runtime;
    runtime.spawn(std::future::pending());
    for run in RUNS {
        let key = format!("submitted/{run}").into_bytes();
        let submission = || RunSpec { kv_writes: [(key.clone(), b"yes".to_vec())].into(), ..spec(run, "input") };
        let first = runtime.submit(submission());
        let (first, rival) = tokio::join!(first, runtime.submit(submission()));
        for answer in [first, rival] {
            log.tell(Told::Submitted { run, newly: answer.unwrap().newly_submitted });
        }
    }
    let mismatch = runtime.submit(spec("long", "another input")).await;
    assert!(matches!(mismatch, Err(Error::InputMismatch(_))), "{mismatch:?}");
    log.tell(Told::Mismatch { run: "long" });
    for run in RUNS {
        log.tell(Told::Ended(runtime.wait(run).await.unwrap()));
        let hooks = format!("hooks/{run}");
        while read(&runtime.kv(), &hooks, log).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Reads application data; what was seen is told.
async fn read(kv: &KvReadHandle, key: &str, log: &Log) -> Result<Option<String>, StepError> {
    let value = kv.get(key.as_bytes()).await?.map(|value| String::from_utf8_lossy(&value).into_owned());
    log.tell(Told::Kv { key: key.to_owned(), value: value.clone() });
    Ok(value)
}

/// One more than the number at `key`.
async fn one_more(kv: &KvReadHandle, key: &str, log: &Log) -> Result<String, StepError> {
    let count: u32 = read(kv, key, log).await?.map_or(0, |count| count.parse().unwrap());
    Ok((count + 1).to_string())
}

/// The steps.
pub(super) struct Worker {
    log: Log,
}

impl StepRunner for Worker {
    async fn run_step(&self, step: &Step) -> Answer {
        self.log.tell(Told::Step { run: step.run_id.clone(), step: step.step_number });
        step.effects.put(format!("steps/{}", step.run_id), one_more(&step.kv, &steps_key(step), &self.log).await?)?;
        match (step.run_id.as_str(), step.step_number) {
            ("long", 0) => {
                self.paid(&step.run_memo, "run", &[]).await?;
                self.paid(&step.memo, "step-0", &[7; LARGE]).await?;
                Ok(StepOutcome::continue_now(vec![1; LARGE]))
            }
            ("long", 1) => {
                assert_eq!(step.payload, [1; LARGE]);
                Ok(StepOutcome::continue_after(b"delayed".to_vec(), Duration::from_millis(3)))
            }
            ("long", 2) => {
                assert_eq!(step.payload, b"delayed");
                self.paid(&step.memo, "step-2", &[]).await?;
                match step.attempts {
                    1 => Err(StepError::transient("the first attempt fails")),
                    _ => Ok(StepOutcome::continue_now(Vec::new())),
                }
            }
            ("long", 3) => {
                step.effects.delete("submitted/long")?;
                Ok(StepOutcome::Succeed { result: self.paid(&step.run_memo, "run", &[]).await? })
            }
            ("short", 0) => {
                assert!(step.kv.get(b"submitted/short").await?.is_some());
                Ok(StepOutcome::Succeed { result: vec![2; LARGE] })
            }
            ("dies", 0) => Err(StepError::permanent("dead")),
            other => panic!("there is no step {other:?}"),
        }
    }
}

fn steps_key(step: &Step) -> String {
    format!("steps/{}", step.run_id)
}

impl Worker {
    /// Work that gives another answer each time that it is done, and `padding`.
    async fn paid(&self, memo: &Memo, key: &str, padding: &[u8]) -> Result<Vec<u8>, StepError> {
        static WORK: AtomicU32 = AtomicU32::new(0);
        let found = memo.get(key).await?;
        let value = match found {
            Some(value) => value,
            None => {
                let answer = format!("{key} {}", WORK.fetch_add(1, Ordering::Relaxed));
                let value = [answer.as_bytes(), padding].concat();
                memo.put(key, &value).await?;
                value
            }
        };
        let told = String::from_utf8_lossy(&value[..value.len() - padding.len()]).into_owned();
        self.log.tell(Told::Memo { key: key.to_owned(), value: told });
        Ok(value)
    }
}

/// The hook: counts how often its effects were applied.
pub(super) struct Observer {
    log: Log,
    kv: KvReadHandle,
}

impl TerminalHook for Observer {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        self.log.tell(Told::Hook(outcome.clone()));
        let key = format!("hooks/{}", outcome.run_id);
        effects.put(key.clone(), one_more(&self.kv, &key, &self.log).await?)?;
        effects.put(format!("ended/{}", outcome.run_id), format!("{:?}", outcome.status))?;
        Ok(())
    }
}

//! A disk, and runtimes over it whose steps follow a script.

use std::future::{Future, pending};
use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use workflow_runtime::{
    Error, IdSource, QueuePort, RunOutcome, RunPhase, RunSpec, RunStatus, RunnerHandle, Settings, Step, StepError,
    StepOutcome, StepRunner, SubmitOutcome, TerminalEffects, TerminalHook, WorkflowRuntime,
};
use workflow_testkit::{Chance, Coverage, MemoryDisk, MemoryQueue};

use crate::faults::Drawn;

/// The run that a test is about, unless it names others.
pub(crate) const RUN: &str = "r";

pub(crate) type Runtime = WorkflowRuntime<Scripted, Told>;

/// What one call of the script began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) run_id: String,
    pub(crate) step: u32,
    pub(crate) attempt: u32,
    /// The key and the payload of the signal that it was called with.
    pub(crate) signal: Option<(String, String)>,
    /// Whether its token had fired.
    pub(crate) cancelled: bool,
}

type Script = dyn Fn(Step) -> BoxFuture<'static, Result<StepOutcome, StepError>> + Send + Sync;

/// A runner that writes down what it is called with and does what the script says.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

type Answer = dyn Fn(&RunOutcome) -> Result<(), StepError> + Send + Sync;

/// A hook that writes down what it is told, if anybody wants to know.
#[derive(Clone, Default)]
pub(crate) struct Told {
    listens: bool,
    answer: Option<Arc<Answer>>,
    told: Arc<Mutex<Vec<RunOutcome>>>,
}

/// One disk and what it takes to open runtimes over it, process after process.
pub(crate) struct World {
    pub(crate) disk: MemoryDisk,
    pub(crate) queue: MemoryQueue,
    pub(crate) objects: Arc<InMemory>,
    pub(crate) runner: Scripted,
    pub(crate) hook: Told,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Settings,
    /// What its runtimes have decided.
    pub(crate) coverage: Arc<Mutex<Coverage>>,
}

impl Scripted {
    pub(crate) fn new<F>(script: impl Fn(Step) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<StepOutcome, StepError>> + Send + 'static,
    {
        Self { script: Arc::new(move |step| script(step).boxed()), seen: Arc::default() }
    }

    /// Waits once for a signal on one of `keys`, and ends with it: `key=payload`, or `-` when none came in time.
    pub(crate) fn waits_for(keys: &[&str], timeout: Duration) -> Self {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        Self::new(move |step| {
            let keys = keys.clone();
            async move {
                Ok(match step.step_number {
                    0 => StepOutcome::continue_on_any_signal(step.payload, keys, timeout),
                    _ => StepOutcome::Succeed { result: text_of(&step).into() },
                })
            }
        })
    }

    /// The calls so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// The signal that a step was called with, as `key=payload`.
pub(crate) fn text_of(step: &Step) -> String {
    match (&step.signal_key, &step.signal) {
        (Some(key), Some(payload)) => format!("{key}={}", String::from_utf8_lossy(payload)),
        _ => "-".to_owned(),
    }
}

impl StepRunner for Scripted {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let signal = step.signal_key.clone().zip(step.signal.clone());
        self.seen.lock().unwrap().push(Seen {
            run_id: step.run_id.clone(),
            step: step.step_number,
            attempt: step.attempts,
            signal: signal.map(|(key, payload)| (key, String::from_utf8_lossy(&payload).into_owned())),
            cancelled: step.cancel_token.is_cancelled(),
        });
        (self.script)(step.clone()).await
    }
}

impl Told {
    /// A hook that answers so.
    pub(crate) fn answering(answer: impl Fn(&RunOutcome) -> Result<(), StepError> + Send + Sync + 'static) -> Self {
        Self { listens: true, answer: Some(Arc::new(answer)), ..Self::default() }
    }

    pub(crate) fn ends(&self) -> Vec<RunOutcome> {
        self.told.lock().unwrap().clone()
    }
}

impl TerminalHook for Told {
    async fn on_termination(&self, outcome: &RunOutcome, _: &TerminalEffects) -> Result<(), StepError> {
        self.told.lock().unwrap().push(outcome.clone());
        self.answer.as_ref().map_or(Ok(()), |answer| answer(outcome))
    }

    fn observes(&self, _: &RunOutcome) -> bool {
        self.listens
    }
}

impl World {
    pub(crate) fn new(runner: Scripted) -> Self {
        let disk = MemoryDisk::default();
        let queue = disk.open();
        let hook = Told { listens: true, ..Told::default() };
        let ids = Arc::new(Drawn::new(Chance::of(5)));
        // An idle loop takes all its slots each time it looks for work: few make for short tests.
        let settings = Settings { max_concurrent_steps: 16, max_concurrent_hooks: 16, ..Settings::default() };
        let coverage = Arc::default();
        Self { disk, queue, objects: Arc::default(), runner, hook, ids, settings, coverage }
    }

    /// The same without anybody who wants to know of ends.
    pub(crate) fn without_hook(runner: Scripted) -> Self {
        Self { hook: Told::default(), ..Self::new(runner) }
    }

    /// The world with these settings.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// A runtime over the present opening.
    pub(crate) fn runtime(&self) -> Runtime {
        self.over(Arc::new(self.queue.clone()))
    }

    pub(crate) fn over(&self, port: Arc<dyn QueuePort>) -> Runtime {
        let built = WorkflowRuntime::over(port, self.objects.clone(), self.runner.clone(), self.hook.clone());
        let coverage = self.coverage.clone();
        let built = built.on_decision(move |decision| coverage.lock().unwrap().add(decision));
        built.settings(self.settings.clone()).ids(self.ids.clone()).build().unwrap()
    }

    /// A runtime whose loop runs.
    pub(crate) fn running(&self) -> (Runtime, RunnerHandle) {
        let runtime = self.runtime();
        let running = runtime.spawn(pending());
        (runtime, running)
    }

    /// The process dies, and another opens the disk.
    pub(crate) fn crash(&mut self) {
        self.queue = self.disk.open();
    }

    /// Ends every loop over the world, as the next process does: a test that makes many worlds ends each.
    pub(crate) fn stop(&self) {
        drop(self.disk.open());
    }

    /// How many rows of the runtime there are of a kind, such as `signal-item`.
    pub(crate) fn rows(&self, kind: &str) -> usize {
        let prefix = format!("workflow/{}/{kind}/", self.settings.queue_name);
        self.disk.entries().iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())).count()
    }

    /// Every row of the runtime that belongs to a run or signal, every job and every object, by its name.
    pub(crate) async fn leftovers(&self) -> Vec<String> {
        let prefix = format!("workflow/{}/", self.settings.queue_name);
        let kept = format!("{prefix}priority/");
        let is_left = |key: &[u8]| key.starts_with(prefix.as_bytes()) && !key.starts_with(kept.as_bytes());
        let rows = self.disk.entries().into_iter().map(|(key, _)| key).filter(|key| is_left(key));
        let rows = rows.map(|key| key.escape_ascii().to_string());
        let jobs = self.disk.jobs().into_iter().map(|(job, stored)| format!("job {job}: {stored:?}"));
        let objects: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        rows.chain(jobs).chain(objects.into_iter().map(|object| object.location.to_string())).collect()
    }

    /// Waits until the script was called so often.
    pub(crate) async fn until_called(&self, calls: usize) {
        while self.runner.seen().len() < calls {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The step and the attempt of each call of the script.
    pub(crate) fn calls(&self) -> Vec<(u32, u32)> {
        self.runner.seen().iter().map(|seen| (seen.step, seen.attempt)).collect()
    }

    /// How many objects there are.
    pub(crate) async fn objects(&self) -> usize {
        self.paths().await.len()
    }

    /// The paths of the objects.
    pub(crate) async fn paths(&self) -> Vec<String> {
        self.objects.list(None).map_ok(|object| object.location.into()).try_collect().await.unwrap()
    }
}

pub(crate) async fn submit(runtime: &Runtime, run_id: &str) -> SubmitOutcome {
    submit_with(runtime, run_id, "in").await.unwrap()
}

pub(crate) async fn submit_with(runtime: &Runtime, run_id: &str, input: &str) -> Result<SubmitOutcome, Error> {
    let spec = RunSpec { run_id: Some(run_id.to_owned()), input: input.into(), ..RunSpec::default() };
    runtime.submit(spec).await
}

/// Lets the loop do what is to be done at once.
pub(crate) async fn settle_down() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Waits until the run's status is as asked for.
pub(crate) async fn until(runtime: &Runtime, run_id: &str, is_so: impl Fn(&RunStatus) -> bool) -> RunStatus {
    for millis in iter::repeat_n(1, 1_000).chain(iter::repeat(100)) {
        let status = runtime.status(run_id).await.unwrap().unwrap();
        if is_so(&status) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    unreachable!("it waits for ever")
}

/// Waits until the run waits for a signal.
pub(crate) async fn until_it_waits(runtime: &Runtime, run_id: &str) {
    until(runtime, run_id, |status| matches!(status.phase, RunPhase::Waiting { .. })).await;
}

/// The result with which the run succeeds.
pub(crate) async fn result_of(runtime: &Runtime, run_id: &str) -> String {
    let end = runtime.wait(run_id).await.unwrap();
    let result = end.result.clone().unwrap_or_else(|| panic!("it has no result: {end:?}"));
    String::from_utf8(result).unwrap()
}

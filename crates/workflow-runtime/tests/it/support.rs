//! What the tests share: runners made of closures, a runtime on a store in memory, ways to wait without sleeping.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use workflow_effects::{Commit, KvStore};
use workflow_runtime::{
    NoopTerminalHook, RetryPolicy, RunOutcome, RunSpec, RunnerHandle, Step, StepError, StepOutcome, StepRunner,
    Storage, TaqubaQueue, TerminalEffects, TerminalHook, WorkflowRuntime, WorkflowRuntimeBuilder, open,
};

/// Where the store of a measurement is kept: in memory, or in a folder of `STORE`, for a process that only opens it.
pub(crate) fn disk(name: &str) -> Arc<dyn ObjectStore> {
    let Ok(folder) = std::env::var("STORE") else { return Arc::new(InMemory::new()) };
    let folder = Path::new(&folder).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    Arc::new(LocalFileSystem::new_with_prefix(&folder).unwrap())
}

/// The answer of a step.
pub(crate) type Answer = Result<StepOutcome, StepError>;
type BoxedAnswer = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Calls = Arc<dyn Fn(Step) -> BoxedAnswer + Send + Sync>;

/// A runner made of a closure.
#[derive(Clone)]
pub(crate) struct Runner(Calls);

impl Runner {
    /// A runner that answers without waiting.
    pub(crate) fn sync(answer: impl Fn(&Step) -> Answer + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |step| {
            let answer = answer(&step);
            Box::pin(async move { answer })
        }))
    }

    /// A runner that may wait.
    pub(crate) fn new<F>(answer: impl Fn(Step) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self(Arc::new(move |step| Box::pin(answer(step))))
    }
}

impl StepRunner for Runner {
    async fn run_step(&self, step: &Step) -> Answer {
        (self.0)(step.clone()).await
    }
}

/// A hook that notes every end it is told, and fails as often as it is asked to.
#[derive(Clone, Default)]
pub(crate) struct Hook {
    pub(crate) told: Arc<Mutex<Vec<RunOutcome>>>,
    pub(crate) failures: Arc<Mutex<Vec<StepError>>>,
}

impl TerminalHook for Hook {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        self.told.lock().unwrap().push(outcome.clone());
        effects.put(format!("told/{}", outcome.run_id), format!("{:?}", outcome.status))?;
        match self.failures.lock().unwrap().pop() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl Hook {
    /// The ends told, by run.
    pub(crate) fn told(&self) -> Vec<RunOutcome> {
        self.told.lock().unwrap().clone()
    }
}

/// Succeeds with the payload of the step.
pub(crate) fn succeed(step: &Step) -> Answer {
    Ok(StepOutcome::Succeed { result: step.payload.clone() })
}

/// A submission of `input` under `run_id`.
pub(crate) fn spec(run_id: &str, input: &str) -> RunSpec {
    RunSpec { run_id: Some(run_id.to_owned()), input: input.into(), ..RunSpec::default() }
}

/// Retries without a pause.
pub(crate) fn at_once() -> RetryPolicy {
    RetryPolicy { base: Duration::ZERO, ..RetryPolicy::default() }
}

/// A runtime on a store in memory, its loop running.
pub(crate) struct World<H: TerminalHook + 'static = NoopTerminalHook> {
    pub(crate) storage: Storage,
    pub(crate) runtime: WorkflowRuntime<Runner, H>,
    handle: RunnerHandle,
}

impl World {
    /// Default settings, but retries without a pause.
    pub(crate) async fn new(runner: Runner) -> Self {
        Self::with(runner, NoopTerminalHook, |builder| builder).await
    }
}

impl<H: TerminalHook + 'static> World<H> {
    /// Settings to taste.
    pub(crate) async fn with(
        runner: Runner,
        hook: H,
        settings: impl FnOnce(WorkflowRuntimeBuilder<Runner, H>) -> WorkflowRuntimeBuilder<Runner, H>,
    ) -> Self {
        let storage = open("memory:").await.unwrap();
        let builder = storage.runtime(runner, hook).retry_policy(at_once());
        let runtime = settings(builder).build().unwrap();
        let handle = runtime.spawn(std::future::pending());
        Self { storage, runtime, handle }
    }

    /// Submits and waits for the end.
    pub(crate) async fn end_of(&self, spec: RunSpec) -> RunOutcome {
        let submitted = self.runtime.submit(spec).await.unwrap();
        self.runtime.wait(&submitted.run_id).await.unwrap()
    }

    /// The value of an application key.
    pub(crate) async fn value(&self, key: &str) -> Option<String> {
        let value = self.runtime.kv().get(key.as_bytes()).await.unwrap();
        value.map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    /// The ids of the dead jobs of the steps' queue.
    pub(crate) async fn dead_jobs(&self) -> Vec<String> {
        let jobs = self.storage.queue().view().dead_jobs("workflow-steps", None, 1_000).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect()
    }

    /// Writes, or deletes, a row of the runtime's own without asking what is there. Through the port: it does not look
    /// for what is written behind its back while it is open.
    pub(crate) async fn overwrite(&self, key: &[u8], value: Option<&[u8]>) {
        let key = Bytes::copy_from_slice(key);
        let commit = match value {
            Some(value) => Commit { puts: vec![(key, Bytes::copy_from_slice(value))], ..Commit::default() },
            None => Commit { deletes: vec![key], ..Commit::default() },
        };
        let port = TaqubaQueue::over(self.storage.queue().clone());
        port.commit(vec![commit]).await.remove(0).unwrap();
    }

    /// Stops the loop gracefully and closes the store.
    pub(crate) async fn close(self) {
        self.handle.shutdown().await.unwrap();
        drop(self.runtime);
        self.storage.close().await.unwrap();
    }
}

/// Lets other tasks run until `holds` does, and gives up after a time that no working machine needs.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("what is waited for comes");
}

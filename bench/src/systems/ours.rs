//! This runtime.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use taquba::{OpenOptions, Queue, QueueConfig};
use tokio::sync::Mutex;
use workflow_runtime::{
    CommitMode, NoopTerminalHook, RunPhase, RunSpec, RunnerHandle, Step, StepError, StepOutcome, StepRunner, Storage,
    TerminalStatus, WorkflowRuntime, open_on_with,
};

use super::{Mode, System, Work, close_queue};
use crate::place::Place;

/// A wait that nothing ends but its signal.
const FOREVER: Duration = Duration::from_secs(3_600);

/// The runtime with its loop.
pub struct Ours {
    runtime: WorkflowRuntime<Runner, NoopTerminalHook>,
    worker: Mutex<Option<RunnerHandle>>,
    opened: Opened,
}

/// What is to be closed.
enum Opened {
    Storage(Storage),
    Queue(Arc<Queue>),
}

struct Runner(Work);

impl StepRunner for Runner {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        self.0.begin();
        let shape = self.0.shape;
        for number in 0..shape.memos {
            step.memo.put(&format!("memo-{number}"), &[b'm'; 1024]).await?;
        }
        let payload = step.payload.clone();
        Ok(if step.step_number + 1 >= shape.steps {
            StepOutcome::Succeed { result: payload }
        } else if shape.signalled {
            StepOutcome::continue_on_signal(payload, step.run_id.clone(), FOREVER)
        } else {
            StepOutcome::continue_now(payload)
        })
    }
}

impl Ours {
    /// As `open(url)` opens it.
    pub async fn open(place: &Place, work: Work, mode: Mode) -> anyhow::Result<Self> {
        let storage = open_on_with(place.store.clone(), place.settings).await?;
        let in_flight = work.shape.in_flight;
        let builder = storage.runtime(Runner(work), NoopTerminalHook);
        let commit_mode = if mode == Mode::Pipelined { CommitMode::Pipelined } else { CommitMode::Strict };
        let builder = builder.commit_mode(commit_mode).replay(mode == Mode::Replay);
        let runtime = builder.max_concurrent_steps(in_flight).build()?;
        Ok(Self { runtime, worker: Mutex::default(), opened: Opened::Storage(storage) })
    }

    /// Over a queue of the user's own at its best setting.
    pub async fn open_on_tick(place: &Place, work: Work) -> anyhow::Result<Self> {
        let mut options =
            OpenOptions::default().flush_interval(Duration::from_millis(1)).payload_offload_threshold(None);
        options.default_queue_config = QueueConfig::default().dead_retention(None);
        let queue = Arc::new(Queue::open_with_options(place.store.clone(), "queue", options).await?);
        let in_flight = work.shape.in_flight;
        let builder = WorkflowRuntime::builder(queue.clone(), place.store.clone(), Runner(work), NoopTerminalHook);
        let runtime = builder.max_concurrent_steps(in_flight).build()?;
        Ok(Self { runtime, worker: Mutex::default(), opened: Opened::Queue(queue) })
    }
}

#[async_trait]
impl System for Ours {
    async fn submit(&self, run: &str, input: Vec<u8>) -> anyhow::Result<()> {
        let spec = RunSpec { run_id: Some(run.to_owned()), input, ..RunSpec::default() };
        self.runtime.submit(spec).await?;
        Ok(())
    }

    async fn wait(&self, run: &str) -> anyhow::Result<()> {
        let end = self.runtime.wait(run).await?;
        ensure!(end.status == TerminalStatus::Succeeded, "{run} ended as {:?}", end.status);
        Ok(())
    }

    async fn wait_until_waiting(&self, run: &str) -> anyhow::Result<()> {
        loop {
            let status = self.runtime.status(run).await?.context("the run is not there")?;
            if matches!(status.phase, RunPhase::Waiting { .. }) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn signal(&self, run: &str) -> anyhow::Result<()> {
        self.runtime.signal(run, b"go".to_vec()).await?;
        Ok(())
    }

    async fn start(&self) {
        *self.worker.lock().await = Some(self.runtime.spawn(std::future::pending::<()>()));
    }

    async fn close(self: Arc<Self>) -> anyhow::Result<()> {
        let Self { runtime, worker, opened } = Arc::into_inner(self).context("somebody holds it still")?;
        if let Some(worker) = worker.into_inner() {
            worker.shutdown().await?;
        }
        drop(runtime);
        match opened {
            Opened::Storage(storage) => storage.close().await?,
            Opened::Queue(queue) => close_queue(queue).await?,
        }
        Ok(())
    }
}

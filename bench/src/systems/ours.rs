//! This runtime.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use taquba::{OpenOptions, Queue, QueueConfig};
use tokio::sync::Mutex;
use workflow_runtime::{
    NoopTerminalHook, RunPhase, RunSpec, RunnerHandle, Step, StepError, StepOutcome, StepRunner, TerminalStatus,
    WorkflowRuntime, WorkflowRuntimeBuilder, open_on,
};

use super::System;
use crate::place::Place;
use crate::workload::Shape;

/// A wait that nothing ends but its signal.
const FOREVER: Duration = Duration::from_secs(3_600);

/// The runtime with its loop.
pub struct Ours {
    runtime: WorkflowRuntime<Runner, NoopTerminalHook>,
    worker: Mutex<Option<RunnerHandle>>,
}

struct Runner(Shape);

impl StepRunner for Runner {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        for number in 0..self.0.memos {
            step.memo.put(&format!("memo-{number}"), &[b'm'; 1024]).await?;
        }
        let payload = step.payload.clone();
        Ok(if step.step_number + 1 >= self.0.steps {
            StepOutcome::Succeed { result: payload }
        } else if self.0.signalled {
            StepOutcome::continue_on_signal(payload, step.run_id.clone(), FOREVER)
        } else {
            StepOutcome::continue_now(payload)
        })
    }
}

impl Ours {
    /// As `open(url)` opens it.
    pub async fn open(place: &Place, shape: Shape, replay: bool) -> anyhow::Result<Self> {
        let storage = open_on(place.store.clone()).await?;
        Self::start(storage.runtime(Runner(shape), NoopTerminalHook), shape, replay)
    }

    /// Over a queue of the user's own at its best setting.
    pub async fn open_on_tick(place: &Place, shape: Shape) -> anyhow::Result<Self> {
        let mut options =
            OpenOptions::default().flush_interval(Duration::from_millis(1)).payload_offload_threshold(None);
        options.default_queue_config = QueueConfig::default().dead_retention(None);
        let queue = Arc::new(Queue::open_with_options(place.store.clone(), "queue", options).await?);
        let builder = WorkflowRuntime::builder(queue, place.store.clone(), Runner(shape), NoopTerminalHook);
        Self::start(builder, shape, false)
    }

    fn start(
        builder: WorkflowRuntimeBuilder<Runner, NoopTerminalHook>,
        shape: Shape,
        replay: bool,
    ) -> anyhow::Result<Self> {
        let runtime = builder.max_concurrent_steps(shape.in_flight).replay(replay).build()?;
        let worker = Mutex::new(Some(runtime.spawn(std::future::pending::<()>())));
        Ok(Self { runtime, worker })
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

    async fn stop(&self) -> anyhow::Result<()> {
        match self.worker.lock().await.take() {
            Some(worker) => Ok(worker.shutdown().await?),
            None => Ok(()),
        }
    }
}

//! `taquba-workflow`, at the setting at which it is fastest: a flush interval of 1 ms.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use taquba::{OpenOptions, Queue, SignalOutcome};
use taquba_workflow::{
    NoopTerminalHook, RunId, RunSpec, RunState, RunnerHandle, Step, StepError, StepOutcome, StepRunner, TerminalStatus,
    WorkflowRuntime,
};
use tokio::sync::Mutex;

use super::{System, Work, close_queue};
use crate::place::Place;

/// A wait that nothing ends but its signal.
const FOREVER: Duration = Duration::from_secs(3_600);

/// The runtime with its loop.
pub struct Peer {
    queue: Arc<Queue>,
    runtime: WorkflowRuntime<Runner, NoopTerminalHook>,
    worker: Mutex<Option<RunnerHandle>>,
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
            StepOutcome::continue_on_signal(payload, FOREVER)
        } else {
            StepOutcome::continue_now(payload)
        })
    }
}

impl Peer {
    /// Opens it.
    pub async fn open(place: &Place, work: Work, replay: bool) -> anyhow::Result<Self> {
        let options = OpenOptions::default().flush_interval(Duration::from_millis(1));
        let queue = Arc::new(Queue::open_with_options(place.store.clone(), "queue", options).await?);
        let in_flight = work.shape.in_flight;
        let builder = WorkflowRuntime::builder(queue.clone(), place.store.clone(), Runner(work), NoopTerminalHook)
            .max_concurrent_steps(in_flight);
        let runtime = if replay { builder.step_output_replay() } else { builder }.build()?;
        Ok(Self { queue, runtime, worker: Mutex::default() })
    }
}

#[async_trait]
impl System for Peer {
    async fn submit(&self, run: &str, input: Vec<u8>) -> anyhow::Result<()> {
        let spec = RunSpec { run_id: Some(RunId::new(run)?), input, ..RunSpec::default() };
        self.runtime.submit(spec).await?;
        Ok(())
    }

    async fn wait(&self, run: &str) -> anyhow::Result<()> {
        let end = self.runtime.wait(&RunId::new(run)?).await?;
        let status = end.termination.status;
        ensure!(status == TerminalStatus::Succeeded, "{run} ended as {status:?}");
        Ok(())
    }

    async fn wait_until_waiting(&self, run: &str) -> anyhow::Result<()> {
        loop {
            let status = self.runtime.status(&RunId::new(run)?).await?.context("the run is not there")?;
            if matches!(status.state, RunState::Waiting { .. }) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn signal(&self, run: &str) -> anyhow::Result<()> {
        let status = self.runtime.status(&RunId::new(run)?).await?.context("the run is not there")?;
        let delivered = self.queue.signal(&status.step.job_id, b"go".to_vec()).await?;
        ensure!(delivered == SignalOutcome::Delivered, "{run} does not wait");
        Ok(())
    }

    async fn start(&self) {
        *self.worker.lock().await = Some(self.runtime.spawn(std::future::pending::<()>()));
    }

    async fn close(self: Arc<Self>) -> anyhow::Result<()> {
        let Self { queue, runtime, worker } = Arc::into_inner(self).context("somebody holds it still")?;
        if let Some(worker) = worker.into_inner() {
            worker.shutdown().await?;
        }
        drop(runtime);
        close_queue(queue).await
    }
}

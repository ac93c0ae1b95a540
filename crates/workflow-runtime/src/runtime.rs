//! The handle that applications hold: submit runs, wait for them, run the loop.

mod builder;
mod cancel;
pub(crate) mod change;
mod check;
mod forget;
mod pause;
mod redrive;
mod signal;
mod submit;
mod views;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use workflow_effects::KvReadHandle;

pub use self::builder::WorkflowRuntimeBuilder;
pub use self::cancel::CancelOutcome;
pub use self::pause::{PauseOutcome, ResumeOutcome};
pub use self::redrive::{RedriveOptions, RedriveOutcome};
pub use self::signal::{MAX_SIGNAL_ID_LEN, SignalOptions, SignalOutcome};
use crate::engine::Engine;
use crate::settings::Settings;
use crate::{Error, Result, StepRunner, TerminalHook, worker};

/// Durable workflows of one queue name: submits runs, executes their steps, tells of their ends.
///
/// Clones are handles of the same runtime. Submitting and reading need no running loop; steps execute while
/// [`run`](Self::run) or [`spawn`](Self::spawn) is active in some process that has the store open.
///
/// # Cancel safety
///
/// Every call may be dropped or timed out by its caller. What it began goes on to its end; asking again tells the
/// truth.
pub struct WorkflowRuntime<R, H> {
    engine: Arc<Engine<R, H>>,
}

impl<R, H> Clone for WorkflowRuntime<R, H> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone() }
    }
}

impl<R, H> fmt::Debug for WorkflowRuntime<R, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowRuntime").field("settings", &self.engine.settings).finish_non_exhaustive()
    }
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// The settings that the runtime was built with.
    pub fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// Reads of committed application KV, outside of any step.
    pub fn kv(&self) -> KvReadHandle {
        KvReadHandle::new(self.engine.committer.kv().clone())
    }

    /// Executes steps and hooks until `shutdown` resolves, then drains: nothing new starts, running steps and hooks get
    /// [`shutdown_grace`](Settings::shutdown_grace), and what is left is handed back with its attempt uncounted. Hooks
    /// that are still owed are called after the next start.
    ///
    /// Dropping the future instead stops at once. The deliveries in hand come back when their leases end.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyRunning`] while another call of this handle or a clone runs; [`Error::Closed`] once the store
    /// was closed or taken over by another process, after every step in hand was stopped.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        worker::run(self.engine.clone(), shutdown).await
    }

    /// [`run`](Self::run) in a task of its own, which also ends when [`RunnerHandle::shutdown`] is called.
    pub fn spawn(&self, shutdown: impl Future<Output = ()> + Send + 'static) -> RunnerHandle {
        let stop = CancellationToken::new();
        let (engine, asked) = (self.engine.clone(), stop.clone());
        let task = tokio::spawn(worker::run(engine, async move {
            tokio::select! {
                biased;
                () = asked.cancelled() => {}
                () = shutdown => {}
            }
        }));
        RunnerHandle { stop, task }
    }
}

/// A loop that [`WorkflowRuntime::spawn`] started. Dropping it leaves the loop running, which keeps the store in use.
#[derive(Debug)]
pub struct RunnerHandle {
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

impl RunnerHandle {
    /// Begins the graceful shutdown and waits for its end.
    ///
    /// # Errors
    ///
    /// As [`WorkflowRuntime::run`].
    pub async fn shutdown(self) -> Result<()> {
        self.stop.cancel();
        self.wait().await
    }

    /// Waits until the loop ends by itself or by its shutdown future.
    ///
    /// # Errors
    ///
    /// As [`WorkflowRuntime::run`].
    pub async fn wait(self) -> Result<()> {
        self.task.await.unwrap_or(Err(Error::Interrupted))
    }
}

#[cfg(all(test, feature = "taquba"))]
mod tests;

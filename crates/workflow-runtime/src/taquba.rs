//! The port over Taquba: everything that only this queue needs to be told lives in this module and nowhere else.

mod claims;
mod clock;
mod commits;
mod failure;
mod flights;
mod jobs;
mod known;
mod lanes;
mod leases;
mod lever;
mod lock;
mod open;
mod queue;
mod reader;
mod schedule;
mod timers;
mod watchers;

use std::sync::Arc;

use ::taquba::Queue;
use object_store::ObjectStore;

pub use self::open::{OpenSettings, Storage, open, open_on, open_on_with, open_with};
pub use self::queue::TaqubaQueue;
pub use self::reader::{RunReader, StoreReader, open_reader};
use crate::runtime::{WorkflowRuntime, WorkflowRuntimeBuilder};
use crate::{StepRunner, TerminalHook};

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// A runtime over a Taquba queue that the application opened itself. `store` holds the large values.
    ///
    /// Open the queue with payload offload off, [`dead_retention`](::taquba::QueueConfig::dead_retention) `None` and
    /// one clock for everything; [`open`] does all of that. Sweeps of the queue's own that take dead jobs, or keep done
    /// ones, are not looked for: they harm no run, but scan what they keep again and again. The jobs of runs are tiny,
    /// so a threshold of payload offload in the kilobytes never touches them.
    ///
    /// The queue stays the application's: a second adapter over it shares everything with the first, and it can be
    /// closed once every runtime and handle over it is gone.
    pub fn builder(queue: Arc<Queue>, store: Arc<dyn ObjectStore>, runner: R, hook: H) -> WorkflowRuntimeBuilder<R, H> {
        Self::over(Arc::new(TaqubaQueue::over(queue)), store, runner, hook)
    }
}

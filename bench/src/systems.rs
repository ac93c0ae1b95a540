//! The systems that are measured, behind one small trait.

mod ours;
mod peer;

use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::bail;
use async_trait::async_trait;
use taquba::Queue;

use crate::place::Place;
use crate::workload::Shape;

/// A system under test, with the runner of the workload registered.
#[async_trait]
pub trait System: Send + Sync {
    /// Submits a run; durable when it returns.
    async fn submit(&self, run: &str, input: Vec<u8>) -> anyhow::Result<()>;

    /// Waits for the end of a run, and fails unless it succeeded.
    async fn wait(&self, run: &str) -> anyhow::Result<()>;

    /// Waits until a run waits for its signal.
    async fn wait_until_waiting(&self, run: &str) -> anyhow::Result<()>;

    /// Sends a run its signal.
    async fn signal(&self, run: &str) -> anyhow::Result<()>;

    /// Starts the loop.
    async fn start(&self);

    /// Stops the loop and closes the store. Nobody else may hold the system any more.
    async fn close(self: Arc<Self>) -> anyhow::Result<()>;
}

/// When the first step began.
pub type FirstStep = Arc<OnceLock<Instant>>;

/// What the runners do.
pub struct Work {
    pub shape: Shape,
    pub first_step: FirstStep,
}

impl Work {
    /// A step begins.
    fn begin(&self) {
        self.first_step.get_or_init(Instant::now);
    }
}

/// How this runtime commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A step starts once its predecessor is durable.
    Strict,
    /// The same, and outcomes are written down before their commits.
    Replay,
    /// Steps run ahead of their commits.
    Pipelined,
}

/// A system and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemKind {
    /// This runtime through `open`.
    Ours(Mode),
    /// This runtime over a queue of the user's own, which is flushed by its tick alone.
    OursTick,
    /// `taquba-workflow` at its best setting.
    Peer { replay: bool },
}

impl SystemKind {
    const ALL: [Self; 6] = [
        Self::Ours(Mode::Strict),
        Self::Ours(Mode::Replay),
        Self::Ours(Mode::Pipelined),
        Self::OursTick,
        Self::Peer { replay: false },
        Self::Peer { replay: true },
    ];

    /// How the command line and the report call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours(Mode::Strict) => "ours",
            Self::Ours(Mode::Replay) => "ours-replay",
            Self::Ours(Mode::Pipelined) => "ours-pipelined",
            Self::OursTick => "ours-tick",
            Self::Peer { replay: false } => "peer",
            Self::Peer { replay: true } => "peer-replay",
        }
    }

    /// Opens it. Its loop is not started yet.
    pub async fn open(self, place: &Place, shape: Shape, first_step: FirstStep) -> anyhow::Result<Arc<dyn System>> {
        let work = Work { shape, first_step };
        Ok(match self {
            Self::Ours(mode) => Arc::new(ours::Ours::open(place, work, mode).await?),
            Self::OursTick => Arc::new(ours::Ours::open_on_tick(place, work).await?),
            Self::Peer { replay } => Arc::new(peer::Peer::open(place, work, replay).await?),
        })
    }
}

impl FromStr for SystemKind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!("there is no system `{name}`"),
        }
    }
}

/// Closes `queue` once the last task that holds it has let it go.
async fn close_queue(mut queue: Arc<Queue>) -> anyhow::Result<()> {
    loop {
        match Arc::try_unwrap(queue) {
            Ok(queue) => return Ok(queue.close().await?),
            Err(held) => queue = held,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

//! The systems that are measured, behind one small trait.

mod ours;
mod peer;

use std::str::FromStr;
use std::sync::Arc;

use anyhow::bail;
use async_trait::async_trait;

use crate::place::Place;
use crate::workload::Shape;

/// A system under test, with the runner of the workload registered and its loop running.
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

    /// Stops the loop.
    async fn stop(&self) -> anyhow::Result<()>;
}

/// A system and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemKind {
    /// This runtime through `open`.
    Ours { replay: bool },
    /// This runtime over a queue of the user's own, which is flushed by its tick alone.
    OursTick,
    /// `taquba-workflow` at its best setting.
    Peer { replay: bool },
}

impl SystemKind {
    const ALL: [Self; 5] = [
        Self::Ours { replay: false },
        Self::Ours { replay: true },
        Self::OursTick,
        Self::Peer { replay: false },
        Self::Peer { replay: true },
    ];

    /// How the command line and the report call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours { replay: false } => "ours",
            Self::Ours { replay: true } => "ours-replay",
            Self::OursTick => "ours-tick",
            Self::Peer { replay: false } => "peer",
            Self::Peer { replay: true } => "peer-replay",
        }
    }

    /// Opens it on an empty store.
    pub async fn open(self, place: &Place, shape: Shape) -> anyhow::Result<Arc<dyn System>> {
        Ok(match self {
            Self::Ours { replay } => Arc::new(ours::Ours::open(place, shape, replay).await?),
            Self::OursTick => Arc::new(ours::Ours::open_on_tick(place, shape).await?),
            Self::Peer { replay } => Arc::new(peer::Peer::open(place, shape, replay).await?),
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

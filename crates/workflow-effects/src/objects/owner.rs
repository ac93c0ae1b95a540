//! Whose objects: the row that tells of them, and the folder that holds them.

use std::fmt;

use bytes::Bytes;
use object_store::path::Path;
use workflow_core::{Incarnation, RunId, SignalId};

use crate::keys::KeySpace;

/// Holds the folders of signals. No run is called so: a run id holds no dot.
const SIGNALS: &str = "signals.";

/// What an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectOwner {
    /// A run.
    Run {
        /// Its id.
        run_id: RunId,
        /// Which submission of it.
        incarnation: Incarnation,
    },
    /// A signal.
    Signal(SignalId),
}

impl ObjectOwner {
    /// The key of the row that tells of the owner's objects.
    pub(super) fn row(&self, keys: &KeySpace) -> Bytes {
        match self {
            Self::Run { run_id, incarnation } => keys.objects(run_id, *incarnation),
            Self::Signal(id) => keys.signal_objects(*id),
        }
    }

    /// The folder of the owner's objects.
    pub(super) fn folder(&self, prefix: &str) -> Path {
        match self {
            Self::Run { run_id, incarnation } => Path::from(format!("{prefix}/{run_id}/{incarnation}")),
            Self::Signal(id) => Path::from(format!("{prefix}/{SIGNALS}/{:032x}", id.value())),
        }
    }
}

impl fmt::Display for ObjectOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { run_id, .. } => write!(f, "run {run_id}"),
            Self::Signal(_) => f.write_str("a signal"),
        }
    }
}

/// The signal whose object is at `path`, and its folder; nothing for the object of a run.
pub(super) fn signal_at(path: &Path) -> Option<(SignalId, Path)> {
    let folder = path.parent()?;
    let id = u128::from_str_radix(folder.filename()?, 16).ok()?;
    let is_signals = folder.parent()?.filename() == Some(SIGNALS);
    is_signals.then(|| (SignalId::new(id), folder))
}

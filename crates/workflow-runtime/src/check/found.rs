//! What one row tells.

use bytes::Bytes;
use workflow_core::{CorrelationKey, Incarnation, RunId, SignalId};

use super::{Violation, ViolationKind};

/// The most keys that a violation names.
pub(super) const MAX_KEYS: usize = 16;

/// What one row tells.
#[derive(Default)]
pub(super) struct Found {
    run_id: Option<RunId>,
    pub(super) violations: Vec<Violation>,
    /// The submission that the row belongs to, and that no record names. It is being removed, or the row is left over.
    pub(super) unnamed: Option<(RunId, Incarnation)>,
    /// The idempotency id that the row remembers. Some row tells when it is forgotten.
    pub(super) remembered: Option<Remembered>,
}

/// An idempotency id that is remembered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Remembered {
    pub(super) signal: SignalId,
    pub(super) key: CorrelationKey,
    pub(super) id: String,
}

impl Found {
    /// Nothing yet, of a run.
    pub(super) fn of(run_id: &RunId) -> Self {
        Self { run_id: Some(run_id.clone()), ..Self::default() }
    }

    /// One violation, of no run.
    pub(super) fn one(kind: ViolationKind, key: &Bytes, detail: impl ToString) -> Self {
        let mut found = Self::default();
        found.report(kind, key, detail);
        found
    }

    pub(super) fn report(&mut self, kind: ViolationKind, key: &Bytes, detail: impl ToString) {
        self.report_all(kind, vec![key.clone()], detail);
    }

    pub(super) fn report_all(&mut self, kind: ViolationKind, keys: Vec<Bytes>, detail: impl ToString) {
        let run_id = self.run_id.as_ref().map(ToString::to_string);
        self.violations.push(Violation { kind, run_id, keys, detail: detail.to_string() });
    }

    /// The decoded row at `key`; one that does not decode is reported.
    pub(super) fn decoded<T>(&mut self, key: &Bytes, row: workflow_effects::Result<T>) -> Option<T> {
        row.map_err(|error| self.report(ViolationKind::Corrupt, key, error)).ok()
    }
}

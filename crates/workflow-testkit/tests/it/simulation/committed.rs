//! What is durable by now: every row as the journal of the disk tells, and every run as its record does.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use workflow_core::{ActiveRun, Incarnation, Phase, Run, RunId, Value};
use workflow_effects::{KeySpace, OwnedRow, Spec, StoredKey, decode_run, decode_spec, is_reserved};

use super::event::Attempt;

/// The durable state.
pub(crate) struct Committed {
    keys: KeySpace,
    objects: Arc<InMemory>,
    entries: BTreeMap<Bytes, Bytes>,
    runs: BTreeMap<String, Run>,
    specs: BTreeMap<Incarnation, Spec>,
    /// How many commits there were.
    number: u64,
}

/// What one commit has changed.
pub(crate) struct Landed {
    /// Which commit, from 1.
    pub(crate) number: u64,
    pub(crate) changes: Vec<Change>,
    pub(crate) runs: Vec<RunChange>,
}

/// A row that a commit has written.
pub(crate) struct Change {
    pub(crate) row: Row,
    pub(crate) before: Option<Bytes>,
    pub(crate) after: Option<Bytes>,
}

/// A run whose record a commit has written.
pub(crate) struct RunChange {
    pub(crate) run_id: String,
    pub(crate) before: Run,
    pub(crate) after: Run,
}

/// Which row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Stored(StoredKey),
    /// What a submission brought along.
    Made(u64),
    /// What an attempt staged.
    Log {
        call: u64,
        step: u32,
        attempt: u64,
    },
    /// What a hook staged.
    Told {
        call: u64,
    },
    /// None that is known.
    Strange,
}

impl Committed {
    pub(crate) fn new(keys: KeySpace, objects: Arc<InMemory>) -> Self {
        let (entries, runs, specs) = Default::default();
        Self { keys, objects, entries, runs, specs, number: 0 }
    }

    /// Takes in a commit that is durable.
    pub(crate) fn land(&mut self, commit: Vec<(Bytes, Option<Bytes>)>) -> Result<Landed, workflow_effects::Error> {
        self.number += 1;
        let (mut changes, mut runs) = (Vec::with_capacity(commit.len()), Vec::new());
        for (key, after) in commit {
            let before = match &after {
                Some(value) => self.entries.insert(key.clone(), value.clone()),
                None => self.entries.remove(&key),
            };
            let row = self.row(&key);
            match (&row, &after) {
                (Row::Stored(StoredKey::Run(run_id)), _) => runs.push(self.run_change(run_id, after.as_deref())?),
                (Row::Stored(StoredKey::Owned(run_id, incarnation, OwnedRow::Spec)), Some(spec)) => {
                    self.specs.insert(*incarnation, decode_spec(run_id, spec)?);
                }
                _ => {}
            }
            changes.push(Change { row, before, after });
        }
        Ok(Landed { number: self.number, changes, runs })
    }

    fn run_change(&mut self, run_id: &RunId, bytes: Option<&[u8]>) -> Result<RunChange, workflow_effects::Error> {
        let (after, run_id) = (decode_run(run_id, bytes)?, run_id.to_string());
        let before = match &after {
            Run::Absent => self.runs.remove(&run_id),
            after => self.runs.insert(run_id.clone(), after.clone()),
        };
        Ok(RunChange { run_id, before: before.unwrap_or(Run::Absent), after })
    }

    fn row(&self, key: &[u8]) -> Row {
        if is_reserved(key) {
            return self.keys.parse(key).map_or(Row::Strange, Row::Stored);
        }
        let parts: Option<Vec<&str>> = std::str::from_utf8(key).ok().map(|key| key.split('/').collect());
        let number = |text: &str| text.parse().unwrap_or(u64::MAX);
        match parts.as_deref() {
            Some(["made", call]) => Row::Made(number(call)),
            Some(["log", call, step, attempt]) => {
                Row::Log { call: number(call), step: step.parse().unwrap_or(u32::MAX), attempt: number(attempt) }
            }
            Some(["told", call, _]) => Row::Told { call: number(call) },
            _ => Row::Strange,
        }
    }

    pub(crate) fn run(&self, run_id: &str) -> &Run {
        self.runs.get(run_id).unwrap_or(&Run::Absent)
    }

    /// The ids of the runs that are so.
    pub(crate) fn run_ids(&self, is_so: fn(&Run) -> bool) -> Vec<String> {
        self.runs.iter().filter(|(_, run)| is_so(run)).map(|(run_id, _)| run_id.clone()).collect()
    }

    /// The calls that submitted the runs that there are.
    pub(crate) fn calls(&self) -> Vec<u64> {
        self.runs.values().filter_map(|run| self.call(run.incarnation()?)).collect()
    }

    /// The runs that have not ended.
    pub(crate) fn active(&self) -> impl Iterator<Item = (&String, &ActiveRun)> {
        self.runs.iter().filter_map(|(run_id, run)| match run {
            Run::Active(run) => Some((run_id, run)),
            Run::Absent | Run::Ended(_) => None,
        })
    }

    /// Whether the record counts another attempt than this as the one in hand: a delivery that was lost and does not
    /// know it may start late, and changes nothing.
    pub(crate) fn is_late(&self, attempt: &Attempt) -> bool {
        match self.run(&attempt.run_id) {
            Run::Active(run) => run.step != attempt.step || attempt.attempts <= run.attempts.used,
            Run::Absent | Run::Ended(_) => true,
        }
    }

    /// The correlation keys that somebody waits for.
    pub(crate) fn waited_for(&self) -> Vec<String> {
        let keys = self.active().filter_map(|(_, run)| match &run.phase {
            Phase::Waiting { keys, .. } => Some(keys),
            Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => None,
        });
        keys.flatten().map(ToString::to_string).collect()
    }

    /// Whether a hook is still to be called.
    pub(crate) fn owes_hooks(&self) -> bool {
        let is_owed = |row: Row| matches!(row, Row::Stored(StoredKey::Owned(_, _, OwnedRow::Notification(_))));
        self.reserved().any(|(_, row)| is_owed(row))
    }

    /// What this submission of a run said.
    pub(crate) fn spec(&self, incarnation: Incarnation) -> Option<&Spec> {
        self.specs.get(&incarnation)
    }

    /// The call that this submission of a run was.
    pub(crate) fn call(&self, incarnation: Incarnation) -> Option<u64> {
        self.specs.get(&incarnation)?.headers.get("call")?.parse().ok()
    }

    /// The attempts that each step of this submission has.
    pub(crate) fn max_attempts(&self, incarnation: Incarnation) -> u32 {
        self.specs.get(&incarnation).map_or(u32::MAX, |spec| spec.max_attempts)
    }

    pub(crate) fn entries_below(&self, prefix: Bytes) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        let end = prefix.clone();
        self.entries.range(prefix..).take_while(move |(key, _)| key.starts_with(&end))
    }

    /// The runtime's own rows.
    pub(crate) fn reserved(&self) -> impl Iterator<Item = (&Bytes, Row)> {
        self.entries.keys().filter(|key| is_reserved(key)).map(|key| (key, self.row(key)))
    }

    pub(crate) fn keys(&self) -> &KeySpace {
        &self.keys
    }

    /// What `value` holds; nothing when its object is gone by now.
    pub(crate) fn value(&self, value: &Value) -> Option<Bytes> {
        match value {
            Value::Inline(bytes) => Some(bytes.clone()),
            Value::Object(object) => {
                let path = Path::parse(&object.path).ok()?;
                let found = self.objects.get(&path).now_or_never()?.ok()?;
                found.bytes().now_or_never()?.ok()
            }
        }
    }

    /// The paths of all objects.
    pub(crate) fn objects(&self) -> Vec<String> {
        let listed = self.objects.list(None).map_ok(|object| object.location.to_string()).try_collect::<Vec<_>>();
        listed.now_or_never().and_then(Result::ok).unwrap_or_else(|| vec!["an object that is not listed".to_owned()])
    }
}

/// A run in a few words.
pub(crate) fn run_text(run: &Run) -> String {
    match run {
        Run::Absent => "is gone".to_owned(),
        Run::Ended(run) => {
            let error = run.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
            format!(
                "ended at step {}: {:?}{error}, revision {}, redrive {}",
                run.final_step, run.status, run.revision, run.redrive
            )
        }
        Run::Active(run) => {
            let phase = match &run.phase {
                Phase::Ready => "is ready".to_owned(),
                Phase::BackingOff { until } => format!("backs off until {until:?}"),
                Phase::Delayed { until } => format!("is delayed until {until:?}"),
                Phase::Waiting { keys, until } => format!("waits for {keys:?} until {until:?}"),
            };
            let paused = if run.paused { ", paused" } else { "" };
            let cancelled = if run.cancel.is_some() { ", to be cancelled" } else { "" };
            format!(
                "{phase} at step {}{paused}{cancelled}, revision {}, redrive {}, {} attempts used, {} lost",
                run.step, run.revision, run.redrive, run.attempts.used, run.attempts.lost
            )
        }
    }
}

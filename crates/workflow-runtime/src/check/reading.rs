//! One reading of a store: every row once, in order of the keys, page by page.
//!
//! It keeps nothing in memory but what it finds, one page, and two kinds of questions that no single row answers: of
//! submissions that no record names, whether they are being removed, which a scan of the ended runs tells at the end; and
//! of so many idempotency ids at a time, whether a row tells when each is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use workflow_core::{Incarnation, Run, RunId, RunState, Status, Timestamp};
use workflow_effects::{Index, Pages, Read, ScanRange, StoredKey, decode_run, decode_signal_expiry};

use super::found::{Found, MAX_KEYS, Remembered};
use super::{Violation, ViolationKind};
use crate::Result;
use crate::port::QueuePort;
use crate::reads::RunReads;

/// Rows that are read at once.
const PAGE: usize = 256;
/// Rows that are looked into at the same time.
const AT_A_TIME: usize = 16;
/// Idempotency ids that are looked for in one scan.
const IDS: usize = 16_384;

/// What is checked.
pub(crate) struct Store {
    pub(crate) reads: RunReads,
    pub(crate) port: Arc<dyn QueuePort>,
    pub(crate) now: Timestamp,
}

/// A reading, as far as it is.
#[derive(Default)]
struct Reading {
    violations: BTreeSet<Violation>,
    unnamed: BTreeMap<(RunId, Incarnation), Unnamed>,
    remembered: BTreeSet<Remembered>,
}

/// The rows of a submission that no record names.
#[derive(Default)]
struct Unnamed {
    rows: u64,
    first: Vec<Bytes>,
}

/// Reads everything once.
pub(super) async fn read(store: &Store) -> Result<BTreeSet<Violation>> {
    let mut reading = Reading::default();
    let mut pages = store.pages(store.reads.keys.prefix());
    while let Some(entries) = pages.next().await? {
        let rows = stream::iter(&entries).map(|(key, row)| store.look_into(key, row)).buffered(AT_A_TIME);
        let found: Vec<Found> = rows.try_collect().await?;
        for ((key, _), found) in entries.iter().zip(found) {
            reading.take(key, found);
        }
        if reading.remembered.len() >= IDS {
            reading.settle_remembered(store).await?;
        }
    }
    reading.settle_remembered(store).await?;
    reading.settle_unnamed(store).await?;
    Ok(reading.violations)
}

impl Store {
    /// What the row at `key` tells.
    async fn look_into(&self, key: &Bytes, row: &Bytes) -> Result<Found> {
        match self.reads.keys.parse(key) {
            None => Ok(Found::one(ViolationKind::Corrupt, key, "nothing that is known is stored at such a key")),
            Some(StoredKey::Run(run_id)) => self.look_into_record(&run_id, key, row).await,
            Some(StoredKey::Owned(run_id, of, kind)) => self.look_into_owned((run_id, of), &kind, key, row).await,
            Some(StoredKey::Indexed(index, entry)) => self.look_into_place(index, &entry, key).await,
            Some(StoredKey::Slot(of)) => self.look_into_slot(&of, key, row).await,
            Some(StoredKey::BufferedSignal(of, number)) => self.look_into_signal(&of, number, key, row).await,
            Some(StoredKey::SignalId(of, id)) => Ok(Self::look_into_id(of, id, key, row)),
            Some(StoredKey::SignalExpiry(_, signal)) => self.look_into_expiry(signal, key, row).await,
            Some(StoredKey::Objects(run_id, of)) => self.look_into_objects((run_id, of), key, row).await,
            Some(StoredKey::SignalObjects(_)) => self.look_into_signal_objects(key, row).await,
            Some(StoredKey::Priority(_)) => Ok(Found::default()),
        }
    }

    pub(super) async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.reads.kv.get(key, Read::Durable).await?)
    }

    /// The rows below a prefix, a page after the other.
    pub(super) fn pages(&self, prefix: Bytes) -> Pages {
        self.reads.pages(ScanRange::first(prefix, PAGE), Read::Durable)
    }

    /// The run that others refer to; `None` if its record does not read, which is reported of the record alone.
    pub(super) async fn run(&self, run_id: &RunId) -> Result<Option<Run>> {
        let bytes = self.get(&self.reads.keys.run(run_id)).await?;
        Ok(decode_run(run_id, bytes.as_deref()).ok())
    }

    /// Whether the record of a run names this submission; where it does not read, it may.
    pub(super) async fn may_name(&self, run_id: &RunId, of: Incarnation) -> Result<bool> {
        Ok(self.run(run_id).await?.is_none_or(|run| run.incarnation() == Some(of)))
    }
}

impl Reading {
    fn take(&mut self, key: &Bytes, found: Found) {
        self.violations.extend(found.violations);
        self.remembered.extend(found.remembered);
        if let Some(of) = found.unnamed {
            let unnamed = self.unnamed.entry(of).or_default();
            unnamed.rows += 1;
            if unnamed.first.len() < MAX_KEYS {
                unnamed.first.push(key.clone());
            }
        }
    }

    /// Reports the idempotency ids of which no row tells when they are forgotten.
    async fn settle_remembered(&mut self, store: &Store) -> Result<()> {
        let mut remembered = std::mem::take(&mut self.remembered);
        let mut pages = store.pages(store.reads.keys.signal_expiries_prefix());
        while !remembered.is_empty()
            && let Some(entries) = pages.next().await?
        {
            for expiry in entries.iter().filter_map(|(_, row)| decode_signal_expiry(row).ok()) {
                if let Some(id) = expiry.idempotency_id {
                    remembered.remove(&Remembered { signal: expiry.signal, key: expiry.key, id });
                }
            }
        }
        for Remembered { key, id, .. } in remembered {
            let key = store.reads.keys.signal_id(&key, &id);
            let found = Found::one(ViolationKind::Orphan, &key, "nothing tells when the idempotency id is forgotten");
            self.violations.extend(found.violations);
        }
        Ok(())
    }

    /// Reports what is left of submissions that no record names, unless they are being removed.
    async fn settle_unnamed(&mut self, store: &Store) -> Result<()> {
        let keys = &store.reads.keys;
        for status in [Status::Succeeded, Status::Failed, Status::Cancelled] {
            let index = Index::State(RunState::Ended(status));
            let mut pages = store.pages(keys.index_prefix(index));
            while !self.unnamed.is_empty()
                && let Some(entries) = pages.next().await?
            {
                for place in entries.iter().filter_map(|(key, _)| keys.parse_indexed(index, key)) {
                    self.unnamed.remove(&(place.run_id, place.incarnation));
                }
            }
        }
        for ((run_id, of), Unnamed { rows, first }) in std::mem::take(&mut self.unnamed) {
            let mut found = Found::of(&run_id);
            let detail = format!("{rows} rows of submission {of} are left, and nobody removes them");
            found.report_all(ViolationKind::Orphan, first, detail);
            self.violations.extend(found.violations);
        }
        Ok(())
    }
}

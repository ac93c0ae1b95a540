//! What the queue holds, as plain data: key-value pairs, jobs, leases, and the operations that are not durable yet.
//! Nothing here waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workflow_effects::MAX_EFFECT_VALUE_LEN;
use workflow_runtime::port::{Commit, Enqueue, Error, JobId, JobState, Rejected, ScanPage, ScanRange, Timestamp};

/// A job as the queue holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredJob {
    /// Its queue.
    pub queue: String,
    /// What it carries.
    pub payload: Bytes,
    /// When it may be delivered.
    pub due: Timestamp,
    /// How often it has been claimed.
    pub deliveries: u32,
    /// Where it is.
    pub state: JobState,
    /// Why it died last, if it ever did.
    pub reason: Option<String>,
}

/// The number of a claim; no two claims share one.
pub(super) type ClaimNumber = u64;

/// A claim's hold on its job. It is of this process only: a crash ends every lease.
#[derive(Debug)]
struct Lease {
    job: JobId,
    end: Instant,
    lost: CancellationToken,
}

/// A claim as it is handed out.
pub(super) struct NewClaim {
    pub(super) number: ClaimNumber,
    pub(super) job: JobId,
    pub(super) payload: Bytes,
    pub(super) deliveries: u32,
    pub(super) lost: CancellationToken,
}

/// An operation that a crash would undo, with what it takes to undo it.
#[derive(Debug, Default)]
struct Operation {
    entries: Vec<(Bytes, Option<Bytes>)>,
    jobs: Vec<(JobId, Option<StoredJob>)>,
    /// What the journal will tell of it.
    changes: Changes,
}

/// What a commit has changed: each key with its value, or without one.
pub(super) type Changes = Vec<(Bytes, Option<Bytes>)>;

/// The state of the queue as the latest operation left it.
#[derive(Debug, Default)]
pub(super) struct Model {
    entries: BTreeMap<Bytes, Bytes>,
    jobs: BTreeMap<JobId, StoredJob>,
    /// The waiting jobs of each queue, in the order in which they are claimed.
    waiting: BTreeMap<String, BTreeSet<(Timestamp, JobId)>>,
    dead: BTreeMap<String, BTreeSet<JobId>>,
    leases: BTreeMap<ClaimNumber, Lease>,
    lease_ends: BTreeSet<(Instant, ClaimNumber)>,
    last_claim: ClaimNumber,
    /// Oldest first; the last is operation number `applied`.
    in_flight: VecDeque<Operation>,
    applied: u64,
    /// The durable commits that nobody was told of yet, once somebody has asked.
    journal: Option<Vec<Changes>>,
}

impl Model {
    /// The number of the latest operation.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    /// How much there is of anything, what is only kept to find something else or to undo something included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let Self { entries, jobs, waiting, dead, leases, lease_ends, in_flight, .. } = self;
        let listed = waiting.len() + dead.len() + leases.len() + lease_ends.len() + in_flight.len();
        entries.len() + jobs.len() + listed
    }

    /// The number of the latest durable operation.
    pub(super) fn durable(&self) -> u64 {
        self.applied - self.in_flight.len() as u64
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.entries.get(key).cloned()
    }

    pub(super) fn scan(&self, range: &ScanRange) -> ScanPage {
        range.page_of(&self.entries)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = (&JobId, &StoredJob)> {
        self.jobs.iter()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.entries.iter()
    }

    /// The operation after which everything is durable that `read` keys with.
    pub(super) fn last_write(&self, read: impl Fn(&Bytes) -> bool) -> u64 {
        let newer = self.in_flight.iter().rev().take_while(|operation| !operation.writes(&read)).count();
        self.applied - newer as u64
    }

    /// Applies `commit` whole or not at all.
    pub(super) fn commit(&mut self, commit: Commit) -> Result<(), Rejected> {
        commit.check().map_err(Rejected::Invalid)?;
        check_values(&commit).map_err(invalid)?;
        if commit.expect.iter().any(|(key, value)| self.entries.get(key) != value.as_ref()) {
            return Err(Rejected::Conflict);
        }
        self.check_jobs(&commit).map_err(invalid)?;
        let mut operation = Operation::default();
        if self.journal.is_some() {
            let puts = commit.puts.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
            operation.changes = commit.deletes.iter().map(|key| (key.clone(), None)).chain(puts).collect();
        }
        for key in commit.deletes {
            let before = self.entries.remove(&key);
            operation.entries.push((key, before));
        }
        for (key, value) in commit.puts {
            let before = self.entries.insert(key.clone(), value);
            operation.entries.push((key, before));
        }
        for Enqueue { queue, job, payload, due } in commit.enqueues {
            let due = due.unwrap_or(Timestamp::from_millis(0));
            let stored = StoredJob { queue, payload, due, deliveries: 0, state: JobState::Waiting, reason: None };
            self.change(&mut operation, job, Some(stored));
        }
        self.record(operation);
        Ok(())
    }

    fn check_jobs(&self, commit: &Commit) -> Result<(), String> {
        let mut jobs = BTreeSet::new();
        match commit.enqueues.iter().find(|new| self.jobs.contains_key(&new.job) || !jobs.insert(&new.job)) {
            Some(taken) => Err(format!("queues job {}, which there is already", taken.job)),
            None => Ok(()),
        }
    }

    /// Claims up to `max` jobs of `queue` that are due at `now`, under leases that end at `end`.
    pub(super) fn claim(&mut self, queue: &str, max: usize, now: Timestamp, end: Instant) -> Vec<NewClaim> {
        let due = self.waiting.get(queue).into_iter().flatten().take_while(|(due, _)| *due <= now);
        let jobs: Vec<JobId> = due.take(max).map(|(_, job)| job.clone()).collect();
        if jobs.is_empty() {
            return Vec::new();
        }
        let mut operation = Operation::default();
        let claims = jobs.into_iter().map(|job| self.claim_job(&mut operation, job, end)).collect();
        self.record(operation);
        claims
    }

    fn claim_job(&mut self, operation: &mut Operation, job: JobId, end: Instant) -> NewClaim {
        let mut stored = self.jobs[&job].clone();
        stored.state = JobState::Claimed;
        stored.deliveries = stored.deliveries.saturating_add(1);
        let (payload, deliveries) = (stored.payload.clone(), stored.deliveries);
        self.change(operation, job.clone(), Some(stored));
        self.last_claim += 1;
        let (number, lost) = (self.last_claim, CancellationToken::new());
        self.leases.insert(number, Lease { job: job.clone(), end, lost: lost.clone() });
        self.lease_ends.insert((end, number));
        NewClaim { number, job, payload, deliveries, lost }
    }

    /// Lets a lease end no earlier than `end`. `false` when the claim is lost.
    pub(super) fn extend(&mut self, claim: ClaimNumber, end: Instant) -> bool {
        let Some(lease) = self.leases.get_mut(&claim) else { return false };
        if end > lease.end {
            self.lease_ends.remove(&(lease.end, claim));
            lease.end = end;
            self.lease_ends.insert((end, claim));
        }
        true
    }

    /// Ends a claim: its job is forgotten, or dead for a reason. `false` when the claim is lost.
    pub(super) fn settle(&mut self, claim: ClaimNumber, reason: Option<String>) -> bool {
        let Some(Lease { job, .. }) = self.end_lease(claim) else { return false };
        let dead = |reason| StoredJob { state: JobState::Dead, reason: Some(reason), ..self.jobs[&job].clone() };
        let stored = reason.map(dead);
        let mut operation = Operation::default();
        self.change(&mut operation, job, stored);
        self.record(operation);
        true
    }

    /// When the earliest lease ends.
    pub(super) fn next_lease_end(&self) -> Option<Instant> {
        self.lease_ends.first().map(|(end, _)| *end)
    }

    /// Ends the leases that were to last until `now` at most. Their jobs come back. A crash makes them come back as
    /// well, so there is nothing that has to become durable.
    pub(super) fn end_leases(&mut self, now: Option<Instant>) -> usize {
        let over = self.lease_ends.iter().take_while(|(end, _)| now.is_none_or(|now| *end <= now));
        let over: Vec<ClaimNumber> = over.map(|(_, claim)| *claim).collect();
        for &claim in &over {
            let job = self.lose(claim).expect("every end is a lease's");
            self.change(&mut Operation::default(), job.clone(), Some(self.waiting_again(&job)));
        }
        over.len()
    }

    /// Ends a claim against its holder's will.
    fn lose(&mut self, claim: ClaimNumber) -> Option<JobId> {
        let lease = self.end_lease(claim)?;
        lease.lost.cancel();
        Some(lease.job)
    }

    fn end_lease(&mut self, claim: ClaimNumber) -> Option<Lease> {
        let lease = self.leases.remove(&claim)?;
        self.lease_ends.remove(&(lease.end, claim));
        Some(lease)
    }

    fn waiting_again(&self, job: &JobId) -> StoredJob {
        StoredJob { state: JobState::Waiting, ..self.jobs[job].clone() }
    }

    /// What an operator does to a dead job: it is delivered again. `false` when it is not dead.
    pub(super) fn requeue_dead(&mut self, job: &JobId) -> bool {
        if self.job_state(job) != Some(JobState::Dead) {
            return false;
        }
        let waiting = StoredJob { deliveries: 0, ..self.waiting_again(job) };
        let mut operation = Operation::default();
        self.change(&mut operation, job.clone(), Some(waiting));
        self.record(operation);
        true
    }

    pub(super) fn job_state(&self, job: &JobId) -> Option<JobState> {
        self.jobs.get(job).map(|stored| stored.state)
    }

    /// Whether `job` was dead and is so no more: only an operator brings that about.
    pub(super) fn is_requeued(&self, job: &JobId) -> bool {
        self.jobs.get(job).is_some_and(|stored| stored.reason.is_some() && stored.state != JobState::Dead)
    }

    /// Forgets those of `jobs` that nobody holds. `false` when there are none.
    pub(super) fn drop_jobs(&mut self, jobs: Vec<JobId>) -> bool {
        let mut operation = Operation::default();
        for job in jobs {
            if matches!(self.job_state(&job), Some(JobState::Waiting | JobState::Dead)) {
                self.change(&mut operation, job, None);
            }
        }
        let is_changed = !operation.jobs.is_empty();
        if is_changed {
            self.record(operation);
        }
        is_changed
    }

    /// What an operator does to a job that is to be gone. A claim of it is lost. `false` when there is none.
    pub(super) fn remove(&mut self, job: &JobId) -> bool {
        if !self.jobs.contains_key(job) {
            return false;
        }
        let claim = self.leases.iter().find(|(_, lease)| lease.job == *job).map(|(claim, _)| *claim);
        if let Some(claim) = claim {
            self.lose(claim);
        }
        let mut operation = Operation::default();
        self.change(&mut operation, job.clone(), None);
        self.record(operation);
        true
    }

    /// When the next job of `queue` is due; the past for one that is ready.
    pub(super) fn next_due(&self, queue: &str) -> Option<Timestamp> {
        self.waiting.get(queue)?.first().map(|(due, _)| *due)
    }

    pub(super) fn dead_jobs(&self, queue: &str, limit: usize) -> Vec<JobId> {
        self.dead.get(queue).into_iter().flatten().take(limit).cloned().collect()
    }

    /// No crash undoes the operations up to `number` any more.
    pub(super) fn make_durable(&mut self, number: u64) {
        let landed = number.saturating_sub(self.durable());
        let landed = self.in_flight.drain(..usize::try_from(landed).unwrap_or(usize::MAX).min(self.in_flight.len()));
        let changes = landed.map(|operation| operation.changes).filter(|changes| !changes.is_empty());
        match &mut self.journal {
            Some(journal) => journal.extend(changes),
            None => drop(changes),
        }
    }

    /// What has become durable since the last call; nothing the first time, which begins the journal.
    pub(super) fn journal(&mut self) -> Vec<Changes> {
        self.journal.replace(Vec::new()).unwrap_or_default()
    }

    /// Undoes what is not durable and takes every job out of its holder's hands: the process died.
    pub(super) fn crash(&mut self) {
        // Their jobs may not be there any more once everything is undone.
        while let Some(&(_, claim)) = self.lease_ends.first() {
            self.lose(claim);
        }
        self.applied = self.durable();
        while let Some(operation) = self.in_flight.pop_back() {
            for (key, before) in operation.entries.into_iter().rev() {
                match before {
                    Some(value) => self.entries.insert(key, value),
                    None => self.entries.remove(&key),
                };
            }
            for (job, before) in operation.jobs.into_iter().rev() {
                self.change(&mut Operation::default(), job, before);
            }
        }
        let held: Vec<JobId> = self.jobs.iter().filter(|(_, job)| job.state == JobState::Claimed).map(of_job).collect();
        for job in held {
            self.change(&mut Operation::default(), job.clone(), Some(self.waiting_again(&job)));
        }
    }

    /// Changes a job and what is found by it.
    fn change(&mut self, operation: &mut Operation, job: JobId, next: Option<StoredJob>) {
        let before = self.jobs.remove(&job);
        if let Some(before) = &before {
            self.unlist(&job, before);
        }
        if let Some(next) = next {
            self.list(&job, &next);
            self.jobs.insert(job.clone(), next);
        }
        operation.jobs.push((job, before));
    }

    fn list(&mut self, job: &JobId, stored: &StoredJob) {
        let queue = || stored.queue.clone();
        match stored.state {
            JobState::Waiting => drop(self.waiting.entry(queue()).or_default().insert((stored.due, job.clone()))),
            JobState::Dead => drop(self.dead.entry(queue()).or_default().insert(job.clone())),
            JobState::Claimed => {}
        }
    }

    fn unlist(&mut self, job: &JobId, stored: &StoredJob) {
        match stored.state {
            JobState::Waiting => remove(&mut self.waiting, &stored.queue, &(stored.due, job.clone())),
            JobState::Dead => remove(&mut self.dead, &stored.queue, job),
            JobState::Claimed => {}
        }
    }

    fn record(&mut self, operation: Operation) {
        self.in_flight.push_back(operation);
        self.applied += 1;
    }
}

impl Operation {
    fn writes(&self, key: impl Fn(&Bytes) -> bool) -> bool {
        self.entries.iter().any(|(written, _)| key(written))
    }
}

fn check_values(commit: &Commit) -> Result<(), String> {
    match commit.puts.iter().any(|(_, value)| value.len() > MAX_EFFECT_VALUE_LEN) {
        true => Err(format!("puts a value of more than {MAX_EFFECT_VALUE_LEN} bytes")),
        false => Ok(()),
    }
}

fn invalid(detail: String) -> Rejected {
    Rejected::Invalid(Error::InvalidCommit { detail })
}

fn of_job((job, _): (&JobId, &StoredJob)) -> JobId {
    job.clone()
}

/// Removes `item` from its queue's set, and the set with its last item.
fn remove<T: Ord>(queues: &mut BTreeMap<String, BTreeSet<T>>, queue: &str, item: &T) {
    if let Some(items) = queues.get_mut(queue) {
        items.remove(item);
        if items.is_empty() {
            queues.remove(queue);
        }
    }
}

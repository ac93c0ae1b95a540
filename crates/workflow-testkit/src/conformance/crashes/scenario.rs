//! What the process does that dies, and what it was told before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio_util::task::AbortOnDropHandle;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{ClaimedJob, Commit, JobId, Read, Settlement};

use super::super::world::{LEASE, MOMENT, QUEUE, commit_on, expecting, putting, ringing};

/// Commits of each round: some in one call, some each decided on the one before while that is in flight.
const GROUP: usize = 3;
const CHAIN: usize = 4;
const ROUNDS: usize = 3;

/// What the process has begun, and what it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Arc<Mutex<Facts>>);

#[derive(Debug, Default)]
pub(super) struct Facts {
    /// In the order in which they were decided.
    pub(super) commits: Vec<Begun>,
    pub(super) claims: BTreeMap<JobId, Claims>,
    /// How each job was settled, and whether that was answered.
    pub(super) ends: BTreeMap<JobId, (End, bool)>,
}

/// A commit that puts a row and its twin, and queues a job.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) job: JobId,
    /// It was decided when so many commits were visible.
    pub(super) follows: usize,
    /// Whether it is one of those that are decided on each other.
    pub(super) is_link: bool,
    pub(super) answered: bool,
}

/// How often a job was claimed at the most, and how often at the least.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claims {
    pub(super) begun: u32,
    pub(super) persisted: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Acked,
    Dead,
    Dropped,
}

impl Told {
    pub(super) fn lock(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn row(commit: usize) -> String {
    format!("row/{commit:03}")
}

pub(super) fn twin(commit: usize) -> String {
    format!("twin/{commit:03}")
}

/// Lives until it has done everything.
pub(super) async fn live(port: Arc<dyn QueuePort>, told: &Told) {
    let mut dead = Vec::new();
    for _ in 0..ROUNDS {
        chain(&port, told).await;
        let claimed = claim(&*port, told, 2).await;
        port.persist_claims().await.expect("an open queue persists its claims");
        for job in &claimed {
            told.lock().claims.entry(job.job.clone()).or_default().persisted += 1;
            port.extend(&job.claim, 2 * LEASE).expect("the claim is held");
        }
        let _unsettled = claim(&*port, told, 1).await;
        drop_jobs(&*port, told, std::mem::take(&mut dead)).await;
        dead.extend(claimed.get(1).map(|claimed| claimed.job.clone()));
        let ends = [End::Acked, End::Dead].into_iter().zip(claimed);
        join_all(ends.map(|(end, job)| settle(&*port, told, end, job))).await;
        lapse(&*port, told).await;
        group(&*port, told).await;
    }
}

/// Commits each of which is decided on what the one before has left, as soon as that is visible.
async fn chain(port: &Arc<dyn QueuePort>, told: &Told) {
    let mut flights = Vec::new();
    for _ in 0..CHAIN {
        let before = told.lock().commits.iter().rposition(|commit| commit.is_link).map(|link| link.to_string());
        let (number, commit) = begin(&**port, told, 1, true).remove(0);
        let mut commit = expecting("chain", before.as_deref(), commit);
        commit.puts.extend(putting("chain", number.to_string()).puts);
        let (port_of_flight, told) = (port.clone(), told.clone());
        flights.push(AbortOnDropHandle::new(tokio::spawn(async move {
            commit_on(&*port_of_flight, commit).await.expect("it is decided on what is there");
            told.lock().commits[number].answered = true;
        })));
        until_visible(&**port, number).await;
    }
    for flight in flights {
        flight.await.expect("the task does not panic");
    }
}

async fn until_visible(port: &dyn QueuePort, link: usize) {
    let link = link.to_string();
    let latest = || async { port.get(b"chain", Read::Latest).await.expect("an open store answers a read") };
    while latest().await.as_deref() != Some(link.as_bytes()) {
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
}

/// Commits of one call, which are in no order: what comes next follows when all are answered.
async fn group(port: &dyn QueuePort, told: &Told) {
    let (numbers, commits): (Vec<_>, Vec<_>) = begin(port, told, GROUP, false).into_iter().unzip();
    for (number, answer) in numbers.into_iter().zip(port.commit(commits).await) {
        answer.expect("a commit without expectations is applied");
        told.lock().commits[number].answered = true;
    }
}

/// The next commits, with their numbers: a row, its twin and a job each.
fn begin(port: &dyn QueuePort, told: &Told, count: usize, is_link: bool) -> Vec<(usize, Commit)> {
    let mut told = told.lock();
    let follows = told.commits.len();
    let commits = (follows..follows + count).map(|number| {
        let job = port.next_job_id();
        let mut commit = ringing(&job, None);
        commit.puts.extend(putting(row(number), "row").puts);
        commit.puts.extend(putting(twin(number), "twin").puts);
        told.commits.push(Begun { job, follows, is_link, answered: false });
        (number, commit)
    });
    commits.collect()
}

/// Claims jobs that it holds for longer than it lives.
async fn claim(port: &dyn QueuePort, told: &Told, max: usize) -> Vec<ClaimedJob> {
    claim_for(port, told, max, 10 * LEASE).await
}

/// A claim whose lease ends.
async fn lapse(port: &dyn QueuePort, told: &Told) {
    claim_for(port, told, 1, Duration::ZERO).await;
    tokio::time::sleep(MOMENT).await;
}

async fn claim_for(port: &dyn QueuePort, told: &Told, max: usize, lease: Duration) -> Vec<ClaimedJob> {
    let claimed = port.claim(QUEUE, max, lease).await.expect("an open queue answers a claim");
    for job in &claimed {
        told.lock().claims.entry(job.job.clone()).or_default().begun += 1;
    }
    claimed
}

/// Drops jobs that are dead, and one that waits.
async fn drop_jobs(port: &dyn QueuePort, told: &Told, dead: Vec<JobId>) {
    let mut jobs = dead;
    {
        let mut told = told.lock();
        let mut all = told.commits.iter().map(|commit| &commit.job);
        jobs.extend(all.rfind(|job| !told.claims.contains_key(job)).cloned());
        told.ends.extend(jobs.iter().map(|job| (job.clone(), (End::Dropped, false))));
    }
    port.settle(Settlement::Drop(jobs.clone())).await.expect("an open queue drops jobs");
    told.lock().ends.extend(jobs.into_iter().map(|job| (job, (End::Dropped, true))));
}

async fn settle(port: &dyn QueuePort, told: &Told, end: End, job: ClaimedJob) {
    told.lock().ends.insert(job.job.clone(), (end, false));
    let settlement = match end {
        End::Acked => Settlement::Ack(job.claim),
        End::Dead => Settlement::Dead(job.claim, "because".to_owned()),
        End::Dropped => Settlement::Drop(vec![job.job.clone()]),
    };
    port.settle(settlement).await.expect("an open queue settles a claim");
    told.lock().ends.insert(job.job, (end, true));
}

//! The port's calls, each meeting its fault on the way to the queue below and back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Clock, Commit, Error, JobId, JobState, KvStore, Read, Rejected, ScanPage, ScanRange, Settlement,
};

use super::deliveries::{Held, Lot};
use super::faulty::{FaultyPort, to_its_end};
use super::health::unavailable;
use super::plan::Asked;
use crate::{Health, PortFault};

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for FaultyPort {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        self.count(|counts| counts.gets += 1);
        self.ask(self.meet(Asked::Get), self.port.get(key, read)).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        self.count(|counts| counts.scans += 1);
        self.ask(self.meet(Asked::Scan), self.port.scan(range, read)).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let enqueues: usize = commits.iter().map(|commit| commit.enqueues.len()).sum();
        self.count(|counts| {
            counts.commits += commits.len() as u64;
            counts.enqueues += enqueues as u64;
        });
        let faults: Vec<_> = commits.iter().map(|commit| self.meet(Asked::Commit(commit))).collect();
        let port = self.clone();
        to_its_end(async move {
            if faults.iter().all(Option::is_none) {
                return port.commit_all(commits).await;
            }
            port.commit_each(commits, faults).await
        })
        .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl QueuePort for FaultyPort {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        self.count(|counts| counts.claims += 1);
        let fault = self.meet(Asked::Claim);
        let (lot, lease) = match fault {
            Some(PortFault::Reordered) => (Lot::KeptBack, lease),
            Some(PortFault::LeaseLost(after)) => (Lot::NotRenewed, after.min(lease)),
            Some(PortFault::Duplicated(after)) => (Lot::Unaware, after.min(lease)),
            _ => (Lot::Handed, lease),
        };
        let (port, queue) = (self.clone(), queue.to_owned());
        let jobs = to_its_end(async move {
            let deliveries = &port.shared.deliveries;
            let claim = async {
                match max.saturating_sub(deliveries.kept_back(&queue)) {
                    0 => Ok(Vec::new()),
                    room => port.port.claim(&queue, room, lease).await,
                }
            };
            let claimed = port.ask(fault, claim).await?;
            Ok(deliveries.hand_out(&queue, claimed, max, lot))
        })
        .await?;
        self.count(|counts| counts.claimed += jobs.len() as u64);
        Ok(jobs)
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        self.count(|counts| counts.persists += 1);
        self.ask(self.meet(Asked::PersistClaims), self.port.persist_claims()).await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        self.count(|counts| counts.extensions += 1);
        let held = Held::of(claim);
        match self.meet(Asked::Extend) {
            Some(PortFault::Fails | PortFault::LeaseLost(_)) => return Err(unavailable()),
            Some(PortFault::Down(duration)) => self.shared.condition.set(Health::Down, Some(duration)),
            Some(PortFault::Hung(duration)) => self.shared.condition.set(Health::Hung, Some(duration)),
            _ => {}
        }
        // What gets lost on the way is not told: the queue tells when the lease has ended.
        if !held.is_renewed || self.is_dead() || self.health() != Health::Well {
            return Ok(());
        }
        self.port.extend(&held.claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        self.count(|counts| counts.settlements += 1);
        let fault = self.meet(Asked::Settle);
        let settlement = match settlement {
            Settlement::Ack(claim) => Settlement::Ack(Held::of(&claim).claim.clone()),
            Settlement::Dead(claim, reason) => Settlement::Dead(Held::of(&claim).claim.clone(), reason),
            Settlement::Drop(jobs) => Settlement::Drop(jobs),
        };
        let port = self.clone();
        to_its_end(async move {
            port.delay(fault).await;
            // A settlement repeats itself for as long as the queue is down.
            port.shared.condition.is_well().await;
            let fault = fault.filter(|fault| matches!(fault, PortFault::Fails | PortFault::AnswerLost));
            port.ask(fault, port.port.settle(settlement)).await
        })
        .await
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        if queues.iter().any(|queue| self.shared.deliveries.kept_back(queue) > 0) {
            return;
        }
        self.port.wait_for_work(queues, at_most).await;
        self.shared.condition.lives().await;
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        self.ask(self.meet(Asked::WaitForChange), self.port.wait_for_change(key, seen)).await
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        self.shared.deliveries.kept_back(queue) > 0 || self.port.may_have_ready_job(queue)
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        self.ask(self.meet(Asked::JobState), self.port.job_state(job)).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        self.ask(self.meet(Asked::IsRequeued), self.port.is_requeued(job)).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        self.ask(self.meet(Asked::DeadJobs), self.port.dead_jobs(queue, limit)).await
    }

    fn next_job_id(&self) -> JobId {
        self.port.next_job_id()
    }

    fn open_number(&self) -> u64 {
        self.port.open_number()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.port.clock()
    }
}

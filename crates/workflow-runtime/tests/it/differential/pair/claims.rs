//! Claims, and what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{ClaimedJob, Settlement};

use super::{ALL, Compared, Pair, QUEUES, same};

/// The claims of one job on both queues.
pub(super) struct Held {
    pub(super) queue: usize,
    jobs: [ClaimedJob; 2],
    end: End,
}

/// Whether a claim was settled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// It ends when the stores are released. Until then an extension may hold or not.
    InFlight,
    Settled,
}

impl Held {
    /// Whether its lease has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.jobs[0].lost.is_cancelled()
    }

    /// What was in flight is durable.
    pub(super) fn landed(&mut self) {
        if self.end == End::InFlight {
            self.end = End::Settled;
        }
    }

    fn is_gone(&self) -> bool {
        self.is_lost() || self.end != End::Open
    }
}

impl Pair {
    pub(super) async fn claim(&mut self, queue: usize, max: usize, ticks: u32) -> Compared {
        if self.has_unseen_jobs {
            return Ok(());
        }
        let lease = self.until(ticks);
        let mut claimed = self.claim_both(queue, max, lease).await;
        let count = claimed[0].len();
        same("the number of claimed jobs", &count, &claimed[1].len())?;
        if ids(&claimed[0]) != ids(&claimed[1]) {
            // Which of many are taken is the queue's choice: with the others they are the same.
            let rest = self.claim_both(queue, ALL, lease).await;
            for (claimed, rest) in claimed.iter_mut().zip(rest) {
                claimed.extend(rest);
            }
            self.happened.insert("claim: some of many");
        }
        claimed.iter_mut().for_each(|jobs| jobs.sort_by(|one, other| one.job.cmp(&other.job)));
        same("the deliveries", &deliveries(&claimed[0]), &deliveries(&claimed[1]))?;
        self.happened.insert(match count {
            0 => "claim: none",
            count if count == max => "claim: some of many",
            _ => "claim: all",
        });
        let [memory, taquba] = claimed;
        let pairs = memory.into_iter().zip(taquba);
        self.claims.extend(pairs.map(|(memory, taquba)| Held { queue, jobs: [memory, taquba], end: End::Open }));
        if count < max {
            self.lapsed.remove(&queue);
        }
        Ok(())
    }

    async fn claim_both(&self, queue: usize, max: usize, lease: Duration) -> [Vec<ClaimedJob>; 2] {
        let claim = async |port: &Arc<dyn QueuePort>| {
            port.claim(QUEUES[queue], max, lease).await.expect("an open queue answers a claim")
        };
        [claim(&self.ports[0]).await, claim(&self.ports[1]).await]
    }

    pub(super) fn extend(&mut self, claim: usize, ticks: u32) -> Compared {
        let lease = self.until(ticks);
        let Some(held) = self.nth(claim).filter(|held| held.end != End::InFlight) else { return Ok(()) };
        let (is_gone, claims) = (held.is_gone(), [0, 1].map(|side| held.jobs[side].claim.clone()));
        let [memory, taquba] = [0, 1].map(|side| self.ports[side].extend(&claims[side], lease).is_ok());
        same("an extension", &memory, &taquba)?;
        same("an extension of a claim that is gone", &memory, &!is_gone)?;
        self.happened.insert(if is_gone { "extend: gone" } else { "extend: held" });
        let lost = self.nth(claim).map(|held| [0, 1].map(|side| held.jobs[side].lost.is_cancelled()));
        if let Some([memory, taquba]) = lost.filter(|_| !memory) {
            same("a lost claim", &(memory || is_gone), &taquba)?;
        }
        Ok(())
    }

    pub(super) async fn settle(&mut self, claim: usize, dead: bool) -> Compared {
        let (is_held, ports) = (self.in_flight.is_some(), self.ports.clone());
        let Some(held) = self.nth(claim).filter(|held| held.end != End::InFlight) else { return Ok(()) };
        let is_gone = held.is_gone();
        if !is_gone {
            held.end = if is_held { End::InFlight } else { End::Settled };
        }
        let calls = [0, 1].map(|side| {
            let (port, claim) = (ports[side].clone(), held.jobs[side].claim.clone());
            let settlement = if dead { Settlement::Dead(claim, "because".to_owned()) } else { Settlement::Ack(claim) };
            async move { format!("{:?}", port.settle(settlement).await.map_err(|error| error.to_string())) }.boxed()
        });
        self.call("a settlement", calls).await?;
        self.happened.insert(match (dead, is_gone) {
            (false, false) => "ack: held",
            (false, true) => "ack: gone",
            (true, false) => "dead: held",
            (true, true) => "dead: gone",
        });
        Ok(())
    }

    fn nth(&mut self, claim: usize) -> Option<&mut Held> {
        let count = self.claims.len();
        self.claims.get_mut(claim.checked_rem(count)?)
    }

    /// Makes the claims durable, unless the stores are held: where there is nothing to wait for, a queue may wait or not.
    pub(super) async fn persist(&mut self) -> Compared {
        if self.in_flight.is_some() {
            return Ok(());
        }
        let calls = self.ports.clone().map(|port| {
            async move { format!("{:?}", port.persist_claims().await.map_err(|error| error.to_string())) }.boxed()
        });
        self.call("making the claims durable", calls).await?;
        self.happened.insert("persist: ok");
        Ok(())
    }
}

fn ids(jobs: &[ClaimedJob]) -> Vec<&str> {
    let mut ids: Vec<_> = jobs.iter().map(|job| job.job.as_str()).collect();
    ids.sort_unstable();
    ids
}

fn deliveries(jobs: &[ClaimedJob]) -> Vec<(&str, &[u8], u32)> {
    jobs.iter().map(|job| (job.job.as_str(), job.payload.as_ref(), job.deliveries)).collect()
}

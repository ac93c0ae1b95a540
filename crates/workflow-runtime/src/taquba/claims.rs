//! Claims, one at a time per queue, and their ends.

use std::sync::Arc;
use std::time::Duration;

use ::taquba::ClaimOutcome;
use tracing::{error, warn};
use workflow_effects::Error;

use super::leases::held;
use super::queue::Shared;
use crate::port::{Claim, ClaimedJob, Clock, Settlement};

/// The pauses between the tries of a settlement grow from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(5);

impl Shared {
    /// Claims what is due by our own timer, then what is ready.
    pub(super) async fn claim(
        self: Arc<Self>,
        queue: &str,
        max: usize,
        lease: Duration,
    ) -> Result<Vec<ClaimedJob>, Error> {
        let lane = self.lanes.of(queue);
        let mut turn = lane.turn.lock().await;
        self.look_ahead(queue, &mut turn).await?;
        let _making = self.leases.making().await;
        let mut claims = self.claim_due(queue, max, lease).await?;
        let left = max - claims.len();
        if left > 0 {
            let before = lane.before_claim();
            let ready = self.queue.claim_batch(queue, left, lease).await;
            if let Ok(ready) = &ready {
                lane.claimed(&before, ready.len(), ready.len() < left);
            }
            match ready {
                Ok(ready) => claims.extend(ready),
                Err(cause) if claims.is_empty() => return Err(self.failure(cause).await),
                Err(cause) => warn!(queue, error = &cause as &dyn std::error::Error, "claim failed half-way"),
            }
        }
        Ok(claims.into_iter().map(|claim| self.hand_out(claim)).collect())
    }

    /// Claims by id what our own timer says is due.
    async fn claim_due(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<::taquba::Claim>, Error> {
        let mut claims = Vec::new();
        let mut due = self.schedule.take_due(queue, self.clock.now(), max).into_iter();
        while let Some((at, job)) = due.next() {
            match self.queue.claim_by_id(job.as_str(), lease).await {
                Ok(ClaimOutcome::Claimed(claim)) => claims.push(*claim),
                Ok(ClaimOutcome::NotClaimable | ClaimOutcome::NotFound) => {}
                Err(cause) => {
                    for (at, job) in due.chain([(at, job)]) {
                        self.schedule.add(queue, at, job);
                    }
                    return if claims.is_empty() { Err(self.failure(cause).await) } else { Ok(claims) };
                }
            }
        }
        Ok(claims)
    }

    fn hand_out(self: &Arc<Self>, claim: ::taquba::Claim) -> ClaimedJob {
        let (job, payload, deliveries) = (claim.id.clone(), claim.payload.clone(), claim.attempts);
        let lost = claim.cancel_token().clone();
        let held = self.leases.hold(claim, Arc::downgrade(self));
        ClaimedJob { claim: Claim::new(held), job: job.into(), payload: payload.into(), deliveries, lost }
    }

    /// Ends a claim or a job, again and again until it holds or what is to be ended is gone.
    pub(super) async fn settle(self: Arc<Self>, settlement: Settlement) -> Result<(), Error> {
        // Nobody waits for it, and many transactions at a time would slow down those that somebody waits for.
        let _turn = self.settling.acquire().await;
        match &settlement {
            Settlement::Ack(claim) => {
                let claim = &held(claim).claim;
                self.repeat(&claim.id, || self.queue.ack(claim)).await
            }
            Settlement::Dead(claim, reason) => {
                let claim = &held(claim).claim;
                self.repeat(&claim.id, || self.queue.dead_letter(claim, reason)).await
            }
            Settlement::Drop(jobs) => self.drop_jobs(jobs).await,
        }
    }

    /// Tries `settle` until it holds, the claim is gone, or the queue is.
    pub(super) async fn repeat<T, F>(&self, job: &str, settle: impl Fn() -> F) -> Result<T, Error>
    where
        T: Default,
        F: Future<Output = ::taquba::Result<T>>,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            let cause = match settle().await {
                Ok(settled) => return Ok(settled),
                Err(::taquba::Error::ClaimLost) => return Ok(T::default()),
                Err(cause) if cause.is_permanent() => {
                    error!(job_id = job, error = &cause as &dyn std::error::Error, "a job cannot be settled");
                    return Ok(T::default());
                }
                Err(cause) => self.failure(cause).await,
            };
            if cause.is_closed() {
                return Err(cause);
            }
            warn!(error = &cause as &dyn std::error::Error, "settlement is repeated");
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

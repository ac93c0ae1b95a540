//! The leases in this process's hands, and how they outlast a jump of the clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard};
use tracing::warn;
use workflow_core::Timestamp;
use workflow_effects::Error;

use super::clock::SteadyClock;
use super::failure::error;
use super::queue::Shared;
use crate::port::{Claim, Clock};

/// Taquba adds leases to the time without a check.
const MAX_LEASE: Duration = Duration::from_secs(400 * 24 * 3600);
/// How often the clock is compared with the wall clock.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

/// The longest lease that the queue can be asked for.
pub(super) fn clamped(lease: Duration) -> Duration {
    lease.min(MAX_LEASE)
}

/// A claim in the runtime's hands.
pub(super) struct HeldClaim {
    pub(super) claim: ::taquba::Claim,
    shared: Weak<Shared>,
}

/// The claims in the runtime's hands, by job.
#[derive(Default)]
pub(super) struct Leases {
    held: Mutex<BTreeMap<String, Weak<HeldClaim>>>,
    /// Held for reading while a lease is being made that is not in `held` yet.
    making: RwLock<()>,
}

impl Leases {
    /// Puts off jumps of the clock for as long as the guard lives: claim and [`hold`](Self::hold) under it.
    pub(super) async fn making(&self) -> RwLockReadGuard<'_, ()> {
        self.making.read().await
    }

    /// Takes charge of a claim's lease.
    pub(super) fn hold(&self, claim: ::taquba::Claim, shared: Weak<Shared>) -> Arc<HeldClaim> {
        let job = claim.id.clone();
        let held = Arc::new(HeldClaim { claim, shared });
        self.lock().insert(job, Arc::downgrade(&held));
        held
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<HeldClaim>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            let mut leases = shared.leases.lock();
            if leases.get(&self.claim.id).is_some_and(|held| held.strong_count() == 0) {
                leases.remove(&self.claim.id);
            }
        }
    }
}

/// Our handle inside a claim. A claim of another queue is a bug of the caller's.
pub(super) fn held(claim: &Claim) -> &HeldClaim {
    claim.handle::<Arc<HeldClaim>>().expect("a claim is settled with the queue that made it")
}

impl Shared {
    /// Makes the lease of `claim` last at least `lease` from now.
    pub(super) fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        let held = held(claim);
        // Not between the two halves of a jump.
        let _leases = self.leases.lock();
        let expiry = self.queue.lease_expiry(&held.claim.queue, &held.claim.id);
        let left = expiry.map_or(Duration::ZERO, |at| Timestamp::from_millis(at).since(self.clock.now()));
        let renewed = self.queue.renew_lease(&held.claim, clamped(lease.max(left)));
        renewed.map(|_| ()).map_err(|cause| {
            // The queue tells nobody that a lease has ended. The job goes back, and no commit of ours has put it there.
            held.claim.cancel_token().cancel();
            self.lanes.of(&held.claim.queue).come_back();
            error(cause)
        })
    }

    /// Lets the clock jump ahead by `jump`, which `follow` does: no lease is shorter for it.
    pub(super) async fn outlast(&self, jump: Duration, follow: impl FnOnce()) {
        let _no_claims = self.leases.making.write().await;
        let leases = self.leases.lock();
        // Let go only after the lock, which a claim takes as it is dropped.
        let held: Vec<_> = leases.values().filter_map(Weak::upgrade).collect();
        for held in &held {
            let Some(expiry) = self.queue.lease_expiry(&held.claim.queue, &held.claim.id) else { continue };
            let left = Timestamp::from_millis(expiry).since(self.clock.now());
            // Refused where the claim is lost already.
            let _ = self.queue.renew_lease(&held.claim, clamped(left.saturating_add(jump)));
        }
        follow();
        drop(leases);
        // A wait for a due time is too long now.
        self.schedule.wake();
    }
}

/// Lets the queue's clock follow jumps of the wall clock, every live lease extended first. Ends with the queue.
pub(super) async fn follow_wall_clock(clock: Arc<SteadyClock>, shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(CLOCK_CHECK).await;
        let Some(shared) = shared.upgrade() else { return };
        let Some(jump) = clock.jump() else { continue };
        warn!(jump_ms = jump.as_millis() as u64, "the wall clock jumped ahead");
        shared.outlast(jump, || clock.follow(jump)).await;
    }
}

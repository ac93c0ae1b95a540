//! Leases of the deliveries in hand: renewed together, lost one by one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use workflow_core::{JobId, Timestamp};

use crate::port::{Claim, Clock, QueuePort};
use crate::{Error, Result};

/// The longest lease that is asked of a queue, so that its arithmetic cannot overflow.
const MAX_LEASE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Extends the lease of a step's delivery.
///
/// The runtime renews leases by itself for as long as a step runs. Ask for more before work that may keep the whole
/// process from running, such as a long computation on every worker thread.
#[derive(Clone)]
pub struct LeaseHandle(Arc<dyn Fn(Duration) -> Result<()> + Send + Sync>);

impl LeaseHandle {
    /// A lease of which `ensure_at_least` is asked instead, for tests of a runner.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_runtime::{Error, LeaseHandle, Step};
    ///
    /// let mut step = Step::detached("order 17");
    /// step.lease = LeaseHandle::new(|_| Err(Error::LeaseLost("job 5".to_owned())));
    /// assert!(step.lease.ensure_at_least(Duration::from_secs(60)).is_err());
    /// ```
    pub fn new(ensure_at_least: impl Fn(Duration) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ensure_at_least))
    }

    /// Makes sure that the lease lasts at least `remaining` from now. Never shortens it, and never reaches beyond the
    /// step's timeout.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseLost`] when another delivery may be executing the step.
    pub fn ensure_at_least(&self, remaining: Duration) -> Result<()> {
        (self.0)(remaining)
    }

    /// A lease that never ends, for unit tests of a runner.
    pub fn detached() -> Self {
        Self::new(|_| Ok(()))
    }
}

impl fmt::Debug for LeaseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseHandle")
    }
}

/// The leases of all deliveries of one runtime.
pub(crate) struct Leases {
    port: Arc<dyn QueuePort>,
    clock: Arc<dyn Clock>,
    lease: Duration,
    next: AtomicU64,
    held: Mutex<BTreeMap<u64, Arc<Held>>>,
    /// A lease is held.
    begun: Notify,
}

/// One lease, renewed until it is released or lost.
struct Held {
    port: Arc<dyn QueuePort>,
    clock: Arc<dyn Clock>,
    claim: Claim,
    job: JobId,
    /// Fires when the lease is lost, by whichever side noticed.
    lost: CancellationToken,
}

impl Held {
    fn extend(&self, remaining: Duration, deadline: Timestamp) -> Result<()> {
        let now = self.clock.now();
        let lease = now.after(remaining).min(deadline.max(now)).since(now).min(MAX_LEASE);
        if self.lost.is_cancelled() || self.port.extend(&self.claim, lease).is_err() {
            self.lost.cancel();
            return Err(Error::LeaseLost(self.job.to_string()));
        }
        Ok(())
    }
}

/// Keeps a delivery's lease alive; dropping it stops the renewals.
pub(crate) struct LeaseGuard {
    leases: Arc<Leases>,
    number: u64,
    held: Arc<Held>,
}

impl LeaseGuard {
    /// Fires when the lease is lost.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.held.lost
    }

    /// A handle for the user, who may not extend the lease beyond `deadline`.
    pub(crate) fn handle(&self, deadline: Option<Timestamp>) -> LeaseHandle {
        let (held, deadline) = (self.held.clone(), deadline.unwrap_or(Timestamp::NEVER));
        LeaseHandle::new(move |remaining| held.extend(remaining, deadline))
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.leases.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

impl Leases {
    pub(crate) fn new(port: Arc<dyn QueuePort>, lease: Duration) -> Arc<Self> {
        let clock = port.clock();
        let lease = lease.min(MAX_LEASE);
        Arc::new(Self { port, clock, lease, next: AtomicU64::new(0), held: Mutex::default(), begun: Notify::new() })
    }

    /// How long a lease lasts without a renewal.
    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// Takes charge of the lease of `claim`.
    pub(crate) fn hold(self: &Arc<Self>, claim: Claim, job: JobId, lost: CancellationToken) -> LeaseGuard {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let held = Arc::new(Held { port: self.port.clone(), clock: self.clock.clone(), claim, job, lost });
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(number, held.clone());
        self.begun.notify_one();
        LeaseGuard { leases: self.clone(), number, held }
    }

    /// Renews every lease at a third of its length, and sleeps while there is none. Never returns.
    pub(crate) async fn renew_forever(&self) {
        loop {
            let held: Vec<_> = self.held.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
            if held.is_empty() {
                // What was begun before is told at once.
                self.begun.notified().await;
            }
            for held in held {
                if held.extend(self.lease, Timestamp::NEVER).is_err() {
                    debug!(job_id = %held.job, "lease lost");
                }
            }
            self.clock.sleep(self.lease / 3).await;
        }
    }
}

//! Which faults a simulation meets, and how often.

use std::time::Duration;

use workflow_testkit::{Plan, PortCalls, PortFault, PortPlan, StoreCalls, StoreFault, StorePlan};

/// The kinds of faults that a simulation meets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Faults of the queue's calls.
    pub(crate) port: bool,
    /// Faults of the object store.
    pub(crate) store: bool,
    /// Clock steps.
    pub(crate) clock: bool,
    /// Leases that end all at once, and a disk that holds writes back.
    pub(crate) disk: bool,
    /// Deaths of the process.
    pub(crate) deaths: bool,
}

impl Faults {
    pub(crate) fn all() -> Self {
        Self { port: true, store: true, clock: true, disk: true, deaths: true }
    }

    pub(crate) fn of_port(self, seed: u64) -> PortPlan {
        let mut rates = Vec::new();
        if self.deaths {
            rates.extend([
                (PortCalls::Commit, 10, PortFault::DiesInBatch(0)),
                (PortCalls::Commit, 10, PortFault::DiesInBatch(1)),
            ]);
        }
        if self.port {
            rates.extend(port_rates());
        }
        Plan::random(seed, rates)
    }

    pub(crate) fn of_store(self, seed: u64) -> StorePlan {
        if !self.store {
            return Plan::none();
        }
        let rates = [
            (StoreCalls::Writes, 100, StoreFault::Fails),
            (StoreCalls::Writes, 100, StoreFault::AnswerLost),
            (StoreCalls::Writes, 50, StoreFault::Full),
            (StoreCalls::Reads, 100, StoreFault::Fails),
            (StoreCalls::Any, 50, StoreFault::Slow(SHORT)),
            (StoreCalls::Any, 20, StoreFault::Slow(LONG)),
        ];
        Plan::random(seed, rates)
    }
}

const SHORT: Duration = Duration::from_millis(20);
/// Longer than a lease.
const LONG: Duration = Duration::from_secs(5);

fn port_rates() -> Vec<(PortCalls, u16, PortFault)> {
    vec![
        (PortCalls::Commit, 80, PortFault::Fails),
        (PortCalls::Commit, 80, PortFault::AnswerLost),
        (PortCalls::Commit, 40, PortFault::AnswerLostForLong(LONG)),
        (PortCalls::Claim, 30, PortFault::Fails),
        (PortCalls::Claim, 30, PortFault::AnswerLost),
        (PortCalls::Claim, 60, PortFault::LeaseLost(SHORT)),
        (PortCalls::Claim, 60, PortFault::Duplicated(SHORT)),
        (PortCalls::Claim, 60, PortFault::Duplicated(Duration::ZERO)),
        (PortCalls::Claim, 60, PortFault::Reordered),
        (PortCalls::Extend, 50, PortFault::LeaseLost(SHORT)),
        (PortCalls::Settle, 50, PortFault::Fails),
        (PortCalls::Settle, 50, PortFault::AnswerLost),
        (PortCalls::PersistClaims, 100, PortFault::Fails),
        (PortCalls::Get, 30, PortFault::Fails),
        (PortCalls::Scan, 30, PortFault::Fails),
        (PortCalls::WaitForChange, 50, PortFault::Fails),
        (PortCalls::Any, 5, PortFault::Down(LONG)),
        (PortCalls::Any, 5, PortFault::Hung(LONG)),
        (PortCalls::Any, 30, PortFault::Slow(SHORT)),
        (PortCalls::Any, 10, PortFault::Slow(LONG)),
    ]
}

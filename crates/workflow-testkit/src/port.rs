//! A queue port whose calls meet the faults of a plan.

mod calls;
mod commits;
mod deliveries;
mod faulty;
mod health;
mod plan;

pub use faulty::{FaultyPort, PortCounts};
pub use health::Health;
pub use plan::{PortCalls, PortFault, PortPlan};

#[cfg(test)]
mod tests;

//! Tools that prove workflows, and the stores under them, right.
//!
//! A [`StepFixture`] calls a runner for one step and reports all that it did as data. Faults are values: a test makes one,
//! hands it over as the store it wraps, and keeps a clone to steer it by.
//!
//! | store | what it does |
//! | --- | --- |
//! | [`PowerCut`] | from one write on, nothing reaches the store and no call returns |
//! | [`Gate`] | holds writes back for as long as a test likes |
//! | [`Counting`] | counts the requests |
//! | [`FaultyStore`] | has requests meet the faults of a plan, and runs full |
//!
//! | fault | of a queue port | of an object store |
//! | --- | --- | --- |
//! | slow | [`PortFault::Slow`] | [`StoreFault::Slow`], [`Gate`] |
//! | failing | [`PortFault::Fails`], [`PortFault::Refused`] | [`StoreFault::Fails`] |
//! | ambiguous: done, and reported as failed | [`PortFault::AnswerLost`], [`PortFault::AnswerLostForLong`] | [`StoreFault::AnswerLost`] |
//! | full | | [`StoreFault::Full`], [`FaultyStore::set_capacity`] |
//! | out of service for a while | [`PortFault::Down`], [`PortFault::Hung`], [`FaultyPort::set_health`] | a [`Plan`] of [`When::First`] |
//! | lost lease | [`PortFault::LeaseLost`], [`MemoryDisk::end_leases`] | |
//! | duplicate delivery | [`PortFault::Duplicated`] | |
//! | reordered delivery | [`PortFault::Reordered`] | |
//! | writes that stay undone | [`MemoryDisk::hold`] | [`Gate`] |
//! | death in the middle of a batch | [`PortFault::DiesInBatch`], [`MemoryDisk::cut_power_after`] | [`PowerCut`] |
//! | power cut at the n-th write | [`MemoryDisk::cut_power_after`] | [`PowerCut`] |
//! | clock set forwards or back | [`VirtualClock::set`] with a [`ClockStep`] | |
//!
//! An [`Interleaver`] runs a few calls in every order in which they can meet. A [`Sim`] runs a whole scenario on the real
//! runtime, and [`explore`] lets its process die at every point. A [`Coverage`] tells what of the state machine that has exercised.
//! With the feature `property`, whole workflows are tested with whatever proptest draws: see [`property`].

mod chance;
mod clock;
pub mod conformance;
mod coverage;
mod explore;
mod fixture;
mod interleave;
mod plan;
mod port;
#[cfg(feature = "property")]
pub mod property;
mod queue;
mod sim;
mod store;
mod watch;

pub use chance::Chance;
pub use clock::{ClockStep, Skip, VirtualClock};
pub use coverage::Coverage;
pub use explore::{Explorer, FailedPoint, Held, ParseScheduleError, explore};
pub use fixture::{Difference, Interruption, KvRead, MemoCall, MemoOf, NotIdempotent, StepFixture, StepReport};
pub use interleave::{Actor, Call, Explored, FailedOrder, Interleaver, Moment, Operation, Problem, Turns};
pub use plan::{Plan, Rule, When};
pub use port::{FaultyPort, Health, PortCalls, PortCounts, PortFault, PortPlan};
pub use queue::{MemoryDisk, MemoryQueue, StoredJob};
pub use sim::{Outside, Sim, SimRuntime, Watched};
pub use store::{Counting, FaultyStore, Gate, PowerCut, Requests, StoreCalls, StoreFault, StorePlan};

/// Compiles and runs the snippets of the guide to testing.
#[cfg(all(doctest, feature = "property"))]
#[doc = include_str!("../../../docs/testing.md")]
struct Testing;

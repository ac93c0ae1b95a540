//! Object stores that wrap another store, to break it or to watch it.

mod counting;
mod faulty;
mod gate;
mod intercept;
mod power_cut;

pub use counting::{Counting, Requests};
pub use faulty::{FaultyStore, StoreCalls, StoreFault, StorePlan};
pub use gate::Gate;
pub use power_cut::PowerCut;

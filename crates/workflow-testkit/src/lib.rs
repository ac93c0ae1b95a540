//! Tools that prove workflows, and the stores under them, right. Faults are values: a test makes one, hands it over as
//! the store it wraps, and keeps a clone to steer it by.
//!
//! | store | what it does |
//! | --- | --- |
//! | [`PowerCut`] | from one write on, nothing reaches the store and no call returns |
//! | [`Gate`] | holds writes back for as long as a test likes |
//! | [`Counting`] | counts the requests |

mod store;

pub use store::{Counting, Gate, PowerCut, Requests};

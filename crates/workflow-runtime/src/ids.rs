//! Where ids and chance come from, so that a test can fix them.

use ulid::Ulid;
use workflow_core::Timestamp;

/// A source of random bits for run ids, incarnations, object names and jitter.
pub trait IdSource: Send + Sync + 'static {
    /// 128 random bits, never the same twice.
    fn random(&self) -> u128;
}

/// The operating system's randomness, through a generator per thread. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn random(&self) -> u128 {
        rand::random()
    }
}

/// A fresh run id: a ULID of the queue's time.
pub(crate) fn new_run_id(now: Timestamp, random: u128) -> String {
    Ulid::from_parts(now.as_millis(), random).to_string()
}

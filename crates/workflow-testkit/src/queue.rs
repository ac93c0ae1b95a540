//! The in-memory queue: the port's contract as a small readable model, on which the real runtime runs unchanged.

mod disk;
mod model;
mod port;

pub use disk::{MemoryDisk, MemoryQueue};
pub use model::StoredJob;

#[cfg(test)]
mod tests;

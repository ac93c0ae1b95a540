//! What the tools prove, and proofs that they do.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cancel;
mod faults;
mod faulty_port;
mod interleave;
mod scripted;
mod signals;

//! What the tools prove, and proofs that they do.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cancel;
mod check;
mod clocks;
mod coverage;
mod explore;
mod faults;
mod faulty_port;
mod fixture;
mod interleave;
mod listing;
mod objects;
mod pause;
mod pipelined;
#[cfg(feature = "property")]
mod property;
mod redrive;
mod repair;
mod replay;
mod retention;
mod scripted;
mod signals;
mod simulation;
mod watched;

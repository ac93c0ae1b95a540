//! Exploring scenarios: what a crash at every point finds, and what it lets stand.

mod payment;
mod steps;
mod waits;

//! What is promised of a cancellation, in every phase of a run, in virtual time on the in-memory queue.

mod phases;
mod running;
mod truth;

//! What is promised of a pause, in every phase of a run, in virtual time on the in-memory queue.

mod crashes;
mod executing;
mod meanwhile;
mod phases;

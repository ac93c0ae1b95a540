//! What is promised of pipelined commits, in virtual time on the in-memory queue.

mod explored;
mod promises;

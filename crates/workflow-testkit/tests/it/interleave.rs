//! The interleaver finds what races can do, and the runtime stands the races.

mod races;
mod toy;

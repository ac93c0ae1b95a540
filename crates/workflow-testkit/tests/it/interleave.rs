//! The interleaver finds what races can do, and the runtime stands the races.

mod cancel;
mod races;
mod signals;
mod takes;
mod toy;

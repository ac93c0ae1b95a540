//! The interleaver finds what races can do, and the runtime stands the races.

mod cancel;
mod doorbells;
mod left;
mod pauses;
mod races;
mod redrives;
mod removals;
mod replays;
mod resumes;
mod signals;
mod sweeps;
mod takes;
mod toy;

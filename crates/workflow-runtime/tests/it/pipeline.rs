//! The main job on real files: the example's own program, killed, interrupted, read beside and fed with files that
//! change, always ends with the index that the files call for.

mod changes;
mod corpus;
#[cfg(unix)]
mod full_disk;
#[cfg(unix)]
mod interrupts;
mod kills;
mod large;
mod leftovers;
#[cfg(unix)]
mod odd_files;
mod program;
mod readers;

//! The main job on real files: the example's own program, killed, interrupted, read beside and fed with files that
//! change, always ends with the index that the files call for.

mod changes;
mod corpus;
mod kills;
mod large;
mod program;
mod readers;

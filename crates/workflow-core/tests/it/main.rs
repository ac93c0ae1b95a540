//! The core's integration tests: the whole decision table as a reviewed document, and properties of random runs.

mod properties;
mod table;

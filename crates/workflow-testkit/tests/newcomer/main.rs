//! A trip is booked: written by somebody who had only the front page, the guide to testing and the crates' docs.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod booking;
mod explored;
mod fakes;
mod steps;

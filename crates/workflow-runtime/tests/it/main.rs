//! The public API over Taquba.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod adapter;
mod api;
mod approvals;
mod bucket;
mod conformance;
mod crash;
mod differential;
mod durability;
mod effects;
mod example;
mod failures;
mod hooks;
mod hostile;
mod many_ended;
mod many_timers;
mod overload;
mod pipeline;
mod pipelined;
mod power_cut;
mod reading;
mod recovery;
mod settings;
mod shutdown;
mod steps;
mod submit;
mod support;
mod unknown;
mod views;

//! Benchmarks: the same workloads on this runtime and on its peer, on the same kind of store, in turn.
//!
//! `run` measures one system once, in this process, and prints one JSON line. `compare` starts such processes A B A B
//! and prints the ratios of their medians.

mod bucket;
mod chart;
mod compare;
mod measure;
mod place;
mod report;
mod soak;
mod systems;
mod workload;

use std::process::ExitCode;

use crate::place::StoreKind;
use crate::systems::SystemKind;
use crate::workload::Workload;

xflags::xflags! {
    /// Benchmarks of the workflow runtime.
    cmd workflow-bench {
        /// Measure one system once and print one JSON line.
        cmd run {
            /// ours, ours-replay, ours-pipelined, ours-tick (a queue of the user's own), peer or peer-replay.
            required --system system: SystemKind
            /// w1, w2, w3, w3-1024, w3-4096, w4, w4-100k, w5, w6, w7-64k, w7-1m, w9.
            required --workload workload: Workload
            /// memory, directory, fsync or bucket.
            required --store store: StoreKind
            /// Another number of runs than the workload's.
            optional --runs runs: usize
            /// Another number of steps.
            optional --steps steps: u32
            /// Another number of runs at a time.
            optional --in-flight in_flight: usize
            /// Another least time between flushes of ours than what fits the store, in milliseconds.
            optional --flush-gap flush_gap: u64
            /// Another flush interval of ours, in milliseconds.
            optional --flush-interval flush_interval: u64
        }

        /// Run a small workload on one thread, on a store in memory, for a tool that counts instructions.
        cmd load {}

        /// Let runs come at a steady rate and go a minute after their end, and print what is seen every ten seconds.
        cmd soak {
            /// For how long.
            required --minutes minutes: u64
            /// memory, directory, fsync or bucket.
            required --store store: StoreKind
            /// How many runs a second, 200 unless told.
            optional --rate rate: u64
            /// A file to draw it in.
            optional --svg svg: String
        }

        /// Measure systems in turn and print the ratios.
        cmd compare {
            /// The first system, `ours` unless told.
            optional --a system: SystemKind
            /// The second system, `peer` unless told.
            optional --b system: SystemKind
            /// Workloads to measure, all unless told.
            repeated --workload workload: Workload
            /// Stores to measure on, all unless told.
            repeated --store store: StoreKind
            /// How often each is measured, 5 unless told.
            optional --rounds rounds: usize
        }
    }
}

fn main() -> ExitCode {
    let flags = WorkflowBench::from_env_or_exit();
    let done = match flags.subcommand {
        WorkflowBenchCmd::Run(run) => measure::run(&run),
        WorkflowBenchCmd::Load(_) => measure::load(),
        WorkflowBenchCmd::Soak(soak) => soak::run(&soak),
        WorkflowBenchCmd::Compare(compare) => compare::run(&compare),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

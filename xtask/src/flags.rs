//! The command line: flags are parsed into types here and nowhere else.

use crate::ci::Stage;

xflags::xflags! {
    /// Automation of the workflow project.
    cmd xtask {
        /// Run everything CI runs. Changes no file.
        cmd ci {
            /// Run one stage: tidy, fmt, clippy, tests, docs, features or light.
            optional --only stage: Stage
        }

        /// Check layers, file headers and lengths, licences, links and the changelog.
        cmd tidy {}

        /// Format, apply lint suggestions and rewrite snapshots.
        cmd fix {}

        /// Run the simulation of the testkit: random users, runs and faults, while every invariant is watched. Without a
        /// flag, seed 0.
        cmd sim {
            /// Simulate this seed, or begin with it.
            optional --seed seed: u64
            /// Go on with the next seeds for so long, optimized.
            optional --minutes minutes: u64
        }

        /// Break a copy of the code by each patch in crates/workflow-runtime/tests/mutants, and see that the tests
        /// which the patch names fail.
        cmd mutants {
            /// Try only those whose name contains this.
            optional --only name: String
        }

        /// Build the benchmarks and compare this runtime with its peers: `cargo xtask bench -- --workload w1`.
        cmd bench {
            /// Count the instructions of a small load, and fail if they are over a tenth more than recorded.
            optional --check
            /// Record how many instructions the small load takes.
            optional --record
            /// What to compare, as `workflow-bench help` tells.
            repeated args: String
        }

        /// Run what takes too long for every commit: ten minutes of simulation, all mutants, the count of instructions.
        cmd nightly {}
    }
}

//! What is measured: how many runs of how many steps, how many at a time, and what a step does.

use std::str::FromStr;

use anyhow::bail;

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One run of 100 steps.
    W1,
    /// 1,000 runs of 5 steps, 64 at a time.
    W2,
    /// 10,000 runs of 3 steps, so many at a time.
    W3 { in_flight: usize },
    /// Opening a store in which so many runs are ready, up to the first step.
    W4 { active: usize },
    /// Signal to the end of a run that waited for it.
    W5,
    /// As W2, with four memo puts of 1 KiB in each step.
    W6,
    /// 200 runs of 5 steps with payloads of so many bytes, 16 at a time.
    W7 { payload: usize },
    /// 10,000 runs of one step, 64 at a time.
    W9,
}

/// What a workload asks for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many runs.
    pub runs: usize,
    /// How many steps each has.
    pub steps: u32,
    /// How many are submitted and not ended at any time; as many steps may execute at a time.
    pub in_flight: usize,
    /// The bytes of every payload and of the result.
    pub payload: usize,
    /// The memo puts of each step, of 1 KiB each.
    pub memos: usize,
    /// Whether the first step waits for a signal. The time is taken from the signal on then.
    pub signalled: bool,
}

impl Workload {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 12] = [
        Self::W1,
        Self::W2,
        Self::W3 { in_flight: 64 },
        Self::W3 { in_flight: 1_024 },
        Self::W3 { in_flight: 4_096 },
        Self::W4 { active: 10_000 },
        Self::W4 { active: 100_000 },
        Self::W5,
        Self::W6,
        Self::W7 { payload: 64 << 10 },
        Self::W7 { payload: 1 << 20 },
        Self::W9,
    ];

    /// What it asks for.
    pub fn shape(self) -> Shape {
        let base = Shape { runs: 1_000, steps: 5, in_flight: 64, payload: 32, memos: 0, signalled: false };
        match self {
            Self::W1 => Shape { runs: 1, steps: 100, in_flight: 1, ..base },
            Self::W2 => base,
            Self::W3 { in_flight } => Shape { runs: 10_000, steps: 3, in_flight, ..base },
            Self::W4 { active } => Shape { runs: active, steps: 1, ..base },
            Self::W5 => Shape { runs: 200, steps: 2, in_flight: 1, signalled: true, ..base },
            Self::W6 => Shape { memos: 4, ..base },
            Self::W7 { payload } => Shape { runs: 200, in_flight: 16, payload, ..base },
            Self::W9 => Shape { runs: 10_000, steps: 1, ..base },
        }
    }

    /// How the command line and the report call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::W1 => "w1",
            Self::W2 => "w2",
            Self::W3 { in_flight: 64 } => "w3",
            Self::W3 { in_flight: 1_024 } => "w3-1024",
            Self::W3 { .. } => "w3-4096",
            Self::W4 { active: 10_000 } => "w4",
            Self::W4 { .. } => "w4-100k",
            Self::W5 => "w5",
            Self::W6 => "w6",
            Self::W7 { payload: 65_536 } => "w7-64k",
            Self::W7 { .. } => "w7-1m",
            Self::W9 => "w9",
        }
    }
}

impl FromStr for Workload {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|workload| workload.name() == name) {
            Some(workload) => Ok(workload),
            None => bail!("there is no workload `{name}`"),
        }
    }
}

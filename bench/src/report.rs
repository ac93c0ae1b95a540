//! One line per measurement, and what the process itself knows of its costs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bucket::Requests;

/// One measurement.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    pub system: String,
    pub workload: String,
    pub store: String,
    pub runs: usize,
    pub steps: u32,
    pub in_flight: usize,
    /// From the first submission (from the first signal, in W5) to the last end.
    pub wall_s: f64,
    pub steps_per_s: f64,
    pub ms_per_step: f64,
    /// Of a run: from its submission (from its signal) to its end.
    pub run_p50_ms: f64,
    pub run_p99_ms: f64,
    /// User and system time of the process, per step.
    pub cpu_us_per_step: f64,
    /// The most memory that the process had resident, in MiB.
    pub peak_mib: f64,
    /// What the store's directory holds at the end, per step.
    pub stored_bytes_per_step: Option<f64>,
    pub stored_files: Option<u64>,
    /// What was asked of a bucket, per 1,000 steps.
    pub requests_per_1000_steps: Option<Requests>,
}

/// The `p`-th percentile (0 to 100), in milliseconds.
pub fn percentile_ms(samples: &mut [Duration], p: f64) -> f64 {
    samples.sort_unstable();
    let rank = (p / 100.0 * samples.len().saturating_sub(1) as f64).round() as usize;
    samples.get(rank).map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
}

/// User and system time of this process so far, in seconds.
pub fn cpu_s() -> f64 {
    // Clock ticks have been hundredths of a second on every Linux.
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_S
}

/// The most memory that this process ever had resident, in MiB.
pub fn peak_mib() -> f64 {
    status_mib("VmHWM:")
}

/// The memory that this process has resident, in MiB.
pub fn resident_mib() -> f64 {
    status_mib("VmRSS:")
}

fn status_mib(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

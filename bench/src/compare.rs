//! Measures two systems in turn, each time in a process of its own, and prints the ratios of their medians.

use std::process::Command;

use anyhow::{Context, bail};

use crate::Compare;
use crate::bucket::Requests;
use crate::place::StoreKind;
use crate::report::Line;
use crate::systems::{Mode, SystemKind};
use crate::workload::Workload;

const ROUNDS: usize = 5;

/// Measures what `flags` ask for. The lines of the single measurements go to standard output, the table to standard
/// error.
pub fn run(flags: &Compare) -> anyhow::Result<()> {
    let a = flags.a.unwrap_or(SystemKind::Ours(Mode::Strict));
    let b = flags.b.unwrap_or(SystemKind::Peer { replay: false });
    let workloads = if flags.workload.is_empty() { &Workload::ALL[..] } else { &flags.workload };
    let stores = if flags.store.is_empty() { &StoreKind::ALL[..] } else { &flags.store };
    eprintln!("| workload | store | unit | {} | {} | ratio |", a.name(), b.name());
    eprintln!("| --- | --- | --- | --- | --- | --- |");
    for workload in workloads {
        for store in stores {
            let (of_a, of_b) = in_turn(a, b, *workload, *store, flags.rounds.unwrap_or(ROUNDS))?;
            for row in rows(*workload, &of_a, &of_b) {
                eprintln!("| {} | {} | {row}", workload.name(), store.name());
            }
        }
    }
    Ok(())
}

/// Measures A B A B, each time in a process of its own.
fn in_turn(
    a: SystemKind,
    b: SystemKind,
    workload: Workload,
    store: StoreKind,
    rounds: usize,
) -> anyhow::Result<(Vec<Line>, Vec<Line>)> {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        of_a.push(measure(a, workload, store)?);
        of_b.push(measure(b, workload, store)?);
    }
    Ok((of_a, of_b))
}

fn measure(system: SystemKind, workload: Workload, store: StoreKind) -> anyhow::Result<Line> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["run", "--system", system.name(), "--workload", workload.name(), "--store", store.name()]);
    let output = command.output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed at {} on {}: {errors}", system.name(), workload.name(), store.name());
    }
    let text = String::from_utf8(output.stdout)?;
    print!("{text}");
    serde_json::from_str(&text).context("a measurement printed another line")
}

/// The rows of the table for one workload on one store: time first, then memory and bytes.
fn rows(workload: Workload, of_a: &[Line], of_b: &[Line]) -> Vec<String> {
    let row = |unit: &str, better_is_more: bool, of: fn(&Line) -> f64| {
        let (a, b) = (Spread::of(of_a, of), Spread::of(of_b, of));
        let ratio = if better_is_more { a.median / b.median } else { b.median / a.median };
        format!("{unit} | {} | {} | {ratio:.2} |", a.text(), b.text())
    };
    let time = match workload {
        Workload::W1 => row("ms a step", false, |line| line.ms_per_step),
        Workload::W4 { .. } => row("ms to the first step", false, |line| line.wall_s * 1e3),
        Workload::W5 => row("p50 ms", false, |line| line.run_p50_ms),
        _ => row("steps/s", true, |line| line.steps_per_s),
    };
    let mut rows = vec![
        time,
        row("CPU µs a step", false, |line| line.cpu_us_per_step),
        row("peak MiB", false, |line| line.peak_mib),
    ];
    if of_a.iter().all(|line| line.stored_bytes_per_step.is_some()) {
        rows.push(row("stored bytes a step", false, |line| line.stored_bytes_per_step.unwrap_or_default()));
    }
    if of_a.iter().all(|line| line.requests_per_1000_steps.is_some()) {
        rows.push(row("run p50 ms", false, |line| line.run_p50_ms));
        rows.push(row("requests per 1,000 steps", false, |line| asked(line, Requests::charged)));
        rows.push(row("puts per 1,000 steps", false, |line| asked(line, |requests| requests.puts)));
        rows.push(row("KiB put per 1,000 steps", false, |line| asked(line, |requests| requests.put_bytes / 1024.0)));
    }
    rows
}

/// A figure of what was asked of a bucket.
fn asked(line: &Line, figure: fn(&Requests) -> f64) -> f64 {
    line.requests_per_1000_steps.as_ref().map_or(f64::NAN, figure)
}

/// Least, middle and most of one figure.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(lines: &[Line], figure: fn(&Line) -> f64) -> Self {
        let mut figures: Vec<f64> = lines.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        Self { least: at(0), median: at(figures.len() / 2), most: at(figures.len().saturating_sub(1)) }
    }

    fn text(&self) -> String {
        format!("{} ({}–{})", short(self.median), short(self.least), short(self.most))
    }
}

/// Three digits that count.
fn short(figure: f64) -> String {
    match figure.abs() {
        0.0..1.0 => format!("{figure:.3}"),
        1.0..100.0 => format!("{figure:.2}"),
        _ => format!("{figure:.0}"),
    }
}

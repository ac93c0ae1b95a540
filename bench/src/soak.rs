//! A soak: runs at a steady rate for as long as asked, while ended ones are removed, and what memory, latency and store do
//! meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use workflow_runtime::{
    NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner, TerminalStatus, WorkflowRuntime, open_on_with,
};

use crate::Soak;
use crate::chart::{Chart, Series, page};
use crate::place::Place;
use crate::report::{percentile_ms, resident_mib};

const STEPS: u32 = 5;
/// How long an ended run is kept: after that time the store stops growing.
const RETENTION: Duration = Duration::from_secs(60);
/// How often memory and latency are noted.
const SAMPLED: Duration = Duration::from_secs(10);
/// How often runs are submitted.
const TICK: Duration = Duration::from_millis(50);

/// What was seen in one period.
#[derive(Debug, Serialize)]
struct Sample {
    at_s: f64,
    /// Runs whose submission was answered, and the median of how long that took.
    submitted: usize,
    submitted_p50_ms: f64,
    /// Steps that were started.
    steps: u64,
    /// Runs that ended.
    runs: usize,
    /// From the submission of a run to its end.
    p50_ms: f64,
    p99_ms: f64,
    resident_mib: f64,
    stored_mib: f64,
}

struct Steps(Arc<Seen>);

/// What was seen since the last sample.
#[derive(Default)]
struct Seen {
    submitted: Mutex<Vec<Duration>>,
    steps: AtomicU64,
    ended: Mutex<Vec<Duration>>,
}

impl StepRunner for Steps {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        self.0.steps.fetch_add(1, Ordering::Relaxed);
        let payload = step.payload.clone();
        step.effects.put("latest", payload.clone())?;
        Ok(match step.step_number + 1 {
            STEPS => StepOutcome::Succeed { result: payload },
            _ => StepOutcome::continue_now(payload),
        })
    }
}

type Runtime = WorkflowRuntime<Steps, NoopTerminalHook>;

/// Soaks, prints a JSON line for every period, and draws them if there is a file for it.
pub fn run(flags: &Soak) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let samples = runtime.block_on(soak(flags))?;
    match &flags.svg {
        Some(path) => Ok(std::fs::write(Path::new(path), drawn(&samples))?),
        None => Ok(()),
    }
}

async fn soak(flags: &Soak) -> anyhow::Result<Vec<Sample>> {
    let place = Place::new(flags.store)?;
    let storage = open_on_with(place.store.clone(), place.settings).await?;
    let seen = Arc::new(Seen::default());
    let runtime = storage.runtime(Steps(seen.clone()), NoopTerminalHook).retention(RETENTION).build()?;
    let worker = runtime.spawn(std::future::pending());
    let began = Instant::now();
    let end = Duration::from_secs(60 * flags.minutes);
    let submitting = tokio::spawn(submit_steadily(runtime.clone(), flags.rate.unwrap_or(200), end, seen.clone()));
    let mut samples = Vec::new();
    while began.elapsed() < end {
        tokio::time::sleep(SAMPLED).await;
        let sample = sample(began.elapsed(), &seen, &place);
        println!("{}", serde_json::to_string(&sample)?);
        samples.push(sample);
    }
    submitting.await??;
    worker.shutdown().await?;
    drop(runtime);
    storage.close().await?;
    Ok(samples)
}

/// Submits `rate` runs a second and notes how long each takes to its end.
async fn submit_steadily(runtime: Runtime, rate: u64, end: Duration, seen: Arc<Seen>) -> anyhow::Result<()> {
    let (began, mut ticks, mut tasks) = (Instant::now(), interval(TICK), JoinSet::new());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut submitted = 0;
    while began.elapsed() < end {
        ticks.tick().await;
        let due = (began.elapsed().as_secs_f64() * rate as f64) as u64;
        for number in submitted..due {
            tasks.spawn(one(runtime.clone(), number, seen.clone()));
        }
        submitted = submitted.max(due);
        while let Some(ended) = tasks.try_join_next() {
            ended??;
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn one(runtime: Runtime, number: u64, seen: Arc<Seen>) -> anyhow::Result<()> {
    let (run_id, began) = (format!("run-{number}"), Instant::now());
    runtime.submit(RunSpec { run_id: Some(run_id.clone()), input: vec![b'x'; 32], ..RunSpec::default() }).await?;
    note(&seen.submitted, began);
    let end = runtime.wait(&run_id).await?;
    ensure!(end.status == TerminalStatus::Succeeded, "{run_id} ended as {:?}", end.status);
    note(&seen.ended, began);
    Ok(())
}

fn note(times: &Mutex<Vec<Duration>>, began: Instant) {
    times.lock().expect("nobody panics with it").push(began.elapsed());
}

fn taken(times: &Mutex<Vec<Duration>>) -> Vec<Duration> {
    std::mem::take(&mut *times.lock().expect("nobody panics with it"))
}

fn sample(at: Duration, seen: &Seen, place: &Place) -> Sample {
    let (mut submitted, mut ended) = (taken(&seen.submitted), taken(&seen.ended));
    Sample {
        at_s: at.as_secs_f64(),
        submitted: submitted.len(),
        submitted_p50_ms: percentile_ms(&mut submitted, 50.0),
        steps: seen.steps.swap(0, Ordering::Relaxed),
        runs: ended.len(),
        p50_ms: percentile_ms(&mut ended, 50.0),
        p99_ms: percentile_ms(&mut ended, 99.0),
        resident_mib: resident_mib(),
        stored_mib: place.usage().map_or(0.0, |(bytes, _)| bytes as f64 / f64::from(1 << 20)),
    }
}

fn drawn(samples: &[Sample]) -> String {
    let points = |value: fn(&Sample) -> f64| samples.iter().map(|sample| (sample.at_s / 60.0, value(sample))).collect();
    let memory = [
        Series { name: "resident", colour: "#1b6ca8", points: points(|sample| sample.resident_mib) },
        Series { name: "store", colour: "#c06014", points: points(|sample| sample.stored_mib) },
    ];
    let latency = [
        Series { name: "p50", colour: "#1b6ca8", points: points(|sample| sample.p50_ms) },
        Series { name: "p99", colour: "#c06014", points: points(|sample| sample.p99_ms) },
    ];
    page(&[
        Chart { title: "MiB", x_label: "minutes", series: &memory },
        Chart { title: "ms from submission to end", x_label: "minutes", series: &latency },
    ])
}

//! One measurement of one system: drives a workload through its public API.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Run;
use crate::bucket::Requests;
use crate::place::{Place, StoreKind};
use crate::report::{Line, cpu_s, peak_mib, percentile_ms};
use crate::systems::{FirstStep, Mode, System, SystemKind};
use crate::workload::{Shape, Workload};

/// Measures and prints one line.
pub fn run(flags: &Run) -> anyhow::Result<()> {
    let shape = flags.workload.shape();
    let shape = Shape {
        runs: flags.runs.unwrap_or(shape.runs),
        steps: flags.steps.unwrap_or(shape.steps),
        in_flight: flags.in_flight.unwrap_or(shape.in_flight),
        ..shape
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let line = runtime.block_on(measure(flags, shape))?;
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

/// Runs 200 runs of 5 steps, 8 at a time, on one thread: what a tool that counts instructions is to count.
pub fn load() -> anyhow::Result<()> {
    let shape = Shape { runs: 200, in_flight: 8, ..Workload::W2.shape() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let place = Place::new(StoreKind::Memory)?;
        let system = SystemKind::Ours(Mode::Strict).open(&place, shape, FirstStep::default()).await?;
        system.start().await;
        drive(&system, shape).await?;
        system.close().await
    })
}

async fn measure(flags: &Run, shape: Shape) -> anyhow::Result<Line> {
    let (kind, workload, store) = (flags.system, flags.workload, flags.store);
    let mut place = Place::new(store)?;
    let settings = &mut place.settings;
    settings.flush_gap = flags.flush_gap.map_or(settings.flush_gap, Duration::from_millis);
    settings.flush_interval = flags.flush_interval.map_or(settings.flush_interval, Duration::from_millis);
    let Measured { wall, cpu, mut samples, usage, requests } = match workload {
        Workload::W4 { .. } => reopen(kind, &place, shape).await?,
        _ => run_all(kind, &place, shape).await?,
    };
    let steps = (shape.runs * shape.steps as usize) as f64;
    Ok(Line {
        system: kind.name().to_owned(),
        workload: workload.name().to_owned(),
        store: store.name().to_owned(),
        runs: shape.runs,
        steps: shape.steps,
        in_flight: shape.in_flight,
        wall_s: wall.as_secs_f64(),
        steps_per_s: steps / wall.as_secs_f64(),
        ms_per_step: wall.as_secs_f64() * 1e3 / steps,
        run_p50_ms: percentile_ms(&mut samples, 50.0),
        run_p99_ms: percentile_ms(&mut samples, 99.0),
        cpu_us_per_step: cpu * 1e6 / steps,
        peak_mib: peak_mib(),
        stored_bytes_per_step: usage.map(|(bytes, _)| bytes as f64 / steps),
        stored_files: usage.map(|(_, files)| files),
        requests_per_1000_steps: requests.map(|(before, after)| after.per_1000(&before, steps)),
    })
}

/// What was measured of one system.
struct Measured {
    wall: Duration,
    /// CPU time in seconds.
    cpu: f64,
    /// How long each run took.
    samples: Vec<Duration>,
    /// Bytes and files in the store's directory, before it is closed.
    usage: Option<(u64, u64)>,
    /// What had been asked of a bucket before and after.
    requests: Option<(Requests, Requests)>,
}

/// Runs all of a workload.
async fn run_all(kind: SystemKind, place: &Place, shape: Shape) -> anyhow::Result<Measured> {
    let system = kind.open(place, shape, FirstStep::default()).await?;
    system.start().await;
    // The first run finds caches cold and files missing.
    one(&*system, "warm-up", shape).await?;
    let requests = place.requests();
    let (cpu, began) = (cpu_s(), Instant::now());
    let samples = drive(&system, shape).await?;
    let wall = if shape.signalled { samples.iter().sum() } else { began.elapsed() };
    let (cpu, usage) = (cpu_s() - cpu, place.usage());
    let requests = requests.zip(place.requests());
    system.close().await?;
    Ok(Measured { wall, cpu, samples, usage, requests })
}

/// Opens a store in which all runs of a workload are ready, up to their first step. The samples are the times of the
/// opening alone and of the first step.
async fn reopen(kind: SystemKind, place: &Place, shape: Shape) -> anyhow::Result<Measured> {
    let system = kind.open(place, shape, FirstStep::default()).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let submitters = (0..shape.in_flight).map(|_| async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= shape.runs {
                return anyhow::Ok(());
            }
            system.submit(&format!("run-{number:08}"), vec![b'x'; shape.payload]).await?;
        }
    });
    futures::future::try_join_all(submitters).await?;
    system.close().await?;
    let usage = place.usage();
    let requests = place.requests();
    let (first_step, cpu, began) = (FirstStep::default(), cpu_s(), Instant::now());
    let system = kind.open(place, shape, first_step.clone()).await?;
    let opened = began.elapsed();
    system.start().await;
    let first = loop {
        match first_step.get() {
            Some(first) => break first.duration_since(began),
            None => tokio::time::sleep(Duration::from_micros(100)).await,
        }
    };
    let requests = requests.zip(place.requests());
    Ok(Measured { wall: first, cpu: cpu_s() - cpu, samples: vec![opened, first], usage, requests })
}

/// Keeps `in_flight` runs going until all have ended, and says how long each took.
async fn drive(system: &Arc<dyn System>, shape: Shape) -> anyhow::Result<Vec<Duration>> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..shape.in_flight {
        let (system, next) = (system.clone(), next.clone());
        tasks.spawn(async move {
            let mut samples = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= shape.runs {
                    return anyhow::Ok(samples);
                }
                samples.push(one(&*system, &format!("run-{number:08}"), shape).await?);
            }
        });
    }
    let mut samples = Vec::with_capacity(shape.runs);
    while let Some(ended) = tasks.join_next().await {
        samples.extend(ended??);
    }
    Ok(samples)
}

/// Submits a run and waits for its end.
async fn one(system: &dyn System, run: &str, shape: Shape) -> anyhow::Result<Duration> {
    let mut began = Instant::now();
    system.submit(run, vec![b'x'; shape.payload]).await?;
    if shape.signalled {
        system.wait_until_waiting(run).await?;
        began = Instant::now();
        system.signal(run).await?;
    }
    system.wait(run).await?;
    Ok(began.elapsed())
}

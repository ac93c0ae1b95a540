//! Stores that hold many runs whose time is far, and many that wait for a signal without an end: how late steps start
//! there, how long a signal takes, what the process and an open cost. Prints figures when the environment asks for them:
//! `TIMERS=1000000 cargo test --release -p workflow-runtime --test it many_timers -- --nocapture --test-threads=1`.
//!
//! A store in memory is part of the process. With `STORE=/some/folder` the stores are kept there, and a second call of
//! the same command measures a process that only opens them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use workflow_runtime::{
    NoopTerminalHook, RunFilter, RunOrder, RunSpec, RunState, RunnerHandle, StepOutcome, Storage, WorkflowRuntime,
    open_on,
};

use crate::support::{Runner, disk, spec};

type Runtime = WorkflowRuntime<Runner, NoopTerminalHook>;
type Lateness = Arc<Mutex<Vec<Duration>>>;

/// The first and the last due time of a far run, counted from its submission.
const FAR: (Duration, Duration) = (Duration::from_secs(24 * 3_600), Duration::from_secs(48 * 3_600));
/// How long an idle process is watched.
const IDLE: Duration = Duration::from_secs(30);
/// How long the storage engine is left alone before anything is timed.
const SETTLING: Duration = Duration::from_secs(30);

/// So many runs are far or wait, so many are timed beside them, and within this time: more where the environment asks.
fn extent() -> (usize, usize, Duration) {
    match asked() {
        Some(count) => (count, 200, Duration::from_secs(10)),
        None => (300, 20, Duration::from_millis(200)),
    }
}

fn asked() -> Option<usize> {
    std::env::var("TIMERS").ok().and_then(|count| count.parse().ok())
}

/// An opened store with a running loop.
struct World {
    storage: Storage,
    runtime: Runtime,
    running: RunnerHandle,
    lateness: Lateness,
}

impl World {
    async fn open(disk: &Arc<dyn ObjectStore>) -> Self {
        let storage = open_on(disk.clone()).await.unwrap();
        let lateness = Lateness::default();
        let runtime = storage.runtime(runner(lateness.clone()), NoopTerminalHook).build().unwrap();
        let running = runtime.spawn(std::future::pending());
        Self { storage, runtime, running, lateness }
    }

    async fn close(self) {
        self.running.shutdown().await.unwrap();
        drop(self.runtime);
        self.storage.close().await.unwrap();
    }

    async fn end_of(&self, spec: RunSpec) {
        let submitted = self.runtime.submit(spec).await.unwrap();
        self.runtime.wait(&submitted.run_id).await.unwrap();
    }

    /// Submits `count` runs, many at a time, unless an earlier call has.
    async fn fill(&self, count: usize, spec: impl Fn(usize) -> RunSpec) {
        if self.runtime.count(RunFilter::default()).await.unwrap() > 0 {
            return;
        }
        let submissions = (0..count).map(|number| self.runtime.submit(spec(number)));
        stream::iter(submissions).buffer_unordered(512).for_each(async |submitted| drop(submitted.unwrap())).await;
    }
}

/// Notes how late a step starts that was due, waits for ever where it is told to, and succeeds.
fn runner(lateness: Lateness) -> Runner {
    Runner::sync(move |step| {
        if step.payload == b"wait" {
            return Ok(StepOutcome::continue_on_signal(Vec::new(), step.run_id.clone(), Duration::MAX));
        }
        if let Ok(due) = step.payload.as_slice().try_into().map(u128::from_be_bytes) {
            let late = since_epoch().saturating_sub(Duration::from_nanos(u64::try_from(due).unwrap()));
            lateness.lock().unwrap().push(late);
        }
        Ok(StepOutcome::Succeed { result: Vec::new() })
    })
}

/// A run that is due after `delay`.
fn due_after(id: &str, delay: Duration) -> RunSpec {
    let due = SystemTime::now() + delay;
    let input = due.duration_since(UNIX_EPOCH).unwrap().as_nanos().to_be_bytes().to_vec();
    RunSpec { run_id: Some(id.to_owned()), input, run_at: Some(due), ..RunSpec::default() }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn describe(mut times: Vec<Duration>) -> String {
    times.sort();
    let [median, high, most] = [50, 99, 100].map(|percent| millis(times[(times.len() - 1) * percent / 100]));
    format!("p50 {median:.2} ms, p99 {high:.2} ms, at most {most:.2} ms")
}

/// The memory of the process in MiB, where the system tells.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// The time that the process has spent on processors, where the system tells.
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let spent = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    Duration::from_nanos(spent.filter_map(|spent| spent.split(' ').next()?.parse::<u64>().ok()).sum())
}

/// The part of one core that the process takes while nothing happens, in percent.
async fn idle() -> f64 {
    let before = processor_time();
    tokio::time::sleep(IDLE).await;
    (processor_time() - before).as_secs_f64() / IDLE.as_secs_f64() * 100.0
}

/// Prints what an empty store takes, without and with a runtime. The memory of the process with both.
async fn measure_empty() -> f64 {
    let storage = open_on(Arc::new(InMemory::new())).await.unwrap();
    let without = idle().await;
    storage.close().await.unwrap();
    let world = World::open(&disk("empty")).await;
    let with = idle().await;
    let empty = resident();
    println!("idle: {without:.3} % of a core without, {with:.3} % with a runtime; {empty:.1} MiB");
    world.close().await;
    empty
}

/// Opens what `disk` holds in a settled store, and prints how long that takes.
async fn reopen(disk: &Arc<dyn ObjectStore>) -> World {
    let begun = Instant::now();
    let world = World::open(disk).await;
    let opened = begun.elapsed();
    world.end_of(RunSpec::default()).await;
    println!("open: {:.1} ms, and the first run ended after {:.1} ms", millis(opened), millis(begun.elapsed()));
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_timers_ring_beside_many_far_ones() {
    let (count, timed, within) = extent();
    let empty = if asked().is_some() { measure_empty().await } else { 0.0 };
    let disk = disk("timers");
    let world = World::open(&disk).await;
    let far = |number: usize| {
        let share = number as f64 / count as f64;
        due_after(&format!("far-{number}"), FAR.0 + (FAR.1 - FAR.0).mul_f64(share))
    };
    world.fill(count, far).await;
    world.close().await;

    let world = reopen(&disk).await;
    if asked().is_some() {
        tokio::time::sleep(SETTLING).await;
        println!("{count} far runs: {:.1} MiB over an empty runtime", resident() - empty);
    }
    let near = (0..timed).map(|number| {
        let id = format!("near-{number}-{}", since_epoch().as_nanos());
        world.end_of(due_after(&id, within.mul_f64(rand::random())))
    });
    join_all(near).await;
    let lateness = std::mem::take(&mut *world.lateness.lock().unwrap());
    assert_eq!(lateness.len(), timed, "each near one has rung once, and no far one");
    println!("{timed} near runs within {within:?}: late by {}", describe(lateness));
    world.close().await;
}

fn waiting() -> RunFilter {
    RunFilter { state: Some(RunState::Waiting), ..RunFilter::default() }
}

/// An opened store in which `count` runs wait, or those that an earlier call has left.
async fn with_waiting(disk: &Arc<dyn ObjectStore>, count: usize) -> World {
    let world = World::open(disk).await;
    world.fill(count, |number| spec(&format!("wait-{number}"), "wait")).await;
    let active = RunFilter { state: Some(RunState::Active), ..RunFilter::default() };
    // A count of many takes seconds.
    while world.runtime.count(active.clone()).await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world
}

/// How long it takes from each of `count` signals to the end of the run that waits for it.
async fn signals(world: &World, count: usize) -> Vec<Duration> {
    let runs: Vec<_> = world.runtime.runs(waiting(), RunOrder::OldestFirst).take(count).try_collect().await.unwrap();
    let mut times = Vec::new();
    for run in runs {
        let begun = Instant::now();
        world.runtime.signal(&run.run_id, Vec::new()).await.unwrap();
        world.runtime.wait(&run.run_id).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_finds_its_run_beside_many_that_wait() {
    let (count, timed, _) = extent();
    let empty = if asked().is_some() { measure_empty().await } else { 0.0 };
    let (disk, few_disk) = (disk("waits"), disk(&format!("few-waits-{}", since_epoch().as_nanos())));
    with_waiting(&disk, count).await.close().await;
    let few = with_waiting(&few_disk, 10 + timed).await;

    let world = reopen(&disk).await;
    if asked().is_some() {
        tokio::time::sleep(SETTLING).await;
        println!("{count} waiting runs: {:.1} MiB over an empty runtime", resident() - empty);
    }
    let left = world.runtime.count(waiting()).await.unwrap();
    let (few_times, many_times) = (signals(&few, timed).await, signals(&world, timed).await);
    println!("a signal with ten: {}", describe(few_times));
    println!("a signal with {left}: {}", describe(many_times));
    assert_eq!(world.runtime.count(waiting()).await.unwrap(), left - timed as u64, "every other run still waits");
    for world in [few, world] {
        world.close().await;
    }
}

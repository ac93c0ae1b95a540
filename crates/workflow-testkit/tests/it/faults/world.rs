//! One simulation: processes that live and die over one disk, until all runs have ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use object_store::memory::InMemory;
use tokio::time::{sleep, timeout};
use workflow_runtime::port::Clock;
use workflow_runtime::{RetryPolicy, RunOutcome, TerminalStatus, WorkflowRuntime};
use workflow_testkit::{Chance, FaultyPort, FaultyStore, MemoryDisk, Plan, PortPlan, StorePlan};

use super::mischief::mischief;
use super::plans::Faults;
use super::workload::{Drawn, RUNS, STEPS, Workload, run_id, submission};

/// How many processes meet faults.
const LIVES: u64 = 6;
/// The longest that such a process lives.
const LIFE: Duration = Duration::from_secs(40);
/// By when everything has ended, and no job is left, once the faults have stopped, by virtual time.
const END: Duration = Duration::from_secs(24 * 3600);

/// What happened in a simulation.
#[derive(Debug, PartialEq)]
pub(crate) struct Course {
    /// The faults that each process met.
    pub(crate) ports: Vec<PortPlan>,
    /// The faults that the object store met.
    pub(crate) objects: StorePlan,
    /// How many processes died of a fault.
    pub(crate) deaths: u64,
    /// What is on the disk in the end.
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Course {
    pub(crate) fn faults_met(&self) -> usize {
        self.ports.iter().map(|plan| plan.rules.len()).sum()
    }
}

/// Tells which seed it was, should the simulation panic.
struct Replay(u64, Faults);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: simulate({}, {:?})", self.0, self.1);
        }
    }
}

/// Runs a simulation of `seed` to its end and checks it.
pub(crate) fn simulate(seed: u64, faults: Faults) -> Course {
    let _replay = Replay(seed, faults);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed, faults);
        for _ in 0..LIVES {
            if world.live().await {
                break;
            }
        }
        world.end().await;
        world.into_course()
    })
}

struct World {
    faults: Faults,
    chance: Chance,
    disk: MemoryDisk,
    store: FaultyStore,
    workload: Workload,
    start: SystemTime,
    ports: Vec<PortPlan>,
    objects: StorePlan,
    deaths: u64,
}

/// One process.
struct Process {
    port: FaultyPort,
    runtime: WorkflowRuntime<Workload, Workload>,
}

impl World {
    fn new(seed: u64, faults: Faults) -> Self {
        let mut chance = Chance::of(seed);
        let disk = MemoryDisk::default();
        let store = FaultyStore::new(Arc::new(InMemory::new()), faults.of_store(chance.draw()));
        let workload = Workload::new(Drawn::new(chance.split()));
        let start = disk.clock().now().into();
        Self { faults, chance, disk, store, workload, start, ports: Vec::new(), objects: Plan::none(), deaths: 0 }
    }

    fn open(&mut self, plan: PortPlan) -> Process {
        let port = FaultyPort::new(Arc::new(self.disk.open()), plan);
        if self.faults.deaths && self.chance.below(2) == 0 {
            self.disk.cut_power_after(self.chance.below(60));
        }
        let (queue, store) = (Arc::new(port.clone()), Arc::new(self.store.clone()));
        let retries = RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() };
        let runtime = WorkflowRuntime::over(queue, store, self.workload.clone(), self.workload.clone())
            .ids(Arc::new(self.workload.drawn.clone()))
            .retry_policy(retries)
            .lease(Duration::from_secs(3))
            .step_timeout(Duration::from_secs(30))
            .inline_limit(8)
            .inline_steps(if self.chance.below(2) == 0 { 0 } else { 32 })
            .max_concurrent_steps(1 + self.chance.below(4) as usize)
            // A lost delivery is an attempt, and a simulation loses many.
            .max_attempts_per_step(u32::MAX)
            .hook_attempts(u32::MAX)
            .build()
            .unwrap();
        Process { port, runtime }
    }

    /// A process among faults, until it dies, or for a while, or until everything has ended: then `true`.
    async fn live(&mut self) -> bool {
        let plan = self.faults.of_port(self.chance.draw());
        let process = self.open(plan);
        let mischief = mischief(self.faults, self.disk.clone(), self.chance.split());
        let (has_died, is_done) = tokio::select! {
            biased;
            () = process.port.died() => (true, false),
            () = self.disk.cut() => (true, false),
            ended = process.runtime.run(std::future::pending()) => panic!("the loop ended by itself: {ended:?}"),
            () = mischief => unreachable!("mischief never ends"),
            _ = self.until_all_ended(&process) => (false, true),
            () = sleep(LIFE) => (false, false),
        };
        self.deaths += u64::from(has_died);
        self.ports.push(process.port.met());
        is_done
    }

    /// The last process meets no faults: everything ends.
    async fn end(&mut self) {
        self.faults = Faults::default();
        self.objects = self.store.met();
        self.store.follow(Plan::none());
        let process = self.open(Plan::none());
        let everything = async {
            let ends = self.until_all_ended(&process).await;
            while !self.disk.jobs().is_empty() {
                sleep(Duration::from_millis(100)).await;
            }
            ends
        };
        let ends = tokio::select! {
            biased;
            ended = process.runtime.run(std::future::pending()) => panic!("the loop ended by itself: {ended:?}"),
            ends = timeout(END, everything) => ends,
        };
        match ends {
            Ok(ends) => self.check(&ends),
            Err(_) => panic!("not everything has ended: {:#?}", self.disk.jobs()),
        }
        assert_eq!(process.runtime.check().await.unwrap(), [], "the store is not clean");
    }

    /// Submits every run, and waits until it has ended and its hook has been heard, however often that takes.
    async fn until_all_ended(&self, process: &Process) -> Vec<RunOutcome> {
        let ends = join_all((0..RUNS).map(|run| process.end_of(run, self.start))).await;
        while self.rows("told/").len() < RUNS {
            sleep(Duration::from_millis(100)).await;
        }
        ends
    }

    /// Every run has ended once, as it should, and what was staged was applied once.
    fn check(&self, ends: &[RunOutcome]) {
        let (logged, told_rows) = (self.rows("log/"), self.rows("told/"));
        for (run, end) in ends.iter().enumerate() {
            let id = run_id(run);
            assert_eq!((&end.status, &end.error), (&TerminalStatus::Succeeded, &None), "{id}");
            assert_eq!(told_rows[&id].len(), 1, "the hook of {id} is applied once: {:?}", told_rows[&id]);
            let mut steps = BTreeMap::new();
            for (key, value) in &logged[&id] {
                let step: u32 = key.split_once('/').unwrap().0.parse().unwrap();
                assert_eq!(steps.insert(step, value), None, "step {step} of {id} is applied once: {:?}", logged[&id]);
            }
            assert!(steps.keys().copied().eq(0..STEPS), "every step of {id} is applied: {:?}", logged[&id]);
            let values: String = steps.values().map(|value| format!("{value},")).collect();
            let result = String::from_utf8(end.result.clone().unwrap()).unwrap();
            assert_eq!(result, format!("{run}:{values}"), "{id}");
            let told = self.workload.told.lock().unwrap();
            let told: Vec<_> = told.iter().filter(|told| told.run_id == id).collect();
            assert!(!told.is_empty() && told.iter().all(|told| *told == end), "{id}: {told:?}");
        }
    }

    fn into_course(self) -> Course {
        let entries = self.disk.entries().into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        Course { ports: self.ports, objects: self.objects, deaths: self.deaths, entries }
    }

    /// The application's rows below `prefix`, by run and by what follows.
    fn rows(&self, prefix: &str) -> BTreeMap<String, Vec<(String, String)>> {
        let mut rows = BTreeMap::<_, Vec<_>>::new();
        for (key, value) in self.disk.entries() {
            let Some(key) = std::str::from_utf8(&key).ok().and_then(|key| key.strip_prefix(prefix)) else { continue };
            let (run, rest) = key.split_once('/').unwrap();
            let row = (rest.to_owned(), String::from_utf8(value.to_vec()).unwrap());
            rows.entry(run.to_owned()).or_default().push(row);
        }
        rows
    }
}

impl Process {
    /// Submits a run and waits for its end, however often that takes.
    async fn end_of(&self, run: usize, start: SystemTime) -> RunOutcome {
        while self.runtime.submit(submission(run, start)).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
        loop {
            match self.runtime.wait(&run_id(run)).await {
                Ok(end) => return end,
                Err(error) => assert!(!error.is_permanent(), "run {run}: {error:?}"),
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

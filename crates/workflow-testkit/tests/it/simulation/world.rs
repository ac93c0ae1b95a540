//! One simulation: processes among faults, then without, until every run has ended and nothing is left.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use object_store::memory::InMemory;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use workflow_core::Phase;
use workflow_effects::KeySpace;
use workflow_runtime::{CommitMode, HistoryLevel, RetryPolicy, RunnerHandle, WorkflowRuntime};
use workflow_testkit::{
    Chance, ClockStep, FaultyPort, FaultyStore, MemoryDisk, Plan, PortCalls, PortFault, PortPlan, PowerCut, When,
};

use super::committed::Committed;
use super::event::{Event, Process as Fate};
use super::invariants::{self, Promises};
use super::marks::Marks;
use super::op::Op;
use super::users::{Runtime, Users};
use super::witness::{Failure, Witness};
use super::workload::Workload;
use crate::faults::{Drawn, Faults, mischief};

/// How many processes live among faults, and how long each at most.
const LIVES: u64 = 6;
const LONGEST_LIFE_MS: u64 = 60_000;
/// By when everything has settled that settles by itself, without faults.
const SETTLED: Duration = Duration::from_secs(3 * 3_600);
/// How often everything that waits is let go on.
const ROUNDS: u32 = 60;
/// After this nothing is kept any longer, not even an object without a name.
const FORGOTTEN: Duration = Duration::from_secs(26 * 3_600);
/// How long a process has to remove what is over. Of the signals of a key, each look removes one.
const SWEPT: Duration = Duration::from_secs(150);
const MINUTE: Duration = Duration::from_secs(60);
/// The queue name.
const QUEUE: &str = "sim";

/// What came of a simulation.
#[derive(Debug, PartialEq)]
pub(crate) struct Course {
    /// The hash of everything that happened, in order.
    pub(crate) trace: u64,
    pub(crate) marks: Marks,
    /// Calls of users, of steps and of hooks, durable commits, claims of jobs and settlements.
    pub(crate) operations: u64,
}

/// Runs the simulation of `seed`.
pub(crate) fn simulate(seed: u64) -> Result<Course, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed);
        let witness = world.witness.clone();
        tokio::select! {
            biased;
            () = witness.broke() => {}
            () = world.run() => {}
        }
        let (trace, marks, operations) = witness.conclude()?;
        Ok(Course { trace, marks, operations })
    })
}

struct World {
    faults: Faults,
    chance: Chance,
    tuning: Tuning,
    disk: MemoryDisk,
    objects: Arc<InMemory>,
    witness: Witness,
    workload: Workload,
    users: Users,
    /// Loops that were left running when another process took the store over.
    left: Vec<RunnerHandle>,
}

/// Settings that all processes of a simulation share.
#[derive(Clone, Copy)]
struct Tuning {
    retention: Duration,
    signal_ttl: Duration,
    history: HistoryLevel,
    replay: bool,
    pipelined: bool,
    /// Operators remove jobs that are needed, and the loop looks for them.
    repair: bool,
    inline_steps: u32,
}

/// A process, with its ways to the queue and to the object store.
struct Process {
    port: FaultyPort,
    store: PowerCut,
    runtime: Runtime,
    running: RunnerHandle,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::of(seed);
        let mut may = |of: u64| chance.below(of) > 0;
        let faults = Faults { port: may(3), store: may(4), clock: may(4), disk: may(2), deaths: may(4) };
        let tuning = Tuning::draw(&mut chance);
        let (disk, objects) = (MemoryDisk::default(), Arc::new(InMemory::new()));
        let committed = Committed::new(KeySpace::new(QUEUE), objects.clone());
        let promises = Promises {
            retention: tuning.retention,
            signal_ttl: tuning.signal_ttl,
            leases_hold: !faults.port && !faults.disk,
            replay: tuning.replay,
            pipelined: tuning.pipelined,
        };
        let witness = Witness::new(disk.clone(), committed, invariants::all(promises));
        let drawn = Drawn::new(chance.split());
        let workload = Workload {
            witness: witness.clone(),
            drawn: drawn.clone(),
            disk: disk.clone(),
            killed: Arc::new(Notify::new()),
            pipelined: tuning.pipelined,
        };
        let users = Users::new(witness.clone(), drawn, disk.clone(), tuning.repair);
        Self { faults, chance, tuning, disk, objects, witness, workload, users, left: Vec::new() }
    }

    async fn run(&mut self) {
        for _ in 0..LIVES {
            self.live().await;
        }
        self.faults = Faults::default();
        self.witness.tell(Event::Calm);
        self.settle().await;
        self.close().await;
        self.sweep().await;
    }

    fn open(&mut self, plan: PortPlan) -> Process {
        let port = FaultyPort::new(Arc::new(self.disk.open()), plan);
        let store = PowerCut::after(usize::MAX, self.objects.clone());
        let faulty = FaultyStore::new(Arc::new(store.clone()), self.faults.of_store(self.chance.draw()));
        self.witness.tell(Event::Process(Fate::Begins));
        let runtime = self.build(&port, &faulty);
        let running = runtime.spawn(pending());
        Process { port, store, runtime, running }
    }

    fn build(&mut self, port: &FaultyPort, store: &FaultyStore) -> Runtime {
        let Tuning { retention, signal_ttl, history, replay, pipelined, repair, inline_steps } = self.tuning;
        let commit_mode = if pipelined { CommitMode::Pipelined } else { CommitMode::Strict };
        let (port, store) = (Arc::new(port.clone()), Arc::new(store.clone()));
        let retries = RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() };
        WorkflowRuntime::over(port, store, self.workload.clone(), self.workload.clone())
            .queue_name(QUEUE)
            .ids(Arc::new(self.workload.drawn.clone()))
            .retry_policy(retries)
            .retention(retention)
            .signal_buffer(6, signal_ttl)
            .history(history)
            .commit_mode(commit_mode)
            .replay(replay)
            .repair(repair)
            .inline_steps(inline_steps)
            .inline_limit(64)
            .lease(Duration::from_secs(3))
            .step_timeout(Duration::from_secs(20))
            .cancel_grace(Duration::from_secs(2))
            .shutdown_grace(Duration::from_secs(2))
            .max_concurrent_steps(1 + self.chance.below(5) as usize)
            .max_attempts_per_step(4)
            .hook_attempts(u32::MAX)
            .build()
            .unwrap()
    }

    /// A process among faults, to its death, or for a while.
    async fn live(&mut self) {
        let plan = self.faults.of_port(self.chance.draw());
        let is_slow = self.chance.below(2) == 0;
        let process = self.open(if is_slow { slowed(plan) } else { plan });
        if self.faults.deaths && self.chance.below(2) == 0 {
            self.disk.cut_power_after(self.chance.below(300));
        }
        let mischief = mischief(self.faults, self.disk.clone(), self.chance.split());
        let life = Duration::from_millis(self.chance.below(LONGEST_LIFE_MS));
        let fate = tokio::select! {
            biased;
            fate = self.death(&process) => fate,
            () = mischief => unreachable!("mischief never ends"),
            () = self.users.act(&process.runtime) => unreachable!("users never end"),
            () = sleep(life) => if life.as_millis().is_multiple_of(2) { Fate::LeftRunning } else { Fate::ShutDown },
        };
        self.end(process, fate).await;
    }

    async fn death(&self, process: &Process) -> Fate {
        tokio::select! {
            biased;
            () = self.workload.killed.notified() => Fate::Killed,
            () = process.port.died() => Fate::Dies,
            () = self.disk.cut() => Fate::Dies,
        }
    }

    /// What becomes of a process that is not to go on. A dead one does nothing any more. One that is left running goes
    /// on until it learns that the next has taken its queue over. Nothing keeps its object store from taking what it
    /// writes then, for a run that the next one may have removed: here its way there is cut.
    async fn end(&mut self, process: Process, fate: Fate) {
        let Process { port, store, running, .. } = process;
        let counts = port.counts();
        self.witness.count(counts.claimed + counts.settlements, counts.conflicts);
        self.witness.tell(Event::Process(fate));
        match fate {
            Fate::ShutDown => drop(timeout(Duration::from_secs(30), running.shutdown()).await),
            _ => self.left.push(running),
        }
        store.cut_now();
    }

    /// Lives without faults until everything has settled. Steps that kill their processes may do so.
    async fn settle(&mut self) {
        let process = self.live_until_settled().await;
        self.end(process, Fate::ShutDown).await;
    }

    async fn live_until_settled(&mut self) -> Process {
        loop {
            let process = self.open(Plan::none());
            let fate = tokio::select! {
                biased;
                fate = self.death(&process) => Some(fate),
                () = self.settled() => None,
            };
            match fate {
                Some(fate) => self.end(process, fate).await,
                None => return process,
            }
        }
    }

    /// Returns when nothing goes on by itself any more, or when it should not.
    async fn settled(&self) {
        let quiet = async {
            while !self.is_settled() {
                sleep(Duration::from_secs(1)).await;
            }
        };
        drop(timeout(SETTLED, quiet).await);
        self.witness.tell(Event::Settled);
    }

    fn is_settled(&self) -> bool {
        self.witness
            .look(|committed| !committed.active().any(|(_, run)| invariants::goes_on(run)) && !committed.owes_hooks())
    }

    /// Lets everything go on that waits for somebody, until all runs have ended.
    async fn close(&mut self) {
        for _ in 0..ROUNDS {
            let process = self.live_until_settled().await;
            let ops = self.pushes();
            if ops.is_empty() {
                return self.check(process).await;
            }
            let fate = tokio::select! {
                biased;
                fate = self.death(&process) => fate,
                () = self.push(&process, ops) => Fate::LeftRunning,
            };
            self.end(process, fate).await;
        }
        self.witness.tell(Event::Closed);
    }

    async fn push(&self, process: &Process, ops: Vec<Op>) {
        for op in ops {
            self.users.call(&process.runtime, op).await;
        }
    }

    /// Everything has ended, and the process finds the store in order.
    async fn check(&mut self, process: Process) {
        self.witness.tell(Event::Closed);
        let found = process.runtime.check().await.unwrap();
        let found = found.into_iter().map(|found| (found.kind, found.run_id.clone(), found.to_string()));
        self.witness.tell(Event::Checked(found.collect()));
        self.end(process, Fate::ShutDown).await;
    }

    /// What lets each run go on that does not by itself.
    fn pushes(&mut self) -> Vec<Op> {
        let active: Vec<_> = self.witness.look(|committed| {
            committed.active().map(|(run_id, run)| (run_id.clone(), run.paused, run.phase.clone())).collect()
        });
        let push = |(run_id, is_paused, phase)| match phase {
            _ if self.chance.below(4) == 0 => Op::Cancel(run_id),
            _ if is_paused => Op::Resume(run_id),
            Phase::Waiting { keys, .. } => Op::Signal { key: keys[0].to_string(), id: Some(self.witness.number()) },
            Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => Op::Cancel(run_id),
        };
        active.into_iter().map(push).collect()
    }

    /// Lets so much time pass that nothing is kept: what one process leaves, the next one removes. After that there is
    /// nothing to do.
    async fn sweep(&mut self) {
        self.disk.clock().set(ClockStep::Forwards(FORGOTTEN));
        let first = self.open(Plan::none());
        sleep(SWEPT).await;
        self.end(first, Fate::ShutDown).await;
        let second = self.open(Plan::none());
        sleep(SWEPT).await;
        let jobs = self.disk.jobs().into_iter().map(|(job, _)| job.to_string()).collect();
        let objects = self.witness.look(Committed::objects);
        self.witness.tell(Event::Swept { objects, jobs });
        let before = requests(&second.port);
        sleep(MINUTE).await;
        self.witness.tell(Event::Idle { requests: requests(&second.port) - before });
        self.end(second, Fate::ShutDown).await;
        self.hear_of_the_left();
    }

    /// Loops that were taken over have ended by themselves, unless their queue never answers.
    fn hear_of_the_left(&mut self) {
        for left in std::mem::take(&mut self.left) {
            if let Some(Err(error)) = left.wait().now_or_never() {
                assert!(error.is_closed(), "a loop that was taken over ended with {error:?}");
                self.witness.tell(Event::Process(Fate::Fenced));
            }
        }
    }
}

/// Lets calls take so long that others come in between.
fn slowed(plan: PortPlan) -> PortPlan {
    let slow = |millis: u64| PortFault::Slow(Duration::from_millis(millis));
    plan.and(PortCalls::Get, When::Chance(60), slow(40)).and(PortCalls::Commit, When::Chance(250), slow(150)).and(
        PortCalls::Scan,
        When::Chance(100),
        slow(100),
    )
}

/// The reads and writes that were asked of the queue.
fn requests(port: &FaultyPort) -> u64 {
    let counts = port.counts();
    counts.gets + counts.scans + counts.commits + counts.settlements
}

impl Tuning {
    fn draw(chance: &mut Chance) -> Self {
        let seconds = |chance: &mut Chance, of: [u64; 4]| Duration::from_secs(of[chance.below(4) as usize]);
        let (pipelined, replay) = [(true, false), (false, true), (false, false)][chance.below(3) as usize];
        Self {
            retention: seconds(chance, [1, 5, 20, 3_600]),
            signal_ttl: seconds(chance, [10, 20, 30, 40]),
            history: [HistoryLevel::Off, HistoryLevel::Ends, HistoryLevel::Full, HistoryLevel::Full]
                [chance.below(4) as usize],
            replay,
            pipelined,
            repair: chance.below(2) == 0,
            inline_steps: [0, 2, 32, 32][chance.below(4) as usize],
        }
    }
}

//! A simulated deployment: the real runtime on one thread, in virtual time, over a disk and an outside world that
//! outlive its processes.

mod describe;
mod log;
mod outside;
mod points;
mod port;
mod watched;

use std::any::{Any, TypeId};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::memory::InMemory;
use workflow_effects::is_reserved;
use workflow_runtime::port::{Clock, JobState};
use workflow_runtime::{IdSource, StepRunner, TerminalHook, WorkflowRuntime, WorkflowRuntimeBuilder};

#[cfg(feature = "property")]
pub(crate) use self::log::Signal;
pub(crate) use self::log::{Event, Log, Place};
pub use self::outside::Outside;
pub(crate) use self::points::{Fault, Injection, Points, Reached};
use self::port::SimPort;
pub use self::watched::Watched;
use crate::chance::mixed;
use crate::{Coverage, MemoryDisk, MemoryQueue};

/// How long a scenario may take, unless somebody says otherwise.
pub(crate) const LONGEST: Duration = Duration::from_secs(40 * 24 * 3_600);
/// How long [`Sim::until_idle`] waits for what is under way.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);
/// How often it looks at first, and how often at least.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

/// A runtime that a [`Sim`] watches.
pub type SimRuntime<R, H> = WorkflowRuntime<Watched<R>, Watched<H>>;

/// The handle of a scenario: it starts the runtime under test, stands for the outside world, and lets time pass.
///
/// A scenario is an async function of a `Sim`: the program of a process, from its start. It is run by
/// [`explore`](crate::explore), which lets the process die at every point and starts the program again, or once by
/// [`Sim::run`]. What outlives a process: the disk, the object store, the clock, what was done
/// [outside](Self::outside), what the scenario [keeps](Self::keep), and which of its actions have been answered
/// [once](Self::once).
///
/// ```
/// use workflow_runtime::{NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner};
/// use workflow_testkit::Sim;
///
/// struct Greeter;
///
/// impl StepRunner for Greeter {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         Ok(StepOutcome::Succeed { result: step.payload.clone() })
///     }
/// }
///
/// Sim::run(7, |sim| async move {
///     let runtime = sim.start(Greeter, NoopTerminalHook);
///     let input = b"hello".to_vec();
///     runtime.submit(RunSpec { run_id: Some("greeting".to_owned()), input, ..RunSpec::default() }).await.unwrap();
///     assert_eq!(runtime.wait("greeting").await.unwrap().result.as_deref(), Some(&b"hello"[..]));
/// });
/// ```
#[derive(Clone)]
pub struct Sim {
    pub(crate) world: Arc<World>,
}

/// What outlives the processes of a simulation.
pub(crate) struct World {
    pub(crate) disk: MemoryDisk,
    pub(crate) objects: Arc<InMemory>,
    pub(crate) points: Points,
    pub(crate) log: Log,
    coverage: Arc<Mutex<Coverage>>,
    kept: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    answered: Mutex<BTreeSet<String>>,
    queue_names: Mutex<BTreeSet<String>>,
    ids: Arc<SeededIds>,
    /// The opening of the disk by the process that lives.
    queue: Mutex<Option<MemoryQueue>>,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("disk", &self.world.disk).finish_non_exhaustive()
    }
}

impl Sim {
    pub(crate) fn new(seed: u64, injections: Vec<Injection>) -> Self {
        Self {
            world: Arc::new(World {
                disk: MemoryDisk::default(),
                objects: Arc::new(InMemory::new()),
                points: Points::new(injections),
                log: Log::default(),
                coverage: Arc::default(),
                kept: Mutex::default(),
                answered: Mutex::default(),
                queue_names: Mutex::default(),
                ids: Arc::new(SeededIds { seed, drawn: AtomicU64::new(0) }),
                queue: Mutex::default(),
            }),
        }
    }

    /// Runs `scenario` once, to its end and until nothing is under way any more, and says what of the state machine it has
    /// exercised.
    ///
    /// # Panics
    ///
    /// With the panic of the scenario, when it does not end within forty days of virtual time, and in an async
    /// context.
    #[track_caller]
    pub fn run<F, S>(seed: u64, scenario: F) -> Coverage
    where
        F: Fn(Self) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        let execution = crate::explore::execute(&scenario, seed, Vec::new(), LONGEST);
        if let Err(problem) = execution.result {
            panic!("{problem}");
        }
        execution.coverage
    }

    /// Starts a runtime with the usual settings, and its loop.
    ///
    /// # Panics
    ///
    /// Outside of a scenario.
    pub fn start<R, H>(&self, runner: R, hook: H) -> SimRuntime<R, H>
    where
        R: StepRunner + 'static,
        H: TerminalHook + 'static,
    {
        self.start_with(runner, hook, |builder| builder)
    }

    /// Starts a runtime as `settings` says, and its loop.
    ///
    /// # Panics
    ///
    /// When the settings cannot work, and outside of a scenario.
    pub fn start_with<R, H>(
        &self,
        runner: R,
        hook: H,
        settings: impl FnOnce(
            WorkflowRuntimeBuilder<Watched<R>, Watched<H>>,
        ) -> WorkflowRuntimeBuilder<Watched<R>, Watched<H>>,
    ) -> SimRuntime<R, H>
    where
        R: StepRunner + 'static,
        H: TerminalHook + 'static,
    {
        let (runner, hook) = (Watched::new(runner, self.clone()), Watched::new(hook, self.clone()));
        let port = Arc::new(SimPort::new(Arc::new(self.queue()), self.clone()));
        let coverage = self.world.coverage.clone();
        let builder = WorkflowRuntime::over(port, self.world.objects.clone(), runner, hook)
            .ids(self.ids())
            .on_decision(move |decision| lock(&coverage).add(decision));
        let runtime = settings(builder).build().unwrap_or_else(|error| panic!("the settings cannot work: {error}"));
        lock(&self.world.queue_names).insert(runtime.settings().queue_name.clone());
        drop(runtime.spawn(pending()));
        runtime
    }

    /// The world outside: what steps do there is told to it. Give clones to the fakes of other systems.
    pub fn outside(&self) -> Outside {
        Outside::new(self.clone())
    }

    /// What was made by `make` when it was first asked for a `T`: the state of a fake that no crash takes along.
    pub fn keep<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = lock(&self.world.kept);
        let value = kept.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(make())).clone();
        value.downcast().unwrap_or_else(|_| unreachable!("it is found by its type"))
    }

    /// Carries `action` out unless an earlier process has had its answer. An answer that a crash has lost is no answer,
    /// so the action must bear repetition: submit with an id, send signals with an id.
    pub async fn once<T>(&self, name: &str, action: impl Future<Output = T>) -> Option<T> {
        if lock(&self.world.answered).contains(name) {
            return None;
        }
        let answer = action.await;
        lock(&self.world.answered).insert(name.to_owned());
        Some(answer)
    }

    /// A point at which the process may die, in a fake or in a scenario.
    pub async fn crash_point(&self, name: &str) {
        self.world.points.pass(self, || name.to_owned()).await;
    }

    /// Lets `duration` pass.
    pub async fn advance(&self, duration: Duration) {
        self.world.disk.clock().sleep(duration).await;
    }

    /// The time.
    pub fn now(&self) -> std::time::SystemTime {
        self.world.disk.clock().now().into()
    }

    /// Waits until no step and no hook is under way or due; what is due later does not count.
    ///
    /// # Panics
    ///
    /// When that is not so within a day.
    pub async fn until_idle(&self) {
        let idle = async {
            // Ever less often: whoever takes hours need not be looked for a million times.
            let mut waited = Duration::ZERO;
            while self.is_busy() {
                let look = (waited / 10).clamp(LOOKS.0, LOOKS.1);
                tokio::time::sleep(look).await;
                waited += look;
            }
        };
        if tokio::time::timeout(LONGEST_WAIT, idle).await.is_err() {
            panic!("after a day something is still under way: {:?}", self.world.disk.jobs());
        }
    }

    fn is_busy(&self) -> bool {
        let now = self.world.disk.clock().now();
        self.world.disk.jobs().iter().any(|(_, job)| match job.state {
            JobState::Claimed => true,
            JobState::Waiting => job.due <= now,
            JobState::Dead => false,
        })
    }

    /// The application's key-value pairs below `prefix`.
    pub fn entries(&self, prefix: &[u8]) -> Vec<(Bytes, Bytes)> {
        let entries = self.world.disk.entries().into_iter();
        entries.filter(|(key, _)| key.starts_with(prefix) && !is_reserved(key)).collect()
    }

    /// The disk, for faults of its own.
    pub fn disk(&self) -> &MemoryDisk {
        &self.world.disk
    }

    /// Ids and chance that follow from the seed.
    pub fn ids(&self) -> Arc<dyn IdSource> {
        self.world.ids.clone()
    }

    /// What of the state machine the runtimes of this simulation have exercised so far.
    pub fn coverage(&self) -> Coverage {
        lock(&self.world.coverage).clone()
    }

    pub(crate) fn queue_names(&self) -> BTreeSet<String> {
        lock(&self.world.queue_names).clone()
    }

    /// Begins a process, on the async runtime that this runs on.
    pub(crate) fn begin_process(&self) {
        self.world.disk.clock().go_on();
        *lock(&self.world.queue) = Some(self.world.disk.open());
    }

    fn queue(&self) -> MemoryQueue {
        lock(&self.world.queue).clone().unwrap_or_else(|| panic!("a runtime is started by a scenario"))
    }
}

/// Ids by seed and number.
struct SeededIds {
    seed: u64,
    drawn: AtomicU64,
}

impl IdSource for SeededIds {
    fn random(&self) -> u128 {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        u128::from(mixed(self.seed, number, 0)) << 64 | u128::from(mixed(self.seed, number, 1))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

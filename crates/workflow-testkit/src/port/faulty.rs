//! The faulty port itself: what it is made of, and what a test steers it by.

use std::fmt;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_runtime::QueuePort;
use workflow_runtime::port::Error;

use super::deliveries::Deliveries;
use super::health::{Condition, unavailable};
use super::plan::Asked;
use crate::plan::Course;
use crate::{Health, PortCalls, PortFault, PortPlan};

/// A queue whose calls meet the faults of a plan, and are counted. The same plan and calls give the same faults.
///
/// It keeps the contract of a [`QueuePort`]: what it does, a queue behind a bad network may do. It stands over any
/// port. What takes the queue itself to go wrong is a fault of the queue, such as
/// [`MemoryDisk::cut_power_after`](crate::MemoryDisk::cut_power_after). Clones are the same port.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use object_store::memory::InMemory;
/// use workflow_runtime::{NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner, WorkflowRuntime};
/// use workflow_testkit::{FaultyPort, MemoryDisk, Plan, PortCalls, PortFault, When};
///
/// struct Greeter;
///
/// impl StepRunner for Greeter {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         Ok(StepOutcome::Succeed { result: step.payload.clone() })
///     }
/// }
///
/// let disk = MemoryDisk::default();
/// let plan = Plan::of(PortCalls::Commit, When::Every(2), PortFault::AnswerLost);
/// let port = FaultyPort::new(Arc::new(disk.open()), plan);
/// let objects = Arc::new(InMemory::new());
/// let runtime = WorkflowRuntime::over(Arc::new(port.clone()), objects, Greeter, NoopTerminalHook).build()?;
/// let running = runtime.spawn(std::future::pending());
/// let run = runtime.submit(RunSpec { input: b"hello".to_vec(), ..RunSpec::default() }).await?;
/// assert_eq!(runtime.wait(&run.run_id).await?.result.as_deref(), Some(&b"hello"[..]));
/// assert_eq!((port.counts().commits, port.met().rules.len()), (2, 1));
/// running.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct FaultyPort {
    pub(super) port: Arc<dyn QueuePort>,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    course: Mutex<Course<PortCalls, PortFault>>,
    counts: Mutex<PortCounts>,
    pub(super) condition: Condition,
    pub(super) deliveries: Deliveries,
}

/// How much was asked of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCounts {
    /// Reads of one key.
    pub gets: u64,
    /// Reads of many keys.
    pub scans: u64,
    /// Commits that were handed over.
    pub commits: u64,
    /// Commits that the queue refused because something they expected had changed.
    pub conflicts: u64,
    /// Jobs that these commits were to queue.
    pub enqueues: u64,
    /// Calls that claim.
    pub claims: u64,
    /// Jobs that were handed out.
    pub claimed: u64,
    /// Requests to make claims durable.
    pub persists: u64,
    /// Extensions of a lease.
    pub extensions: u64,
    /// Settlements.
    pub settlements: u64,
}

impl fmt::Debug for FaultyPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyPort")
            .field("course", &self.course())
            .field("condition", &self.shared.condition)
            .finish_non_exhaustive()
    }
}

impl FaultyPort {
    /// A port over `port` whose calls meet the faults of `plan`.
    pub fn new(port: Arc<dyn QueuePort>, plan: PortPlan) -> Self {
        let shared = Shared {
            course: Mutex::new(Course::new(plan)),
            counts: Mutex::default(),
            condition: Condition::default(),
            deliveries: Deliveries::default(),
        };
        Self { port, shared: Arc::new(shared) }
    }

    /// Follows another plan from now on; [`Plan::none`](crate::Plan::none) ends all faults. A queue that is down or
    /// hung stays so, and a dead process dead.
    pub fn follow(&self, plan: PortPlan) {
        *self.course() = Course::new(plan);
    }

    /// The faults that were met on the present plan, in the order in which their calls began: a plan without chance
    /// that has the same calls meet the same faults.
    pub fn met(&self) -> PortPlan {
        self.course().met()
    }

    /// How much was asked so far.
    pub fn counts(&self) -> PortCounts {
        *self.lock_counts()
    }

    /// Makes the queue answer, or not, until told otherwise.
    pub fn set_health(&self, health: Health) {
        self.shared.condition.set(health, None);
    }

    /// Whether the queue answers at present.
    pub fn health(&self) -> Health {
        self.shared.condition.health()
    }

    /// Whether the process has died of [`PortFault::DiesInBatch`].
    pub fn is_dead(&self) -> bool {
        self.shared.condition.is_dead()
    }

    /// Returns once the process has died of [`PortFault::DiesInBatch`]. Whoever drives the process drops it then, and
    /// opens the queue again. Dropping the future has no effect.
    pub async fn died(&self) {
        self.shared.condition.dead().await;
    }

    /// What the call `asked` meets.
    pub(super) fn meet(&self, asked: Asked<'_>) -> Option<PortFault> {
        self.course().meet(|calls| calls.include(asked))
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut PortCounts)) {
        count(&mut self.lock_counts());
    }

    fn course(&self) -> MutexGuard<'_, Course<PortCalls, PortFault>> {
        self.shared.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_counts(&self) -> MutexGuard<'_, PortCounts> {
        self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `fault` does before its call begins.
    pub(super) async fn delay(&self, fault: Option<PortFault>) {
        match fault {
            Some(PortFault::Slow(duration)) => self.port.clock().sleep(duration).await,
            Some(PortFault::Down(duration)) => self.shared.condition.set(Health::Down, Some(duration)),
            Some(PortFault::Hung(duration)) => self.shared.condition.set(Health::Hung, Some(duration)),
            _ => {}
        }
    }

    /// One call that may fail, with all that happens to any call. `call` does nothing before it is awaited.
    pub(super) async fn ask<T>(
        &self,
        fault: Option<PortFault>,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        self.delay(fault).await;
        self.shared.condition.answers().await?;
        if fault == Some(PortFault::Fails) {
            return Err(unavailable());
        }
        let answer = call.await;
        self.shared.condition.returns().await;
        if fault == Some(PortFault::AnswerLost) { Err(unavailable()) } else { answer }
    }
}

/// Runs a call to its end, even if its caller gives up: that is the contract of calls that change something.
pub(super) async fn to_its_end<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(call).await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The async runtime shuts down, and the caller with it.
        Err(_) => pending().await,
    }
}

//! What survives a process of the in-memory queue, and one opening of it.

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use workflow_runtime::port::{Error, JobId};

use super::model::{Model, StoredJob};
use crate::{VirtualClock, watch};

/// How long an operation takes to become durable.
const FLUSH: Duration = Duration::from_millis(1);

/// What an in-memory queue is kept on. It outlives the processes that open it: an opening ends when the next one
/// begins, and everything that had not become durable by then is lost with it, as in a crash.
///
/// Clones are the same disk. Faults of the disk are methods: [`hold`](Self::hold) and [`release`](Self::release) keep
/// operations from becoming durable, [`cut_power_after`](Self::cut_power_after) ends a process at a chosen operation.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use object_store::memory::InMemory;
/// use workflow_runtime::{NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner, WorkflowRuntime};
/// use workflow_testkit::MemoryDisk;
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
/// let objects = Arc::new(InMemory::new());
/// let runtime = WorkflowRuntime::over(Arc::new(disk.open()), objects.clone(), Greeter, NoopTerminalHook).build()?;
/// let run = runtime.submit(RunSpec { input: b"hello".to_vec(), ..RunSpec::default() }).await?;
/// drop(runtime);
///
/// // The next process.
/// let runtime = WorkflowRuntime::over(Arc::new(disk.open()), objects, Greeter, NoopTerminalHook).build()?;
/// let running = runtime.spawn(std::future::pending());
/// assert_eq!(runtime.wait(&run.run_id).await?.result.as_deref(), Some(&b"hello"[..]));
/// running.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct MemoryDisk {
    clock: VirtualClock,
    state: Arc<Mutex<State>>,
}

/// One opening of a [`MemoryDisk`]: a queue for [`WorkflowRuntime::over`](workflow_runtime::WorkflowRuntime::over).
/// Clones are the same opening.
#[derive(Clone)]
pub struct MemoryQueue {
    pub(super) opening: Arc<Opening>,
}

pub(super) struct Opening {
    pub(super) disk: MemoryDisk,
    pub(super) number: u64,
    pub(super) progress: watch::Sender<Life>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// How an opening is. Its watchers are told of every change of the state, too.
#[derive(Clone, Debug)]
pub(super) enum Life {
    /// It answers.
    Open,
    /// It refuses every call.
    Closed(&'static str),
    /// Its power is cut: no call returns.
    Dead,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) model: Model,
    opening: Option<watch::Sender<Life>>,
    openings: u64,
    pub(super) jobs_named: u64,
    held: bool,
    /// The last operation that becomes durable before the power is cut.
    last_operation: Option<u64>,
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryDisk")
            .field("entries", &state.model.entries().count())
            .field("jobs", &state.model.jobs().count())
            .field("openings", &state.openings)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryQueue(opening {} of {:?})", self.opening.number, self.opening.disk)
    }
}

impl MemoryDisk {
    /// An empty disk whose queues go by `clock`.
    pub fn new(clock: VirtualClock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// The clock of its queues.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Opens the disk, which has power again and is not held. If an earlier opening is not closed, it is closed now, and
    /// what was not durable is lost.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn open(&self) -> MemoryQueue {
        let progress = watch::Sender::new(Life::Open);
        let mut state = self.lock();
        if let Some(previous) = state.opening.replace(progress.clone()) {
            previous.send_if_modified(|life| life.close("it was opened again, which has taken it over"));
        }
        state.model.crash();
        (state.held, state.last_operation) = (false, None);
        state.openings += 1;
        let number = state.openings;
        drop(state);
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(flush(self.clone(), progress.clone()))),
            AbortOnDropHandle::new(tokio::spawn(end_leases(self.clone(), progress.clone()))),
        ];
        MemoryQueue { opening: Arc::new(Opening { disk: self.clone(), number, progress, _tasks: tasks }) }
    }

    /// Keeps operations from becoming durable from now on. They are visible all the same.
    pub fn hold(&self) {
        self.lock().held = true;
    }

    /// Lets what is held, and everything after it, become durable.
    pub fn release(&self) {
        self.change(|state| state.held = false);
    }

    /// Lets `operations` more commits, claims and settlements become durable; the next one cuts the power instead.
    /// From then on no call of the opening returns, calls in progress included. Whoever drives the process watches
    /// for that with [`cut`](Self::cut), drops it, and [opens](Self::open) the disk again.
    ///
    /// The commits of one call count one by one, so that a process can die in the middle of them.
    pub fn cut_power_after(&self, operations: u64) {
        self.change(|state| state.last_operation = Some(state.model.durable().saturating_add(operations)));
    }

    /// Returns once the power is cut. Dropping the future has no effect.
    pub async fn cut(&self) {
        let opening = self.lock().opening.clone();
        let Some(opening) = opening else { return std::future::pending().await };
        opening.subscribe().wait_for(|life| matches!(life, Life::Dead)).await;
    }

    /// How many operations have become durable since the disk was made.
    pub fn operations(&self) -> u64 {
        self.lock().model.durable()
    }

    /// Every key and value, keys ascending, as the latest commit left them.
    pub fn entries(&self) -> Vec<(Bytes, Bytes)> {
        self.lock().model.entries().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// What the commits have changed that became durable since the last call, oldest first: each key with its value, or
    /// without one. The first call begins the journal, and tells of nothing.
    ///
    /// No crash undoes what is in the journal, and nothing else that was committed outlives one.
    pub fn journal(&self) -> Vec<Vec<(Bytes, Option<Bytes>)>> {
        self.lock().model.journal()
    }

    /// Every job by its id, as the latest operation left it.
    pub fn jobs(&self) -> Vec<(JobId, StoredJob)> {
        self.lock().model.jobs().map(|(id, job)| (id.clone(), job.clone())).collect()
    }

    /// Ends every lease at once, as a long pause of the process does: the claims are lost and the jobs come back, while
    /// whoever holds them goes on. Returns how many there were.
    pub fn end_leases(&self) -> usize {
        self.change(|state| state.model.end_leases(None))
    }

    /// Has a dead job delivered again, as an operator can. `false` when it is not dead.
    pub fn requeue_dead_job(&self, job: &JobId) -> bool {
        self.change(|state| state.model.requeue_dead(job))
    }

    /// Removes a job, as an operator can; a claim of it is lost. `false` when there is no such job.
    pub fn remove_job(&self, job: &JobId) -> bool {
        self.change(|state| state.model.remove(job))
    }

    /// Changes the state and tells the opening.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let answer = change(&mut state);
        let opening = state.opening.clone();
        drop(state);
        if let Some(opening) = opening {
            opening.send_modify(|_| {});
        }
        answer
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryQueue {
    /// Closes the queue once everything is durable. From then on every call refuses with
    /// [`Error::Closed`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the disk was opened again meanwhile.
    pub async fn close(&self) -> Result<(), Error> {
        let applied = self.opening.disk.lock().model.applied();
        self.opening.durable(applied).await?;
        self.opening.progress.send_if_modified(|life| life.close("it was closed"));
        Ok(())
    }
}

impl Life {
    /// Closes an opening that is open or dead. Whoever is dead never learns of it.
    fn close(&mut self, reason: &'static str) -> bool {
        let is_open = matches!(self, Self::Open);
        if is_open {
            *self = Self::Closed(reason);
        }
        is_open
    }
}

impl State {
    /// The last operation that a flush now would make durable, if there is any to begin with.
    fn to_flush(&self) -> Option<u64> {
        let applied = self.model.applied();
        (!self.held && applied > self.model.durable()).then_some(applied)
    }

    /// Ends a flush up to `operation`. `true` when the power was cut on the way.
    fn land(&mut self, operation: u64) -> bool {
        let last = self.last_operation.unwrap_or(u64::MAX);
        if !self.held {
            self.model.make_durable(operation.min(last));
        }
        !self.held && operation > last
    }
}

/// Makes operations durable, a while after they are visible, for as long as the opening is the latest.
async fn flush(disk: MemoryDisk, opening: watch::Sender<Life>) {
    let mut changes = opening.subscribe();
    while matches!(*changes.borrow_and_update(), Life::Open) {
        let Some(operation) = disk.lock().to_flush() else {
            changes.changed().await;
            continue;
        };
        disk.clock.sleep_until(Instant::now() + FLUSH, || "a flush".to_owned()).await;
        let mut state = disk.lock();
        opening.send_modify(|life| {
            if matches!(life, Life::Open) && state.land(operation) {
                *life = Life::Dead;
            }
        });
    }
}

/// Ends the leases whose time has come.
async fn end_leases(disk: MemoryDisk, opening: watch::Sender<Life>) {
    let mut changes = opening.subscribe();
    while matches!(*changes.borrow_and_update(), Life::Open) {
        let end = disk.lock().model.next_lease_end();
        let over = async {
            match end {
                Some(end) => disk.clock.sleep_until(end, || "the end of a lease".to_owned()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = changes.changed() => continue,
            () = over => {}
        }
        disk.change(|state| state.model.end_leases(Some(Instant::now())));
    }
}

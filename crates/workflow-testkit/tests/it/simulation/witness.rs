//! Who sees everything: tells the invariants of each commit and event in order, counts the marks, and hashes the trace.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use workflow_runtime::port::Clock;
use workflow_runtime::port::Timestamp;
use workflow_testkit::MemoryDisk;

use super::committed::{Committed, Landed, run_text};
use super::event::{Event, Subject};
use super::invariants::{Broken, Invariant, Now};
use super::marks::Marks;

/// The lines of the trace that are remembered, and those that are shown of a run.
const REMEMBERED: usize = 4_000;
const SHOWN: usize = 20;

/// Watches a simulation. Clones are the same.
#[derive(Clone)]
pub(crate) struct Witness(Arc<Shared>);

struct Shared {
    disk: MemoryDisk,
    state: Mutex<State>,
    broke: Notify,
}

struct State {
    committed: Committed,
    invariants: Vec<Box<dyn Invariant>>,
    marks: Marks,
    trace: Trace,
    operations: u64,
    numbered: u64,
    failure: Option<Failure>,
}

/// An invariant that is broken, and what led there.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    broken: Broken,
    /// The last events of the run concerned.
    events: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.broken)?;
        self.events.iter().try_for_each(|event| writeln!(f, "    {event}"))
    }
}

/// Everything that happened, as a hash, and the last of it as text.
#[derive(Default)]
struct Trace {
    hash: DefaultHasher,
    lines: VecDeque<Line>,
}

struct Line {
    run_id: Option<String>,
    concerns_all: bool,
    text: String,
}

impl Trace {
    fn tell(&mut self, subject: Subject<'_>, text: String) {
        text.hash(&mut self.hash);
        if self.lines.len() == REMEMBERED {
            self.lines.pop_front();
        }
        let (run_id, concerns_all) = match subject {
            Subject::Run(run_id) => (Some(run_id.to_owned()), false),
            Subject::NoRun => (None, false),
            Subject::AllRuns => (None, true),
        };
        self.lines.push_back(Line { run_id, concerns_all, text });
    }

    /// The last lines that concern a run, or any.
    fn last(&self, run_id: Option<&str>) -> Vec<String> {
        let concerned = |line: &&Line| line.concerns_all || run_id.is_none() || line.run_id.as_deref() == run_id;
        let lines = self.lines.iter().rev().filter(concerned).take(SHOWN);
        let mut lines: Vec<String> = lines.map(|line| line.text.clone()).collect();
        lines.reverse();
        lines
    }
}

impl Witness {
    pub(crate) fn new(disk: MemoryDisk, committed: Committed, invariants: Vec<Box<dyn Invariant>>) -> Self {
        disk.journal();
        let state = State {
            committed,
            invariants,
            marks: Marks::default(),
            trace: Trace::default(),
            operations: 0,
            numbered: 0,
            failure: None,
        };
        Self(Arc::new(Shared { disk, state: Mutex::new(state), broke: Notify::new() }))
    }

    /// A number that nothing else has.
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.lock();
        state.numbered += 1;
        state.numbered
    }

    /// Tells of an event, and of the commits that became durable before it.
    pub(crate) fn tell(&self, event: Event) {
        let now = self.0.disk.clock().now();
        let mut state = self.lock();
        state.catch_up(&self.0.disk, now);
        if state.failure.is_none() {
            state.see(&event, now);
        }
        if state.failure.is_some() {
            self.0.broke.notify_one();
        }
    }

    /// Returns once an invariant is broken.
    pub(crate) async fn broke(&self) {
        while self.lock().failure.is_none() {
            self.0.broke.notified().await;
        }
    }

    /// What is durable now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Committed) -> T) -> T {
        let now = self.0.disk.clock().now();
        let mut state = self.lock();
        state.catch_up(&self.0.disk, now);
        look(&state.committed)
    }

    /// Adds to the operations of the simulation.
    pub(crate) fn count(&self, operations: u64, conflicts: u64) {
        let mut state = self.lock();
        state.operations += operations;
        state.marks.refused(conflicts);
    }

    /// What came of it all: hash, marks and operations, or the invariant that is broken.
    pub(crate) fn conclude(&self) -> Result<(u64, Marks, u64), Failure> {
        let state = self.lock();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok((state.trace.hash.finish(), state.marks.clone(), state.operations)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl State {
    fn catch_up(&mut self, disk: &MemoryDisk, now: Timestamp) {
        for commit in disk.journal() {
            if self.failure.is_some() {
                return;
            }
            commit.hash(&mut self.trace.hash);
            match self.committed.land(commit) {
                Ok(landed) => self.land(&landed, now),
                Err(error) => self.fail(Broken::new("O1 acknowledged", None, format!("a row does not read: {error}"))),
            }
        }
    }

    fn land(&mut self, landed: &Landed, now: Timestamp) {
        self.operations += 1;
        for run in &landed.runs {
            let line = format!("committed: {} {}", run.run_id, run_text(&run.after));
            self.trace.tell(Subject::Run(&run.run_id), line);
        }
        self.marks.landed(landed, &self.committed);
        let now = Now { store: &self.committed, time: now };
        let broken = self.invariants.iter_mut().find_map(|invariant| invariant.landed(landed, &now).err());
        broken.into_iter().for_each(|broken| self.fail(broken));
    }

    fn see(&mut self, event: &Event, now: Timestamp) {
        self.operations += u64::from(event.is_operation());
        self.trace.tell(event.subject(), event.to_string());
        self.marks.told(event);
        let now = Now { store: &self.committed, time: now };
        let broken = self.invariants.iter_mut().find_map(|invariant| invariant.told(event, &now).err());
        broken.into_iter().for_each(|broken| self.fail(broken));
    }

    fn fail(&mut self, broken: Broken) {
        let events = self.trace.last(broken.run_id());
        self.failure = Some(Failure { broken, events });
    }
}

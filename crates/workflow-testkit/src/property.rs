//! Properties: what must hold of a workflow whatever is done to it, in whatever order, and whatever fails meanwhile.
//!
//! A [`Property`] draws cases of [`Operation`]s, submissions, signals, cancels, crashes and the like, and carries each out
//! on the real runtime in a [`Sim`], with the runner under test. A model of what the calls promise judges every
//! answer and every state; at rest, assertions of the test's own do. A case that fails is shrunk to a few operations, and
//! written to a small text file that [replays](Property::replay).
//!
//! Besides, this module has strategies of [`proptest`] for inputs, outcomes and faults, to write other properties with.

mod case;
mod cases;
mod failure;
mod line;
mod model;
mod operation;
mod play;
mod quiet;
mod rest;
mod search;
mod shared;
mod strategies;

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use proptest;
use proptest::strategy::Strategy;
use workflow_runtime::{NoopTerminalHook, Settings, StepRunner, TerminalHook};

pub use self::case::{Case, ParseCaseError, ReadCaseError};
use self::cases::Draws;
pub use self::failure::FailedCase;
pub use self::line::ParseLineError;
pub use self::operation::Operation;
pub use self::rest::Rest;
use self::search::Subject;
pub use self::strategies::{
    clock_steps, durations, headers, hostile_run_ids, outcomes, payloads, port_plans, run_ids, schedules, signal_keys,
    store_plans,
};
use crate::{Coverage, Sim};

/// Where [`Property::run`] writes what fails.
const DIRECTORY: &str = "failed-cases";

/// A workflow, what is done to it, and what must hold of it.
///
/// # What holds
///
/// Of every case, without a word from the test: what was submitted is found, with its headers, until it is forgotten or
/// its retention is over; a run ends once, and as cancelled if it was cancelled; no step starts after a pause, a cancel or an
/// end; steps only rise; every attempt of a step sees the same signal; each signal is received once, in order, or kept; a hook
/// is told of every end that it observes, and of no other; ids that no run can have are refused; calls return. In the end, when
/// no faults come any more, every run ends by itself or waits with a reason, all end when they are asked to, and the store is
/// [consistent](workflow_runtime::WorkflowRuntime::check).
///
/// ```
/// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
/// use workflow_testkit::Outside;
/// use workflow_testkit::property::Property;
///
/// struct Charge {
///     bank: Outside,
/// }
///
/// impl StepRunner for Charge {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         self.bank.does_for(&step.run_id, "charge 17").await;
///         Ok(StepOutcome::Succeed { result: Vec::new() })
///     }
/// }
///
/// let held = Property::of(|sim| Charge { bank: sim.outside() })
///     .cases(20)
///     .at_rest(|rest| assert!(rest.ends.keys().all(|run_id| rest.times(&format!("charge 17 ({run_id})")) <= 1)))
///     .run();
/// println!("{held}");
/// ```
pub struct Property<R, H = NoopTerminalHook> {
    subject: Subject<R, H>,
    draws: Draws,
    cases: u32,
    seed: u64,
    file: Option<PathBuf>,
}

/// What was tried, and held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The cases.
    pub cases: usize,
    /// Their operations.
    pub operations: usize,
    /// How many steps were started.
    pub steps: usize,
    /// How many steps were started with a signal.
    pub signals: usize,
    /// How often a hook was told of an end.
    pub hooks: usize,
    /// How many processes died.
    pub crashes: usize,
    /// How often all leases were lost.
    pub lost_leases: usize,
    /// What they have exercised of the state machine.
    pub coverage: Coverage,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cases, operations, steps, signals, hooks, crashes, lost_leases, coverage: _ } = self;
        write!(f, "{cases} cases, {operations} operations, {steps} steps, {signals} of them with a signal, ")?;
        write!(f, "{hooks} calls of hooks, {crashes} crashes, leases lost {lost_leases} times: all held")
    }
}

impl<R, H> Debug for Property<R, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Property").field("cases", &self.cases).field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl<R: StepRunner + 'static> Property<R> {
    /// A property of the workflow whose runner `runner` makes, once for each process. Runs are `run-0` to `run-2`, with short
    /// inputs, no headers and no signals; 256 cases of up to 23 operations each.
    pub fn of(runner: impl Fn(&Sim) -> R + Send + Sync + 'static) -> Self {
        let subject = Subject {
            runner: Arc::new(runner),
            hook: Arc::new(|_| NoopTerminalHook),
            settings: Settings::default(),
            reuses_run_ids: false,
            at_rest: Vec::new(),
        };
        Self { subject, draws: Draws::default(), cases: 256, seed: 0, file: None }
    }
}

impl<R: StepRunner + 'static, H: TerminalHook + 'static> Property<R, H> {
    /// Ends are told to the hook that `hook` makes, once for each process. Of the same end, each of them has to say the
    /// same about whether it [observes](TerminalHook::observes) it.
    #[must_use]
    pub fn hook<G: TerminalHook + 'static>(self, hook: impl Fn(&Sim) -> G + Send + Sync + 'static) -> Property<R, G> {
        let Self { subject, draws, cases, seed, file } = self;
        let Subject { runner, settings, reuses_run_ids, at_rest, .. } = subject;
        let subject = Subject { runner, hook: Arc::new(hook), settings, reuses_run_ids, at_rest };
        Property { subject, draws, cases, seed, file }
    }

    /// The settings of the runtime.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.subject.settings = settings;
        self
    }

    /// The ids of runs. A few that come again and again show more than many; see also [`hostile_run_ids`].
    #[must_use]
    pub fn run_ids(mut self, run_ids: impl Strategy<Value: Into<String> + 'static> + 'static) -> Self {
        self.draws.run_ids = run_ids.prop_map(Into::into).boxed();
        self
    }

    /// An id is submitted again after its run was forgotten, or removed by its retention: another run, with all that
    /// goes with it. Without this an id stands for one run, as the number of an order does.
    #[must_use]
    pub fn reuse_run_ids(mut self) -> Self {
        self.subject.reuses_run_ids = true;
        self
    }

    /// The inputs of runs, such as `"chair|table"`, which is a strategy, too: a regular expression.
    #[must_use]
    pub fn inputs(mut self, inputs: impl Strategy<Value: Into<Vec<u8>> + 'static> + 'static) -> Self {
        self.draws.inputs = inputs.prop_map(Into::into).boxed();
        self
    }

    /// The headers of runs.
    #[must_use]
    pub fn headers(mut self, headers: impl Strategy<Value = BTreeMap<String, String>> + 'static) -> Self {
        self.draws.headers = headers.boxed();
        self
    }

    /// Signals are sent: their correlation keys and payloads. The keys should be those that runs wait for.
    #[must_use]
    pub fn signals(
        mut self,
        keys: impl Strategy<Value: Into<String>> + 'static,
        payloads: impl Strategy<Value: Into<Vec<u8>>> + 'static,
    ) -> Self {
        let signals = (keys, payloads).prop_map(|(key, payload)| (key.into(), payload.into()));
        self.draws.signals = Some(signals.boxed());
        self
    }

    /// How many operations a case has.
    ///
    /// # Panics
    ///
    /// When the range is empty.
    #[must_use]
    #[track_caller]
    pub fn operations(mut self, len: Range<usize>) -> Self {
        assert!(!len.is_empty(), "no case has so many operations: {len:?}");
        self.draws.len = len;
        self
    }

    /// How many cases are tried.
    #[must_use]
    pub fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// What the cases follow from: the same seed, the same cases. 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Where [`run`](Self::run) writes what fails, instead of a file in `failed-cases` that is named after the test.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// An assertion: it panics when what it is shown must not be. It is shown every case at rest.
    #[must_use]
    pub fn at_rest(mut self, assertion: impl Fn(&Rest) + Send + Sync + 'static) -> Self {
        self.subject.at_rest.push(Arc::new(assertion));
        self
    }

    /// Tries cases, up to the first that fails, which is shrunk.
    ///
    /// # Errors
    ///
    /// The case that fails.
    ///
    /// # Panics
    ///
    /// In an async context.
    pub fn check(&self) -> Result<Held, Box<FailedCase>> {
        search::search(&self.subject, &self.draws, self.cases, self.seed)
    }

    /// As [`check`](Self::check), for tests: a case that fails is written to a file, which the panic names.
    ///
    /// # Panics
    ///
    /// With the case that fails, and in an async context.
    #[track_caller]
    pub fn run(&self) -> Held {
        let failed = match self.check() {
            Ok(held) => return held,
            Err(failed) => failed,
        };
        let file = self.file.clone().unwrap_or_else(|| default_file(Location::caller()));
        match failed.case.write(&file) {
            Ok(()) => panic!("{failed}written to {}, for `Property::replay`", file.display()),
            Err(error) => panic!("{failed}not written to {}: {error}", file.display()),
        }
    }

    /// Tries the one case that a file holds, for tests.
    ///
    /// # Panics
    ///
    /// When the case fails, when the file holds none, and in an async context.
    #[track_caller]
    pub fn replay(&self, file: impl AsRef<Path>) -> Held {
        let file = file.as_ref();
        let case = match Case::read(file) {
            Ok(case) => case,
            Err(ReadCaseError::File(error)) => panic!("{}: {error}", file.display()),
            Err(ReadCaseError::Case(error)) => panic!("{}, {error}", file.display()),
        };
        match self.check_case(&case) {
            Ok(held) => held,
            Err(failed) => panic!("{failed}"),
        }
    }

    /// Tries one case.
    ///
    /// # Errors
    ///
    /// The case, when it fails.
    ///
    /// # Panics
    ///
    /// In an async context.
    pub fn check_case(&self, case: &Case) -> Result<Held, Box<FailedCase>> {
        search::try_case(&self.subject, case)
    }
}

/// A file that is named after the test that this thread runs, or where threads have no such names, after its source.
fn default_file(caller: &Location<'_>) -> PathBuf {
    let thread = std::thread::current();
    let source = Path::new(caller.file()).file_stem().unwrap_or_default().to_string_lossy();
    let name = match thread.name() {
        Some("main") | None => source.into_owned(),
        Some(test) => test.replace("::", "."),
    };
    Path::new(DIRECTORY).join(format!("{name}.txt"))
}

//! Lets the process of a scenario die at every point, and compares what comes of it with what does when nothing fails.

mod execution;
mod failure;
mod finals;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) use self::execution::{execute, paused_runtime};
use self::failure::schedule_text;
pub use self::failure::{FailedPoint, ParseScheduleError};
use self::finals::Finals;
use crate::Coverage;
use crate::chance::mixed;
use crate::sim::{Fault, Injection, LONGEST, Reached, Sim};

/// Runs `scenario` once without faults, then once for every point at which its process can die or lose its leases, and
/// panics with the first that comes to another end. As [`Explorer::run`] with the usual bounds.
///
/// # Panics
///
/// With the shortest schedule that fails, and in an async context.
#[track_caller]
pub fn explore<F, S>(scenario: F) -> Held
where
    F: Fn(Sim) -> S + Sync,
    S: Future<Output = ()> + Send + 'static,
{
    Explorer::new().run(scenario)
}

/// Explores a scenario: see [`Sim`] for what one is.
///
/// # Points
///
/// A point is a call of the queue's port (before it reaches the queue, and for a change also after it was applied and
/// before its answer returns), which every memo, KV read and settlement comes down to; whatever is told to
/// [`Outside`](crate::Outside), before and after; every [`crash_point`](Sim::crash_point); every other moment at which a
/// step or hook waits. The process dies there; or, where a step or hook executes, every lease ends. Then the scenario's
/// program is started again, on what the process has left behind.
///
/// # What holds
///
/// However the process was interrupted, the scenario ends without a panic, nothing is under way any more, all runs have
/// the ends, the application's keys the values, and the world [outside](Sim::outside) the deeds that they have without a
/// fault, and the store is [consistent](workflow_runtime::WorkflowRuntime::check).
///
/// ```
/// use workflow_runtime::{NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner};
/// use workflow_testkit::{Explorer, Outside, Sim};
///
/// struct Charge {
///     bank: Outside,
/// }
///
/// impl StepRunner for Charge {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         self.bank.does("charge 17").await; // without an idempotency key
///         Ok(StepOutcome::Succeed { result: Vec::new() })
///     }
/// }
///
/// async fn scenario(sim: Sim) {
///     let runtime = sim.start(Charge { bank: sim.outside() }, NoopTerminalHook);
///     runtime.submit(RunSpec { run_id: Some("order".to_owned()), ..RunSpec::default() }).await.unwrap();
///     runtime.wait("order").await.unwrap();
/// }
///
/// let failed = Explorer::new().explore(scenario).unwrap_err();
/// assert_eq!(failed.problems, ["outside: charge 17, done 2 times instead of 1"]);
/// assert!(Explorer::new().replay(&failed.schedule, scenario).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Explorer {
    seed: u64,
    exhaustive_up_to: usize,
    samples: usize,
    pairs: usize,
    longest: Duration,
}

/// What was explored, and held.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The points of the scenario.
    pub points: usize,
    /// The schedules that were run, each with a fault or two.
    pub schedules: usize,
    /// Whether every point met every fault.
    pub exhaustive: bool,
    /// What of the state machine all these runs of the scenario have exercised.
    pub coverage: Coverage,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = if self.exhaustive { "" } else { ", drawn by seed" };
        write!(f, "{} points, {} schedules{extent}: all held", self.points, self.schedules)
    }
}

impl Default for Explorer {
    fn default() -> Self {
        Self { seed: 0, exhaustive_up_to: 5_000, samples: 1_000, pairs: 0, longest: LONGEST }
    }
}

impl Explorer {
    /// Every point, or a thousand of them if there are more than five thousand; no pairs; forty days
    /// of virtual time.
    pub fn new() -> Self {
        Self::default()
    }

    /// What ids, chance and samples follow from.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Runs every schedule of one fault if there are at most so many.
    #[must_use]
    pub fn exhaustive_up_to(mut self, schedules: usize) -> Self {
        self.exhaustive_up_to = schedules;
        self
    }

    /// Runs so many schedules, drawn by the seed, where there are too many to run them all.
    #[must_use]
    pub fn samples(mut self, schedules: usize) -> Self {
        self.samples = schedules;
        self
    }

    /// Runs so many schedules of two faults as well, drawn by the seed.
    #[must_use]
    pub fn pairs(mut self, schedules: usize) -> Self {
        self.pairs = schedules;
        self
    }

    /// A scenario that has not ended after so much virtual time has failed.
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Runs `scenario` in every way, up to the first that fails, on as many threads as there are cores: what it is to
    /// remember is [kept](Sim::keep) by its [`Sim`], of which each run has another.
    ///
    /// # Errors
    ///
    /// The schedule that failed; the empty one when the scenario fails without a fault.
    ///
    /// # Panics
    ///
    /// In an async context: it starts async runtimes of its own.
    pub fn explore<F, S>(&self, scenario: F) -> Result<Held, Box<FailedPoint>>
    where
        F: Fn(Sim) -> S + Sync,
        S: Future<Output = ()> + Send + 'static,
    {
        let (finals, reached, mut coverage) = self.uninterrupted(&scenario)?;
        let singles = singles(&reached);
        let exhaustive = singles.len() <= self.exhaustive_up_to;
        let singles = if exhaustive { singles } else { self.drawn(&singles, self.samples) };
        let pairs = (0..self.pairs).map(|number| self.pair(&reached, number as u64));
        let schedules: Vec<_> = singles.into_iter().chain(pairs).collect();
        coverage.merge(&self.try_all(&scenario, &schedules, &finals)?);
        Ok(Held { points: reached.len(), schedules: schedules.len(), exhaustive, coverage })
    }

    /// As [`explore`](Self::explore), for tests.
    ///
    /// # Panics
    ///
    /// With the schedule that failed, and in an async context.
    #[track_caller]
    pub fn run<F, S>(&self, scenario: F) -> Held
    where
        F: Fn(Sim) -> S + Sync,
        S: Future<Output = ()> + Send + 'static,
    {
        match self.explore(scenario) {
            Ok(held) => held,
            Err(failed) => panic!("{failed}"),
        }
    }

    /// Runs the one schedule of `scenario` that a [`FailedPoint`] has told.
    ///
    /// # Errors
    ///
    /// The schedule, if it fails.
    ///
    /// # Panics
    ///
    /// When `schedule` is none, and in an async context.
    pub fn replay<F, S>(&self, schedule: &str, scenario: F) -> Result<(), Box<FailedPoint>>
    where
        F: Fn(Sim) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        let injections = failure::parse_schedule(schedule).unwrap_or_else(|error| panic!("{error}"));
        let (finals, ..) = self.uninterrupted(&scenario)?;
        self.try_schedule(&scenario, injections, &finals).map(drop)
    }

    fn uninterrupted<F, S>(&self, scenario: &F) -> Result<(Finals, Vec<Reached>, Coverage), Box<FailedPoint>>
    where
        F: Fn(Sim) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        let execution = execute(scenario, self.seed, Vec::new(), self.longest);
        let problems = match &execution.result {
            Ok(finals) => finals.violations.clone(),
            Err(problem) => vec![problem.clone()],
        };
        match execution.result {
            Ok(finals) if problems.is_empty() => Ok((finals, execution.reached, execution.coverage)),
            _ => Err(FailedPoint::of(String::new(), problems, &execution.events)),
        }
    }

    /// Tries `schedules` on all cores. Of those that fail, tells the first in their order.
    fn try_all<F, S>(
        &self,
        scenario: &F,
        schedules: &[Vec<Injection>],
        expected: &Finals,
    ) -> Result<Coverage, Box<FailedPoint>>
    where
        F: Fn(Sim) -> S + Sync,
        S: Future<Output = ()> + Send + 'static,
    {
        let (next, failures) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let so_far = || failures.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || {
            let mut coverage = Coverage::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                // They are begun in their order, so nothing before a failure is left out.
                let Some(schedule) = schedules.get(number).filter(|_| so_far().is_empty()) else {
                    return coverage;
                };
                match self.try_schedule(scenario, schedule.clone(), expected) {
                    Ok(exercised) => coverage.merge(&exercised),
                    Err(failed) => drop(so_far().insert(number, failed)),
                }
            }
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get).min(schedules.len());
        let coverage = thread::scope(|scope| {
            let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
            let mut coverage = work();
            for other in others {
                coverage.merge(&other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            coverage
        });
        match so_far().pop_first() {
            Some((_, failed)) => Err(failed),
            None => Ok(coverage),
        }
    }

    fn try_schedule<F, S>(
        &self,
        scenario: &F,
        injections: Vec<Injection>,
        expected: &Finals,
    ) -> Result<Coverage, Box<FailedPoint>>
    where
        F: Fn(Sim) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        let schedule = schedule_text(&injections);
        let execution = execute(scenario, self.seed, injections, self.longest);
        let problems = match &execution.result {
            Ok(finals) => finals.differences(expected),
            Err(problem) => vec![problem.clone()],
        };
        if problems.is_empty() {
            Ok(execution.coverage)
        } else {
            Err(FailedPoint::of(schedule, problems, &execution.events))
        }
    }

    fn drawn(&self, all: &[Vec<Injection>], count: usize) -> Vec<Vec<Injection>> {
        let bound = all.len().max(1) as u64;
        let mut at: Vec<u64> = (0..count as u64).map(|number| mixed(self.seed, 1, number) % bound).collect();
        at.sort_unstable();
        at.dedup();
        at.into_iter().filter_map(|at| all.get(at as usize).cloned()).collect()
    }

    fn pair(&self, reached: &[Reached], number: u64) -> Vec<Injection> {
        let bound = reached.len().max(1) as u64;
        let draw = |part: u64| mixed(self.seed, 2 + part, number);
        let fault = |at: u64, chance: u64| match reached.get(at as usize) {
            Some(Reached { in_user_code: true }) if chance.is_multiple_of(3) => Fault::LeaseLost,
            _ => Fault::Crash,
        };
        let (first, second) = (draw(0) % bound, draw(1) % bound);
        vec![
            Injection { at: first, fault: fault(first, draw(2)) },
            Injection { at: second, fault: fault(second, draw(3)) },
        ]
    }
}

/// Every schedule of one fault, in the order of the points.
fn singles(reached: &[Reached]) -> Vec<Vec<Injection>> {
    let at_each = reached.iter().zip(0..).flat_map(|(point, at)| {
        let crash = Some(Injection { at, fault: Fault::Crash });
        let loss = point.in_user_code.then_some(Injection { at, fault: Fault::LeaseLost });
        crash.into_iter().chain(loss)
    });
    at_each.map(|injection| vec![injection]).collect()
}

//! Looks for a case that fails, and shrinks it.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use tokio::sync::Mutex;
use workflow_runtime::{Settings, StepRunner, TerminalHook};

use super::Held;
use super::case::Case;
use super::cases::{Draws, FARTHEST_POINT};
use super::failure::FailedCase;
use super::operation::Operation;
use super::play::{Player, Progress};
use super::quiet::quietly;
use super::rest::Rest;
use super::shared::Shared;
use crate::explore::execute;
use crate::interleave::panic_message;
use crate::sim::{Event, Fault};
use crate::{Coverage, Sim};

/// A case ends by then: no timer is farther off.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 3_600);
/// How often a case that fails is made simpler at most.
const MAX_SHRINKS: u32 = 4_096;

/// What makes a runner or a hook.
type Make<T> = Arc<dyn Fn(&Sim) -> T + Send + Sync>;

/// What a test asserts of a case at rest.
type Assertion = Arc<dyn Fn(&Rest) + Send + Sync>;

/// The workflow under test.
pub(super) struct Subject<R, H> {
    pub(super) runner: Make<R>,
    pub(super) hook: Make<H>,
    pub(super) settings: Settings,
    pub(super) reuses_run_ids: bool,
    pub(super) at_rest: Vec<Assertion>,
}

impl<R, H> Clone for Subject<R, H> {
    fn clone(&self) -> Self {
        Self {
            runner: self.runner.clone(),
            hook: self.hook.clone(),
            settings: self.settings.clone(),
            reuses_run_ids: self.reuses_run_ids,
            at_rest: self.at_rest.clone(),
        }
    }
}

/// Tries cases. Panics are told of the case that is found in the end, and of no other.
pub(super) fn search<R, H>(
    subject: &Subject<R, H>,
    draws: &Draws,
    cases: u32,
    seed: u64,
) -> Result<Held, Box<FailedCase>>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let mut runner = TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: MAX_SHRINKS,
        // The case is written as text instead.
        failure_persistence: None,
        ..Config::default()
    });
    let held = RefCell::new(Held::default());
    let tried = runner.run(&draws.cases(), |case| match quietly(|| try_case(subject, &case)) {
        Ok(more) => {
            held.borrow_mut().merge(&more);
            Ok(())
        }
        Err(failed) => Err(TestCaseError::fail(failed.problem)),
    });
    match tried {
        Ok(()) => Ok(held.into_inner()),
        Err(TestError::Fail(_, case)) => Err(failed(subject, simplest(subject, case))),
        Err(TestError::Abort(reason)) => panic!("no cases can be drawn: {reason}"),
    }
}

/// What comes of `case`, which fails.
fn failed<R, H>(subject: &Subject<R, H>, case: Case) -> Box<FailedCase>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    try_case(subject, &case).err().unwrap_or_else(|| {
        let problem = "it failed once, and holds when it is repeated: the runner draws by chance".to_owned();
        Box::new(FailedCase::new(case, problem, &[]))
    })
}

/// `case` without the operations that it fails without. Of a fault, the point may have to move along.
fn simplest<R, H>(subject: &Subject<R, H>, mut case: Case) -> Case
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let mut at = 0;
    while at < case.operations.len() {
        let fails = |simpler: &Case| quietly(|| try_case(subject, simpler)).is_err();
        match without(&case, at).find(fails) {
            None => at += 1,
            Some(simpler) => (case, at) = (simpler, 0),
        }
    }
    case
}

/// `case` without the operation `at`: with its faults where they are, then with the first of them at every other point.
fn without(case: &Case, at: usize) -> impl Iterator<Item = Case> + use<> {
    let mut simpler = case.clone();
    simpler.operations.remove(at);
    let template = simpler.clone();
    let moved = (0..FARTHEST_POINT).map_while(move |after| {
        let mut case = template.clone();
        *case.operations.iter_mut().find_map(Operation::point)? = after;
        Some(case)
    });
    std::iter::once(simpler).chain(moved)
}

/// Tries one case.
pub(super) fn try_case<R, H>(subject: &Subject<R, H>, case: &Case) -> Result<Held, Box<FailedCase>>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let progress = Progress::new(case.clone(), &subject.settings, subject.reuses_run_ids);
    let progress = Arc::new(Mutex::new(progress));
    let scenario = |sim: Sim| {
        let (subject, progress) = (subject.clone(), progress.clone());
        async move {
            if let Err(problem) = live(&subject, &sim, &mut *progress.lock().await).await {
                // As a panic that nobody is told of: what is under way now is not waited for.
                resume_unwind(Box::new(problem));
            }
        }
    };
    let execution = execute(&scenario, case.seed, Vec::new(), LONGEST);
    let problem = match execution.result {
        Ok(finals) => finals.violations.into_iter().next(),
        Err(problem) => Some(problem),
    };
    match problem {
        None => Ok(Held::of(case, &execution.events, execution.coverage)),
        Some(problem) => Err(Box::new(FailedCase::new(case.clone(), problem, &execution.events))),
    }
}

/// One process: to the end of the case, or to its death.
async fn live<R, H>(subject: &Subject<R, H>, sim: &Sim, progress: &mut Progress) -> Result<(), String>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let (runner, hook) = ((subject.runner)(sim), Shared::new((subject.hook)(sim)));
    let settings = subject.settings.clone();
    let runtime = sim.start_with(runner, hook.clone(), |builder| builder.settings(settings));
    let mut player = Player { sim, runtime: &runtime, hook: &hook, progress };
    let rest = Arc::new(player.play().await?);
    for assertion in &subject.at_rest {
        let (assertion, rest) = (assertion.clone(), rest.clone());
        tokio::spawn(async move { assertion(&rest) }).await.map_err(panic_message)?;
    }
    player.end().await
}

impl Held {
    fn of(case: &Case, events: &[Event], coverage: Coverage) -> Self {
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        Self {
            cases: 1,
            operations: case.operations.len(),
            steps: count(|event| matches!(event, Event::Started(place, ..) if place.step.is_some())),
            hooks: count(|event| matches!(event, Event::Told(_))),
            signals: count(|event| matches!(event, Event::Started(_, _, Some(_)))),
            crashes: count(|event| matches!(event, Event::Restarted)),
            lost_leases: count(|event| matches!(event, Event::Fault(Fault::LeaseLost, _))),
            coverage,
        }
    }

    fn merge(&mut self, more: &Self) {
        self.cases += more.cases;
        self.operations += more.operations;
        self.steps += more.steps;
        self.signals += more.signals;
        self.hooks += more.hooks;
        self.crashes += more.crashes;
        self.lost_leases += more.lost_leases;
        self.coverage.merge(&more.coverage);
    }
}

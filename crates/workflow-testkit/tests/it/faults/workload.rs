//! What the simulations execute: runs whose every attempt leaves a mark of its own, if it commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_runtime::{
    IdSource, RunOutcome, RunSpec, Step, StepError, StepOutcome, StepRunner, TerminalEffects, TerminalHook,
};
use workflow_testkit::Chance;

/// How many runs there are.
pub(crate) const RUNS: usize = 4;
/// How many steps each has.
pub(crate) const STEPS: u32 = 5;

/// Draws for everything in the simulation that is not decided by the runtime.
#[derive(Clone)]
pub(crate) struct Drawn(Arc<Mutex<Chance>>);

impl Drawn {
    pub(crate) fn new(chance: Chance) -> Self {
        Self(Arc::new(Mutex::new(chance)))
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.lock().unwrap().below(bound)
    }
}

impl IdSource for Drawn {
    fn random(&self) -> u128 {
        let mut chance = self.0.lock().unwrap();
        u128::from(chance.draw()) << 64 | u128::from(chance.draw())
    }
}

/// The id of a run.
pub(crate) fn run_id(run: usize) -> String {
    format!("run-{run}")
}

/// The submission of a run; every second one starts late.
pub(crate) fn submission(run: usize, start: std::time::SystemTime) -> RunSpec {
    let run_at = (run % 2 == 1).then(|| start + Duration::from_secs(3 * run as u64));
    RunSpec { run_id: Some(run_id(run)), input: format!("{run}:").into(), run_at, ..RunSpec::default() }
}

/// The user's code. Clones number their attempts together.
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) drawn: Drawn,
    pub(crate) attempts: Arc<AtomicU64>,
    pub(crate) told: Arc<Mutex<Vec<RunOutcome>>>,
}

impl Workload {
    pub(crate) fn new(drawn: Drawn) -> Self {
        Self { drawn, attempts: Arc::default(), told: Arc::default() }
    }

    /// A number that no other attempt has.
    fn attempt(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::Relaxed)
    }

    async fn take_some_time(&self) {
        let millis = match self.drawn.below(10) {
            0 => 4_000,
            1..=3 => self.drawn.below(1_000),
            _ => 0,
        };
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }
}

impl StepRunner for Workload {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let attempt = self.attempt();
        let value: u64 = step.memo.memoized("value", async { Ok::<_, StepError>(attempt) }).await?;
        let key = format!("log/{}/{}/{attempt}", step.run_id, step.step_number);
        step.effects.put(key, value.to_string())?;
        self.take_some_time().await;
        if step.step_number == 1 && step.attempts == 1 {
            return Err(StepError::transient("the first attempt fails"));
        }
        let again: u64 = step.memo.memoized("value", async { Ok::<_, StepError>(u64::MAX) }).await?;
        assert_eq!(again, value, "a memo does not change");
        let mut payload = step.payload.clone();
        payload.extend(format!("{value},").bytes());
        Ok(match step.step_number + 1 {
            STEPS => StepOutcome::Succeed { result: payload },
            3 => StepOutcome::continue_after(payload, Duration::from_secs(10)),
            _ => StepOutcome::continue_now(payload),
        })
    }
}

impl TerminalHook for Workload {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        self.told.lock().unwrap().push(outcome.clone());
        effects.put(format!("told/{}/{}", outcome.run_id, self.attempt()), "")?;
        self.take_some_time().await;
        if self.drawn.below(4) == 0 { Err(StepError::transient("a hook fails now and then")) } else { Ok(()) }
    }
}

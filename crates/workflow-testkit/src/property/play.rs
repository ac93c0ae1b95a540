//! Plays a case: asks one operation after another of the real runtime, through crashes, has the model judge what comes of
//! it, then lets everything come to rest, and to an end.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use tokio::time::timeout;
use workflow_runtime::{
    RedriveOptions, Result, RunOutcome, RunPhase, RunSpec, RunState, RunStatus, Settings, SignalOptions, StepRunner,
    SubmitOutcome, TerminalHook,
};

use super::case::Case;
use super::model::{Asked, Model, Verdict};
use super::operation::Operation;
use super::rest::Rest;
use super::shared::Shared;
use crate::sim::{Event, Fault};
use crate::{Sim, SimRuntime};

/// How long a call may take by virtual time.
const PATIENCE: Duration = Duration::from_secs(24 * 3_600);
/// The most timers that are waited for before everything counts as at rest.
const MAX_TIMERS: usize = 100;
/// Timers farther off are no reason to wait.
const HORIZON: Duration = Duration::from_secs(400 * 24 * 3_600);
/// More events than this in one wait are those of a run that goes on for ever.
const MAX_EVENTS: usize = 50_000;
/// How often events are counted at first, and how often at least.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));
/// More faults than this may use up all attempts of a step.
const FAULTS_SURVIVED: usize = 3;

/// How far a case is. It outlives the processes.
pub(super) struct Progress {
    case: Arc<Case>,
    /// The operation that is next, or asked for.
    next: usize,
    /// It is asked for, and not answered.
    asked: bool,
    /// Whether ids of runs that are gone are submitted again.
    reuses_run_ids: bool,
    model: Model,
}

impl Progress {
    pub(super) fn new(case: Case, settings: &Settings, reuses_run_ids: bool) -> Self {
        Self { case: Arc::new(case), next: 0, asked: false, reuses_run_ids, model: Model::new(settings) }
    }
}

/// A process that goes on with a case.
pub(super) struct Player<'a, R, H> {
    pub(super) sim: &'a Sim,
    pub(super) runtime: &'a SimRuntime<R, Shared<H>>,
    pub(super) hook: &'a Shared<H>,
    pub(super) progress: &'a mut Progress,
}

impl<R: StepRunner + 'static, H: TerminalHook + 'static> Player<'_, R, H> {
    /// Plays what is left of the operations, and lets everything come to rest without faults.
    pub(super) async fn play(&mut self) -> Result<Rest, String> {
        let case = self.progress.case.clone();
        while let Some(operation) = case.operations.get(self.progress.next) {
            let again = std::mem::replace(&mut self.progress.asked, true);
            self.read()?;
            self.carry_out(operation, again).await?;
            self.progress.asked = false;
            self.progress.next += 1;
            self.look_at_all().await?;
        }
        // The faults are over: none is to come, and a clock that was set back goes on.
        self.sim.world.points.disarm();
        self.sim.disk().clock().go_on();
        self.come_to_rest().await
    }

    /// Asks every run to end.
    pub(super) async fn end(&mut self) -> Verdict {
        for run_id in self.progress.model.run_ids() {
            self.carry_out(&Operation::Cancel(run_id), false).await?;
        }
        self.bounded(self.sim.until_idle()).await?;
        for (run_id, (_, end)) in self.look_at_all().await? {
            Model::must_have_ended(&run_id, end.as_ref())?;
        }
        self.progress.model.hooks_were_told(|end| self.hook.is_owed(end))
    }

    /// Has the model read what has happened.
    fn read(&mut self) -> Verdict {
        self.progress.model.read(&self.sim.world.log.events())
    }

    async fn carry_out(&mut self, operation: &Operation, again: bool) -> Verdict {
        match operation {
            Operation::Submit { run_id, input, headers } => self.submit(operation, run_id, input, headers, again).await,
            Operation::Signal { key, payload } => self.signal(operation, key, payload, again).await,
            Operation::Cancel(run_id) => {
                let answer = self.ask(operation, self.runtime.cancel(run_id, None)).await?;
                let asked = self.asked(run_id, again);
                self.progress.model.cancelled(&asked, &answer)
            }
            Operation::Pause(run_id) => {
                let answer = self.ask(operation, self.runtime.pause(run_id)).await?;
                let asked = self.asked(run_id, again);
                self.progress.model.paused(&asked, &answer)
            }
            Operation::Resume(run_id) => {
                self.progress.model.expect_starts(run_id);
                let answer = self.ask(operation, self.runtime.resume(run_id)).await?;
                let asked = self.asked(run_id, again);
                self.progress.model.resumed(&asked, &answer)
            }
            Operation::Redrive(run_id) => {
                self.progress.model.expect_starts(run_id);
                let answer = self.ask(operation, self.runtime.redrive(run_id, RedriveOptions::default())).await?;
                let asked = self.asked(run_id, again);
                self.progress.model.redriven(&asked, &answer)
            }
            Operation::Forget(run_id) => {
                let answer = self.ask(operation, self.runtime.forget(run_id)).await?;
                let asked = self.asked(run_id, again);
                self.progress.model.forgotten(&asked, &answer)
            }
            Operation::Advance(_) | Operation::Crash { .. } | Operation::LoseLeases { .. } | Operation::SetClock(_) => {
                self.disturb(operation).await
            }
        }
    }

    async fn submit(
        &mut self,
        operation: &Operation,
        run_id: &str,
        input: &[u8],
        headers: &BTreeMap<String, String>,
        again: bool,
    ) -> Verdict {
        let spec = RunSpec {
            run_id: Some(run_id.to_owned()),
            input: input.to_vec(),
            headers: headers.clone().into_iter().collect(),
            ..RunSpec::default()
        };
        if self.progress.model.may_be_gone(run_id, self.sim.now()) {
            let is_reused = !again && self.progress.model.was_submitted(run_id);
            if is_reused && !self.progress.reuses_run_ids {
                self.sim.world.log.tell(Event::Asked(format!("{operation}: not again, its run may be gone")));
                return Ok(());
            }
            self.progress.model.expect_starts(run_id);
        }
        let answer = self.ask(operation, self.runtime.submit(spec)).await?;
        let asked = self.asked(run_id, again);
        self.progress.model.submitted(&asked, input, headers, &answer)
    }

    async fn signal(&mut self, operation: &Operation, key: &str, payload: &[u8], again: bool) -> Verdict {
        // The same whenever it is asked for again.
        let options = SignalOptions { id: Some(format!("signal {}", self.progress.next)) };
        let answer = self.ask(operation, self.runtime.signal_with(key, payload.to_vec(), options)).await?;
        let asked = self.asked("", again);
        self.progress.model.signalled(&asked, key, payload, &answer)
    }

    /// What happens to the deployment.
    async fn disturb(&mut self, operation: &Operation) -> Verdict {
        self.sim.world.log.tell(Event::Asked(operation.to_string()));
        match operation {
            Operation::Advance(duration) => self.bounded(self.sim.advance(*duration)).await?,
            Operation::Crash { after } => self.sim.world.points.arm(*after, Fault::Crash),
            Operation::LoseLeases { after } => self.sim.world.points.arm(*after, Fault::LeaseLost),
            Operation::SetClock(step) => self.sim.disk().clock().set(*step),
            _ => {}
        }
        let faults = self.sim.world.log.events().iter().filter(|event| matches!(event, Event::Fault(..))).count();
        if faults > FAULTS_SURVIVED {
            self.progress.model.signals_may_be_dropped();
        }
        Ok(())
    }

    /// Waits, unless too much happens meanwhile.
    async fn bounded(&self, wait: impl Future<Output = ()>) -> Verdict {
        let most = self.sim.world.log.len() + MAX_EVENTS;
        let too_much = async {
            let mut waited = Duration::ZERO;
            while self.sim.world.log.len() < most {
                let look = (waited / 10).clamp(LOOKS.0, LOOKS.1);
                tokio::time::sleep(look).await;
                waited += look;
            }
        };
        tokio::select! {
            biased;
            () = wait => Ok(()),
            () = too_much => Err(format!("after {MAX_EVENTS} events there is still more to come")),
        }
    }

    /// Waits for the answer of a call, and tells it.
    async fn ask<T: Debug + Any>(
        &self,
        what: &Operation,
        call: impl Future<Output = Result<T>>,
    ) -> Result<Result<T>, String> {
        let answer = timeout(PATIENCE, call).await.map_err(|_| format!("{what}: no answer within a day"))?;
        let text = match &answer {
            Ok(answer) => answer_text(answer),
            Err(error) => error.to_string(),
        };
        self.sim.world.log.tell(Event::Asked(format!("{what}: {text}")));
        Ok(answer)
    }

    fn asked<'a>(&self, run_id: &'a str, again: bool) -> Asked<'a> {
        Asked { run_id, again, now: self.sim.now(), events: self.sim.world.log.len() }
    }

    /// How every run is.
    async fn look_at_all(&mut self) -> Result<BTreeMap<String, (RunStatus, Option<RunOutcome>)>, String> {
        let mut seen = BTreeMap::new();
        self.read()?;
        for run_id in self.progress.model.run_ids() {
            let status = self.runtime.status(&run_id).await.map_err(|error| error.to_string())?;
            let end = match &status {
                Some(RunStatus { phase: RunPhase::Ended { .. }, .. }) => self.runtime.run_end(&run_id).await,
                _ => Ok(None),
            };
            let end = end.map_err(|error| error.to_string())?;
            let asked = self.asked(&run_id, false);
            self.progress.model.seen(&asked, status.as_ref(), end.as_ref())?;
            seen.extend(status.map(|status| (run_id, (status, end))));
        }
        self.progress.model.hooks_were_told_the_truth()?;
        Ok(seen)
    }

    /// Lets every run go on for as long as it does by itself.
    async fn come_to_rest(&mut self) -> Result<Rest, String> {
        for (run_id, (status, _)) in self.look_at_all().await? {
            if status.state == RunState::Paused {
                self.carry_out(&Operation::Resume(run_id), false).await?;
            }
        }
        let mut runs = self.settled().await?;
        for _ in 0..MAX_TIMERS {
            let now = self.sim.now();
            let timers = runs.values().filter_map(|(status, _)| timer(status));
            let Some(wait) = timers.min().map(|timer| timer.duration_since(now).unwrap_or_default()) else { break };
            if wait > HORIZON {
                break;
            }
            self.bounded(self.sim.advance(wait + Duration::from_millis(1))).await?;
            runs = self.settled().await?;
        }
        for key in self.progress.model.signal_keys() {
            let kept = self.runtime.buffered_signals(&key).map_ok(|signal| signal.payload);
            let kept: Vec<Vec<u8>> = kept.try_collect().await.map_err(|error| error.to_string())?;
            self.progress.model.kept(&key, &kept, self.sim.now())?;
        }
        self.progress.model.hooks_were_told(|end| self.hook.is_owed(end))?;
        Ok(Rest::of(self.sim, runs))
    }

    /// Waits until nothing is under way or due.
    async fn settled(&mut self) -> Result<BTreeMap<String, (RunStatus, Option<RunOutcome>)>, String> {
        self.bounded(self.sim.until_idle()).await?;
        let runs = self.look_at_all().await?;
        runs.values().try_for_each(|(status, _)| Model::rests(status))?;
        Ok(runs)
    }
}

/// When a run goes on by itself.
fn timer(status: &RunStatus) -> Option<SystemTime> {
    match &status.phase {
        RunPhase::BackingOff { until } | RunPhase::Delayed { until } => Some(*until),
        RunPhase::Waiting { until, .. } => *until,
        _ => None,
    }
}

/// The name of an answer, without what it carries.
fn answer_text<T: Debug + Any>(answer: &T) -> String {
    if let Some(submitted) = <dyn Any>::downcast_ref::<SubmitOutcome>(answer) {
        return if submitted.newly_submitted { "New" } else { "Duplicate" }.to_owned();
    }
    let text = format!("{answer:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

//! The user's runner and hook, with each call told and each wait a point.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use workflow_runtime::{RunOutcome, Step, StepError, StepOutcome, StepRunner, TerminalEffects, TerminalHook};

use super::Sim;
use super::log::{Event, Place, Signal};

/// A runner or hook that a [`Sim`] watches.
pub struct Watched<T> {
    inner: T,
    sim: Sim,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, sim: Sim) -> Self {
        Self { inner, sim }
    }

    /// Polls the user's code; where it waits, and not at another point, the process may die.
    async fn call<A>(&self, place: &Place, start: Event, call: impl Future<Output = A>) -> A {
        let (sim, points) = (&self.sim, &self.sim.world.points);
        points.pass(sim, || format!("before {place} starts")).await;
        sim.world.log.tell(start);
        let _in_user_code = points.enter_user_code();
        let mut call = pin!(call);
        poll_fn(|cx| {
            let before = points.count();
            let polled = call.as_mut().poll(cx);
            let waits_elsewhere = points.count() > before;
            if polled.is_pending() && !waits_elsewhere {
                points.pass_now(sim, || format!("{place} waits"));
            }
            if points.is_dead() { Poll::Pending } else { polled }
        })
        .await
    }
}

impl<R: StepRunner> StepRunner for Watched<R> {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let place = Place { run_id: step.run_id.clone(), step: Some(step.step_number) };
        let signal = step.signal_key.clone().zip(step.signal.clone()).map(|(key, payload)| Signal { key, payload });
        let start = Event::Started(place.clone(), step.attempts, signal);
        let answer = self.call(&place, start, self.inner.run_step(step)).await;
        let text = match &answer {
            Ok(StepOutcome::Continue { .. }) => "Continue".to_owned(),
            Ok(StepOutcome::Succeed { .. }) => "Succeed".to_owned(),
            Ok(StepOutcome::Fail { reason }) => format!("Fail: {reason}"),
            Ok(StepOutcome::Cancel { reason }) => format!("Cancel: {reason}"),
            Ok(_) => "an outcome".to_owned(),
            Err(error) => format!("an error: {error}"),
        };
        self.sim.world.log.tell(Event::Answered(place, text));
        answer
    }
}

impl<H: TerminalHook> TerminalHook for Watched<H> {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        let place = Place::hook(&outcome.run_id);
        let start = Event::Told(outcome.clone());
        let answer = self.call(&place, start, self.inner.on_termination(outcome, effects)).await;
        let text = match &answer {
            Ok(()) => "that it is done".to_owned(),
            Err(error) => format!("an error: {error}"),
        };
        self.sim.world.log.tell(Event::Answered(place, text));
        answer
    }

    fn observes(&self, outcome: &RunOutcome) -> bool {
        self.inner.observes(outcome)
    }
}

//! States of runs, as they are seen between the calls and at rest.

use std::collections::BTreeMap;

use workflow_runtime::{RunOutcome, RunPhase, RunState, RunStatus, TerminalStatus};

use super::{Asked, Model, Verdict};

impl Model {
    /// The run is like this now; `end` is read after `status`.
    pub(in crate::property) fn seen(
        &mut self,
        asked: &Asked<'_>,
        status: Option<&RunStatus>,
        end: Option<&RunOutcome>,
    ) -> Verdict {
        let Some(status) = status else { return self.not_found(asked) };
        let run_id = asked.run_id;
        let is_removed_meanwhile = end.is_none() && self.may_be_gone(run_id, asked.now);
        let run = self.found(run_id)?;
        let headers: BTreeMap<_, _> = status.headers.clone().into_iter().collect();
        if headers != run.headers {
            return Err(format!("{run_id} has other headers than its submission: {headers:?}"));
        }
        if !(run.redrives.0..=run.redrives.1).contains(&status.redrives) {
            return Err(format!("{run_id} was redriven {} times, not {:?}", status.redrives, run.redrives));
        }
        if status.step < run.step {
            return Err(format!("{run_id} was at step {}, and is at step {}", run.step, status.step));
        }
        (run.redrives, run.step) = ((status.redrives, status.redrives), status.step);
        match (&status.phase, end) {
            (RunPhase::Ended { status, .. }, Some(end)) if end.status == *status => run.ended(end, asked.events),
            (RunPhase::Ended { .. }, None) if is_removed_meanwhile => {
                self.gone(run_id);
                Ok(())
            }
            (RunPhase::Ended { .. }, end) => Err(format!("{run_id} is {:?}, and its end is {end:?}", status.state)),
            _ if run.end.is_some() => Err(format!("{run_id} had ended, and is {:?}", status.state)),
            _ if run.paused == Some(true) && status.state != RunState::Paused => {
                Err(format!("{run_id} was paused, and is {:?}", status.state))
            }
            _ => Ok(()),
        }
    }

    /// Nothing is under way any more: the run has ended, or has a reason not to.
    pub(in crate::property) fn rests(status: &RunStatus) -> Verdict {
        match status.phase {
            RunPhase::Ready if status.state != RunState::Paused => {
                Err(format!("{} is due, and nothing executes it", status.run_id))
            }
            _ => Ok(()),
        }
    }

    /// Everything was asked to end.
    pub(in crate::property) fn must_have_ended(run_id: &str, end: Option<&RunOutcome>) -> Verdict {
        match end.map(|end| end.status) {
            Some(TerminalStatus::Succeeded | TerminalStatus::Failed | TerminalStatus::Cancelled) => Ok(()),
            _ => Err(format!("{run_id} was cancelled, and does not end")),
        }
    }
}

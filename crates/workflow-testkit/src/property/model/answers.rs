//! Answers to calls, one function per call.

use std::collections::BTreeMap;

use workflow_runtime::{
    CancelOutcome, Error, MAX_CORRELATION_KEY_LEN, PauseOutcome, RedriveOutcome, Result, ResumeOutcome, RunOutcome,
    SignalOutcome, SubmitOutcome, TerminalStatus,
};

use super::{Asked, Model, Run, Verdict, hostile};

impl Model {
    pub(in crate::property) fn submitted(
        &mut self,
        asked: &Asked<'_>,
        input: &[u8],
        headers: &BTreeMap<String, String>,
        answer: &Result<SubmitOutcome>,
    ) -> Verdict {
        if let Some(verdict) = hostile(asked.run_id, answer) {
            return verdict;
        }
        let may_be_new = self.may_be_gone(asked.run_id, asked.now);
        match (answer, self.runs.get_mut(asked.run_id)) {
            // Nothing is written for what is refused.
            (Err(Error::InvalidHeader { .. }), _) => Ok(()),
            (Ok(answer), _) if answer.newly_submitted && may_be_new => {
                self.gone(asked.run_id);
                let mut run = Run::new(input, headers, asked.now);
                // The first time may have made another, which is gone by now.
                if asked.again {
                    run.ends.miss();
                }
                self.runs.insert(asked.run_id.to_owned(), run);
                Ok(())
            }
            (Ok(answer), None) if asked.again => {
                let mut run = Run::new(input, headers, asked.now);
                let verdict = answer.end.as_ref().map_or(Ok(()), |end| run.ended(end, asked.events));
                self.runs.insert(asked.run_id.to_owned(), run);
                verdict
            }
            (Ok(answer), Some(run)) if !answer.newly_submitted && run.input == input => match &answer.end {
                Some(end) => run.ended(end, asked.events),
                None if run.end.is_some() => Err(format!("{} had ended, and goes on", asked.run_id)),
                None => Ok(()),
            },
            (Err(Error::InputMismatch(_)), Some(run)) if run.input != input => Ok(()),
            (answer, known) => {
                let known = known.map_or("was never submitted", |_| "was submitted before");
                Err(format!("{} {known}, and its submission is answered {answer:?}", asked.run_id))
            }
        }
    }

    pub(in crate::property) fn cancelled(&mut self, asked: &Asked<'_>, answer: &Result<CancelOutcome>) -> Verdict {
        if let Some(verdict) = hostile(asked.run_id, answer) {
            return verdict;
        }
        match answer {
            Ok(CancelOutcome::NotFound) => self.not_found(asked),
            Ok(CancelOutcome::AlreadyEnded(end)) => self.found(asked.run_id)?.ended(end, asked.events),
            Ok(CancelOutcome::Ended | CancelOutcome::Requested) => {
                self.signals.may_be_dropped();
                let run = self.found(asked.run_id)?;
                if run.end.is_some() {
                    return Err(format!("{} had ended, and is cancelled", asked.run_id));
                }
                (run.cancelled, run.paused) = (true, None);
                run.quiet(asked.events);
                Ok(())
            }
            answer => unexpected("cancelling", asked, answer),
        }
    }

    pub(in crate::property) fn paused(&mut self, asked: &Asked<'_>, answer: &Result<PauseOutcome>) -> Verdict {
        if let Some(verdict) = hostile(asked.run_id, answer) {
            return verdict;
        }
        match answer {
            Ok(PauseOutcome::NotFound) => self.not_found(asked),
            Ok(PauseOutcome::AlreadyEnded(end)) => self.found(asked.run_id)?.ended(end, asked.events),
            Ok(answer @ (PauseOutcome::Paused | PauseOutcome::Finishing)) => {
                let run = self.found(asked.run_id)?;
                if run.end.is_some() {
                    return Err(format!("{} had ended, and is paused", asked.run_id));
                }
                // A run that is to end is not paused.
                run.paused = if run.cancelled { None } else { Some(true) };
                if *answer == PauseOutcome::Paused {
                    run.quiet(asked.events);
                }
                Ok(())
            }
            answer => unexpected("pausing", asked, answer),
        }
    }

    pub(in crate::property) fn resumed(&mut self, asked: &Asked<'_>, answer: &Result<ResumeOutcome>) -> Verdict {
        if let Some(verdict) = hostile(asked.run_id, answer) {
            return verdict;
        }
        let (was_paused, now_paused) = match answer {
            Ok(ResumeOutcome::NotFound) => return self.not_found(asked),
            Ok(ResumeOutcome::AlreadyEnded(end)) => return self.found(asked.run_id)?.ended(end, asked.events),
            Ok(ResumeOutcome::Resumed) => (true, Some(false)),
            Ok(ResumeOutcome::NotPaused) => (false, Some(false)),
            answer => return unexpected("resuming", asked, answer),
        };
        let run = self.found(asked.run_id)?;
        if run.end.is_some() {
            return Err(format!("{} had ended, and resuming it is answered {answer:?}", asked.run_id));
        }
        if run.paused.is_some_and(|paused| paused != was_paused) && !asked.again {
            let was = if was_paused { "was not paused" } else { "was paused" };
            return Err(format!("{} {was}, and resuming it is answered {answer:?}", asked.run_id));
        }
        run.paused = now_paused;
        if run.cancelled {
            run.quiet(asked.events);
        }
        Ok(())
    }

    pub(in crate::property) fn redriven(&mut self, asked: &Asked<'_>, answer: &Result<RedriveOutcome>) -> Verdict {
        if let Some(verdict) = hostile(asked.run_id, answer) {
            return verdict;
        }
        if let Ok(RedriveOutcome::NotFound) = answer {
            return self.not_found(asked);
        }
        let run = self.found(asked.run_id)?;
        let known = run.end.as_ref().map(|end| end.status);
        let could_fail = known != Some(TerminalStatus::Succeeded);
        match answer {
            Ok(RedriveOutcome::Redriven) if could_fail => {
                let more = if asked.again { 2 } else { 1 };
                run.goes_on((run.redrives.0 + 1, run.redrives.1 + more), asked.again);
                Ok(())
            }
            Ok(RedriveOutcome::Active) if known.is_none() => Ok(()),
            // It was brought back before the earlier process died.
            Ok(RedriveOutcome::Active) if asked.again && could_fail => {
                run.goes_on((run.redrives.0, run.redrives.1 + 1), asked.again);
                Ok(())
            }
            Ok(RedriveOutcome::Succeeded(end)) => {
                if asked.again && could_fail {
                    run.goes_on((run.redrives.0, run.redrives.1 + 1), asked.again);
                }
                run.ended(end, asked.events)
            }
            Err(Error::KeyTaken(_)) if matches!(known, None | Some(TerminalStatus::Cancelled)) => Ok(()),
            answer => Err(format!("{} is known as {known:?}, and redriving it is answered {answer:?}", asked.run_id)),
        }
    }

    pub(in crate::property) fn forgotten(&mut self, asked: &Asked<'_>, answer: &Result<bool>) -> Verdict {
        if let Some(verdict) = hostile(asked.run_id, answer) {
            return verdict;
        }
        match answer {
            Ok(false) if asked.again => {
                self.gone(asked.run_id);
                Ok(())
            }
            Ok(false) => self.not_found(asked),
            Ok(true) => {
                self.found(asked.run_id)?;
                self.gone(asked.run_id);
                Ok(())
            }
            Err(Error::NotEnded(_)) if self.found(asked.run_id)?.end.is_none() => Ok(()),
            Err(Error::NotDone(_)) => self.found(asked.run_id).map(drop),
            answer => unexpected("forgetting", asked, answer),
        }
    }

    pub(in crate::property) fn signalled(
        &mut self,
        asked: &Asked<'_>,
        key: &str,
        payload: &[u8],
        answer: &Result<SignalOutcome>,
    ) -> Verdict {
        let is_key = (1..=MAX_CORRELATION_KEY_LEN).contains(&key.len());
        match answer {
            Ok(SignalOutcome::Duplicate) if !asked.again => Err(format!("a signal for {key:?} is taken for another")),
            Ok(_) if is_key => {
                self.signals.sent(key, payload, asked.now);
                Ok(())
            }
            Err(Error::SignalBufferFull { .. }) => Ok(()),
            Err(Error::InvalidCorrelationKey { .. }) if !is_key => Ok(()),
            answer => Err(format!("a signal for {key:?} is answered {answer:?}")),
        }
    }
}

impl Run {
    /// It goes on from its end, after so many redrives. Nobody may have seen that end, or, when the call was made
    /// `again`, one that came in between.
    fn goes_on(&mut self, redrives: (u32, u32), again: bool) {
        if again || self.end.is_none() {
            self.ends.miss();
        }
        self.redrives = redrives;
        (self.end, self.cancelled, self.paused, self.quiet_from) = (None::<RunOutcome>, false, Some(false), None);
    }
}

fn unexpected<T: std::fmt::Debug>(what: &str, asked: &Asked<'_>, answer: &Result<T>) -> Verdict {
    Err(format!("{what} {} is answered {answer:?}", asked.run_id))
}

//! The reference model: what the calls that were answered so far have promised, and whether an answer, a state or a start
//! of a step keeps to it. It knows nothing of how the runtime does it, nor of what the runner answers.

mod answers;
mod hooks;
mod signals;
mod states;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use workflow_core::RunId;
use workflow_runtime::{Error, RunOutcome, Settings};

use self::hooks::{Ends, Hooks};
use self::signals::Signals;
use crate::sim::{Event, Place};

/// A promise that is broken, in words; or nothing.
pub(super) type Verdict = Result<(), String>;

/// What the test knows of the deployment.
pub(super) struct Model {
    runs: BTreeMap<String, Run>,
    signals: Signals,
    hooks: Hooks,
    retention: Option<Duration>,
    /// How many events were read.
    read: usize,
}

/// What the test knows of a run.
#[derive(Debug)]
struct Run {
    input: Vec<u8>,
    headers: BTreeMap<String, String>,
    submitted_at: SystemTime,
    /// Its end, if that was seen.
    end: Option<RunOutcome>,
    /// This and those before.
    ends: Ends,
    cancelled: bool,
    /// None: that is not known.
    paused: Option<bool>,
    /// At least, and at most.
    redrives: (u32, u32),
    /// The step that was seen last.
    step: u32,
    /// From the event with this number on, no step of it starts.
    quiet_from: Option<usize>,
}

/// A call, as far as judging its answer needs it.
pub(super) struct Asked<'a> {
    pub(super) run_id: &'a str,
    /// An earlier process had asked the same, and died before the answer: it may be done already.
    pub(super) again: bool,
    pub(super) now: SystemTime,
    /// How many events there were when the answer came.
    pub(super) events: usize,
}

impl Model {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            runs: BTreeMap::new(),
            signals: Signals::new(settings.signal_ttl),
            hooks: Hooks::new(settings.hook_attempts),
            retention: settings.retention,
            read: 0,
        }
    }

    /// The runs that there are, as far as is known.
    pub(super) fn run_ids(&self) -> Vec<String> {
        self.runs.keys().cloned().collect()
    }

    /// The keys that signals were sent for.
    pub(super) fn signal_keys(&self) -> Vec<String> {
        self.signals.keys()
    }

    /// Reads what has happened since the last time.
    pub(super) fn read(&mut self, events: &[Event]) -> Verdict {
        for (number, event) in events.iter().enumerate().skip(self.read) {
            match event {
                Event::Started(Place { run_id, step: Some(step) }, _, signal) => {
                    let quiet_from = self.runs.get(run_id).and_then(|run| run.quiet_from);
                    if quiet_from.is_some_and(|from| from <= number) {
                        return Err(format!("step {step} of {run_id} starts, although none must any more"));
                    }
                    self.signals.received(run_id, *step, signal.as_ref())?;
                }
                Event::Told(end) => self.hooks.told(end),
                Event::Fault(..) => self.hooks.fault(),
                _ => {}
            }
        }
        self.read = events.len();
        Ok(())
    }

    /// What is asked next may let steps of the run start, before its answer.
    pub(super) fn expect_starts(&mut self, run_id: &str) {
        if let Some(run) = self.runs.get_mut(run_id) {
            run.quiet_from = None;
        }
    }

    /// Whether a run of this id was ever submitted.
    pub(super) fn was_submitted(&self, run_id: &str) -> bool {
        self.runs.contains_key(run_id) || self.signals.is_gone(run_id)
    }

    /// The run is gone, by being forgotten or by its retention.
    fn gone(&mut self, run_id: &str) {
        if let Some(mut run) = self.runs.remove(run_id) {
            if run.end.is_none() {
                run.ends.miss();
            }
            self.signals.gone(run_id);
            self.hooks.gone(run_id, run.ends);
        }
    }

    /// Retention may have removed the run by now.
    pub(super) fn may_be_gone(&self, run_id: &str, now: SystemTime) -> bool {
        let Some(run) = self.runs.get(run_id) else { return true };
        let age = now.duration_since(run.submitted_at).unwrap_or_default();
        self.retention.is_some_and(|retention| retention <= age)
    }

    /// A call said that there is no such run.
    fn not_found(&mut self, asked: &Asked<'_>) -> Verdict {
        if !self.may_be_gone(asked.run_id, asked.now) {
            return Err(format!("{} was submitted, and is not found", asked.run_id));
        }
        self.gone(asked.run_id);
        Ok(())
    }

    /// The run that a call has found.
    fn found(&mut self, run_id: &str) -> Result<&mut Run, String> {
        self.runs.get_mut(run_id).ok_or_else(|| format!("{run_id} was never submitted, and is found"))
    }
}

impl Run {
    fn new(input: &[u8], headers: &BTreeMap<String, String>, submitted_at: SystemTime) -> Self {
        Self {
            input: input.to_vec(),
            headers: headers.clone(),
            submitted_at,
            end: None,
            ends: Ends::default(),
            cancelled: false,
            paused: Some(false),
            redrives: (0, 0),
            step: 0,
            quiet_from: None,
        }
    }

    /// The run has ended like this, as is seen now.
    fn ended(&mut self, end: &RunOutcome, events: usize) -> Verdict {
        let run_id = &end.run_id;
        if self.end.as_ref().is_some_and(|known| known != end) {
            return Err(format!("{run_id} has ended twice: {:?}, then {end:?}", self.end));
        }
        if self.cancelled && end.status != workflow_runtime::TerminalStatus::Cancelled {
            return Err(format!("{run_id} was cancelled, and ends otherwise: {end:?}"));
        }
        let headers: BTreeMap<_, _> = end.headers.clone().into_iter().collect();
        if headers != self.headers {
            return Err(format!("{run_id} has other headers than its submission: {headers:?}"));
        }
        if self.end.is_none() {
            self.ends.see(end);
        }
        self.end = Some(end.clone());
        self.quiet(events);
        Ok(())
    }

    fn quiet(&mut self, events: usize) {
        self.quiet_from.get_or_insert(events);
    }
}

/// Whether a call of a run whose id is none was refused as it must be; nothing for other ids.
fn hostile<T: std::fmt::Debug>(run_id: &str, answer: &workflow_runtime::Result<T>) -> Option<Verdict> {
    RunId::parse(run_id).err()?;
    Some(match answer {
        Err(Error::InvalidRunId { .. }) => Ok(()),
        answer => Err(format!("{run_id:?} can be no run id, and is not refused: {answer:?}")),
    })
}

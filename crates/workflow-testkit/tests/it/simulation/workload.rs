//! The user's code: carries out the scripts, and tells of everything that it sees.

use std::collections::HashMap;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use workflow_runtime::{RunOutcome, Step, StepError, StepOutcome, StepRunner, TerminalEffects, TerminalHook, Trigger};
use workflow_testkit::MemoryDisk;

use super::answer::End;
use super::event::{Attempt, Event, Memo};
use super::script::{Script, Then};
use super::witness::Witness;
use crate::faults::Drawn;

/// The length of a value that is stored as an object.
const LARGE: usize = 300;
/// How many kinds of runs there are, by a header.
pub(crate) const KINDS: u64 = 3;

/// The runner and the hook. Clones are the same.
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) witness: Witness,
    pub(crate) drawn: Drawn,
    pub(crate) disk: MemoryDisk,
    /// Told when a step kills its process.
    pub(crate) killed: Arc<Notify>,
    /// Whether steps start before their predecessors are durable.
    pub(crate) pipelined: bool,
}

/// The headers of the submission with this number.
pub(crate) fn headers(call: u64, script: u64) -> HashMap<String, String> {
    let headers = [("call", call), ("script", script), ("kind", call % KINDS)];
    headers.map(|(name, value)| (name.to_owned(), value.to_string())).into()
}

/// The call that submitted a run with these headers.
pub(crate) fn call_of(headers: &HashMap<String, String>) -> u64 {
    number(headers, "call")
}

fn number(headers: &HashMap<String, String>, name: &str) -> u64 {
    headers.get(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Bytes that say `word`, and maybe are many.
pub(crate) fn bytes(word: &str, is_large: bool) -> Vec<u8> {
    let mut bytes = word.as_bytes().to_vec();
    bytes.push(b' ');
    if is_large {
        bytes.resize(LARGE, b'.');
    }
    bytes
}

/// The word that `bytes` say.
pub(crate) fn word(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or("?")
}

/// Where a committed attempt leaves its mark.
pub(crate) fn log_key(call: u64, step: u32, attempt: u64) -> String {
    format!("log/{call}/{step}/{attempt}")
}

impl StepRunner for Workload {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let attempt = Attempt {
            number: self.witness.number(),
            run_id: step.run_id.clone(),
            call: call_of(&step.headers),
            step: step.step_number,
            attempts: step.attempts,
            payload: step.payload.clone(),
            signal: step.signal.clone(),
            may_run_ahead: self.pipelined,
        };
        self.witness.tell(Event::Started(attempt.clone()));
        let answer = self.carry_out(step, &attempt).await;
        let text = match &answer {
            Ok(outcome) => outcome_text(outcome),
            Err(error) => format!("an error: {error}"),
        };
        self.witness.tell(Event::Left(attempt, text));
        answer
    }
}

impl Workload {
    async fn carry_out(&self, step: &Step, attempt: &Attempt) -> Result<StepOutcome, StepError> {
        let script = Script::of(number(&step.headers, "script"), step.step_number);
        if script.syncs {
            step.sync().await?;
            self.witness.tell(Event::Synced(attempt.clone()));
        }
        self.look_back(step, attempt).await?;
        self.remember(step, attempt, &script, "first").await?;
        step.effects.put(log_key(attempt.call, attempt.step, attempt.number), "")?;
        if !script.takes.is_zero() {
            tokio::time::sleep(script.takes).await;
        }
        self.remember(step, attempt, &script, "first").await?;
        self.remember(step, attempt, &script, "last").await?;
        if step.attempts <= script.failures {
            return Err(StepError::transient("an attempt fails"));
        }
        let payload = bytes(&format!("a{}", attempt.number), script.has_large_payload);
        Ok(match script.then {
            Then::GoOn => StepOutcome::continue_now(payload),
            Then::GoOnAfter(delay) => StepOutcome::continue_after(payload, delay),
            Then::Wait { keys, timeout } if keys.len() > 1 => {
                StepOutcome::continue_on_any_signal(payload, keys, timeout)
            }
            Then::Wait { keys, timeout } => StepOutcome::continue_on_signal(payload, keys.concat(), timeout),
            Then::Succeed => StepOutcome::Succeed { result: payload },
            Then::Fail => StepOutcome::Fail { reason: "as written".to_owned() },
            Then::Cancel => StepOutcome::Cancel { reason: "as written".to_owned() },
            Then::Break if !word(&step.payload).starts_with('p') => return Err(StepError::permanent("it is broken")),
            Then::Break => StepOutcome::continue_now(payload),
            // As a panic does, without a word on the terminal.
            Then::Panic if step.attempts == 1 => resume_unwind(Box::new("as written")),
            Then::Panic => StepOutcome::continue_now(payload),
            Then::Kill => {
                self.disk.cut_power_after(0);
                self.killed.notify_one();
                pending().await
            }
            Then::Hang if step.attempts == 1 => pending().await,
            Then::Hang => StepOutcome::continue_now(payload),
        })
    }

    /// Whether what the step before has staged is there.
    async fn look_back(&self, step: &Step, attempt: &Attempt) -> Result<(), StepError> {
        let before = word(&step.payload).strip_prefix('a').and_then(|number| number.parse().ok());
        let Some((number, before)) = before.zip(attempt.step.checked_sub(1)) else { return Ok(()) };
        let key = log_key(attempt.call, before, number);
        if step.kv.get(key.as_bytes()).await?.is_none() {
            self.witness.tell(Event::Missing { attempt: attempt.clone(), key });
        }
        Ok(())
    }

    /// Looks at the memos with this key that the script has, or makes them.
    async fn remember(
        &self,
        step: &Step,
        attempt: &Attempt,
        script: &Script,
        key: &'static str,
    ) -> Result<(), StepError> {
        let of_step = (&step.memo, Memo::OfStep(attempt.step, key));
        let of_run = (&step.run_memo, Memo::OfRun(key));
        for (handle, memo) in script.memo.then_some(of_step).into_iter().chain(script.run_memo.then_some(of_run)) {
            let value = handle.memoized(key, async { Ok::<_, StepError>(attempt.number) }).await?;
            self.witness.tell(Event::Remembered { attempt: attempt.clone(), memo, value });
        }
        Ok(())
    }
}

impl TerminalHook for Workload {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        let (number, end) = (self.witness.number(), End::of(outcome));
        let key = format!("told/{}/{number}", end.call);
        self.witness.tell(Event::Told(number, end));
        effects.put(key, "")?;
        if self.drawn.below(4) == 0 {
            tokio::time::sleep(Duration::from_millis(self.drawn.below(2_000))).await;
        }
        if self.drawn.below(5) == 0 { Err(StepError::transient("a hook fails now and then")) } else { Ok(()) }
    }
}

fn outcome_text(outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Continue { when: Trigger::Immediate, .. } => "go on".to_owned(),
        StepOutcome::Continue { when, .. } => format!("go on {when:?}"),
        StepOutcome::Succeed { .. } => "succeed".to_owned(),
        StepOutcome::Fail { .. } => "fail".to_owned(),
        StepOutcome::Cancel { .. } => "cancel".to_owned(),
        other => format!("{other:?}"),
    }
}

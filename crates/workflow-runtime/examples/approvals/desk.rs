//! What a request becomes: a run, a signal, a cancel, a look; and when it is refused.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use workflow_runtime::{
    CancelOutcome, EffectsError, Error, RunPhase, RunSpec, SignalOptions, StepEnd, StepError, WorkflowRuntime,
};

use crate::approval::{Approval, Stage};
use crate::clerk::Clerk;
use crate::ledger::{
    CLOSED, Entry, Message, OPEN, Payment, State, decode, encode, now_ms, order_key, outbox_prefix, payment_prefix,
};
use crate::order::{Draft, Invalid, is_id};
use crate::verdict::{Reply, Word};

/// The runtime of the orders.
pub(crate) type Runtime = WorkflowRuntime<Approval, Clerk>;

/// How long a request waits to see what came of it. As a rule that is there at once.
const PATIENCE: Duration = Duration::from_secs(3);
/// Orders of one kind that a list shows.
const LISTED: usize = 100;

/// Takes requests. It keeps nothing: everything is in the store.
pub(crate) struct Desk {
    runtime: Runtime,
}

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Refusal {
    Invalid(Invalid),
    NotFound,
    /// The order has gone another way; what it is now, if it is that of the request.
    Conflict(String),
    /// What came of it is not known yet. The same request again tells.
    Later,
    /// The store cannot answer.
    Failed(StepError),
}

/// Everything there is to show of an order.
#[derive(Debug, Serialize)]
pub(crate) struct Dossier {
    #[serde(flatten)]
    pub(crate) entry: Entry,
    /// Until when an answer is waited for before the next step is taken.
    pub(crate) waits_until_ms: Option<u64>,
    pub(crate) steps: Vec<StepLine>,
    pub(crate) messages: Vec<Message>,
    pub(crate) payments: Vec<Payment>,
}

/// A committed step of an order's run.
#[derive(Debug, Serialize)]
pub(crate) struct StepLine {
    pub(crate) step: u32,
    pub(crate) name: &'static str,
    /// What it was woken by, where it had waited.
    pub(crate) woken_by: Option<String>,
    pub(crate) end: &'static str,
    pub(crate) ended_ms: u64,
}

/// The orders, as far as they fit into a list.
#[derive(Debug, Serialize)]
pub(crate) struct Lists {
    /// Oldest first.
    pub(crate) open: Vec<Entry>,
    /// Latest first.
    pub(crate) closed: Vec<Entry>,
}

impl Desk {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    /// Takes an order, and says whether it is new. The same draft with an id may be sent any number of times.
    pub(crate) async fn submit(&self, draft: Draft) -> Result<(Entry, bool), Refusal> {
        let order = draft.parse()?;
        let entry = Entry::new(order.clone(), now_ms());
        let (rows, _) = entry.rows();
        let id = order.id.clone();
        let spec = RunSpec {
            run_id: Some(id.clone()),
            input: encode(&Stage::Ask { order }),
            // Written with the run, or not at all; dropped when the run is there already.
            kv_writes: rows.into_iter().map(|(key, value)| (key.into_bytes(), value)).collect::<HashMap<_, _>>(),
            ..RunSpec::default()
        };
        match self.runtime.submit(spec).await {
            Ok(submitted) if submitted.newly_submitted => Ok((entry, true)),
            Ok(_) => Ok((self.entry(&id).await?, false)),
            Err(Error::InputMismatch(_)) => Err(Refusal::Conflict(format!("order {id} is there and reads otherwise"))),
            Err(error) => Err(error.into()),
        }
    }

    /// Carries an answer to an order. It counts exactly if this says so, and a repetition of it is told the same.
    pub(crate) async fn answer(&self, order: &str, word: Word, reply: Reply) -> Result<Entry, Refusal> {
        let verdict = reply.parse()?.verdict(word, now_ms());
        let before = self.entry(order).await?;
        let counts = |entry: &Entry| {
            let taken = entry.verdict.as_ref();
            taken.is_some_and(|taken| (&taken.id, taken.word) == (&verdict.id, verdict.word))
        };
        if counts(&before) {
            return Ok(before);
        }
        if !before.state.is_undecided() {
            return Err(conflict(&before));
        }
        let options = SignalOptions { id: Some(verdict.id.clone()) };
        self.runtime.signal_with(&word.key(order), encode(&verdict), options).await?;
        // Another answer may have been there first, or the time was over: only the order's row tells. Where it is still
        // undecided the run is busy, and the same request again is known by its id.
        self.settle(order).await?;
        let after = self.entry(order).await?;
        match after.state.is_undecided() {
            _ if counts(&after) => Ok(after),
            true => Err(Refusal::Later),
            false => Err(conflict(&after)),
        }
    }

    /// Ends an order whatever it is doing, also between its approval and its payment.
    pub(crate) async fn stop(&self, order: &str, reply: Reply) -> Result<Entry, Refusal> {
        let reply = reply.parse()?;
        let before = self.entry(order).await?;
        if !before.state.is_open() {
            return Err(conflict(&before));
        }
        let reason = format!("stopped by {}: {}", reply.by, reply.comment);
        let outcome = self.runtime.cancel(order, Some(reason)).await?;
        self.settle(order).await?;
        let after = self.entry(order).await?;
        match outcome {
            CancelOutcome::AlreadyEnded(_) => Err(conflict(&after)),
            _ if after.state.is_open() => Err(Refusal::Later),
            _ => Ok(after),
        }
    }

    /// Every answer ends an order soon. Where paying takes longer, the answer need not wait for it.
    async fn settle(&self, order: &str) -> Result<(), Refusal> {
        self.runtime.wait_timeout(order, PATIENCE).await?;
        Ok(())
    }

    /// What is known of an order now.
    pub(crate) async fn entry(&self, id: &str) -> Result<Entry, Refusal> {
        if !is_id(id) {
            return Err(Refusal::NotFound);
        }
        let entry = self.row(id).await?;
        if !entry.state.is_open() {
            return Ok(entry);
        }
        // The clerk may not have closed it yet, or a step has just now.
        let Some(outcome) = self.runtime.run_end(id).await? else { return Ok(entry) };
        let mut entry = self.row(id).await?;
        entry.close_with(&outcome);
        Ok(entry)
    }

    async fn row(&self, id: &str) -> Result<Entry, Refusal> {
        let row = self.runtime.kv().get(order_key(id).as_bytes()).await?;
        Ok(decode(&row.ok_or(Refusal::NotFound)?)?)
    }

    /// Everything about an order.
    pub(crate) async fn dossier(&self, id: &str) -> Result<Dossier, Refusal> {
        let entry = self.entry(id).await?;
        let status = self.runtime.status(id).await?;
        let waits_until = status.and_then(|status| match status.phase {
            RunPhase::Waiting { until, .. } => until,
            _ => None,
        });
        let steps = self.runtime.history(id).map_ok(|entry| StepLine {
            step: entry.step,
            name: entry.payload.and_then(|payload| decode::<Stage>(&payload).ok()).map_or("", |stage| stage.name()),
            woken_by: entry.signal_key,
            end: match entry.end {
                StepEnd::Continued | StepEnd::Delayed => "went on",
                StepEnd::Waited => "waits for an answer",
                StepEnd::Succeeded => "succeeded",
                StepEnd::Failed => "failed",
                StepEnd::Cancelled => "was cancelled",
                _ => "ended",
            },
            ended_ms: since_1970(entry.ended_at),
        });
        Ok(Dossier {
            waits_until_ms: waits_until.map(since_1970),
            steps: steps.try_collect().await?,
            messages: self.rows_below(&outbox_prefix(id)).await?,
            payments: self.rows_below(&payment_prefix(id)).await?,
            entry,
        })
    }

    async fn rows_below<T: serde::de::DeserializeOwned>(&self, prefix: &str) -> Result<Vec<T>, Refusal> {
        let rows: Vec<_> = self.runtime.kv().scan(prefix.as_bytes()).take(LISTED).try_collect().await?;
        rows.iter().map(|(_, row)| Ok(decode(row)?)).collect()
    }

    /// The open orders, oldest first, and those that were closed last.
    pub(crate) async fn lists(&self) -> Result<Lists, Refusal> {
        let mut lists = Lists { open: Vec::new(), closed: Vec::new() };
        for prefix in [OPEN, CLOSED] {
            let listed: Vec<_> = self.runtime.kv().scan(prefix.as_bytes()).take(LISTED).try_collect().await?;
            for (key, _) in listed {
                let id = std::str::from_utf8(&key).ok().and_then(|key| key.rsplit_once('/'));
                let Some((_, id)) = id else { continue };
                let entry = self.entry(id).await?;
                // It may have been closed since the keys were read: then both lists may name it.
                match entry.state.is_open() {
                    true => lists.open.push(entry),
                    false if lists.closed.iter().any(|closed| closed.order.id == id) => {}
                    false => lists.closed.push(entry),
                }
            }
        }
        Ok(lists)
    }
}

/// The order is another way already.
fn conflict(entry: &Entry) -> Refusal {
    let by = entry.verdict.as_ref().map_or_else(String::new, |verdict| format!(" by {}", verdict.by));
    let state = match entry.state {
        State::Approved | State::Paid => format!("was approved{by}"),
        State::Rejected => format!("was rejected{by}"),
        State::Withdrawn => format!("was withdrawn{by}"),
        State::Expired => "has expired".to_owned(),
        State::Stopped => "was stopped".to_owned(),
        State::Failed => "has failed".to_owned(),
        State::Submitted | State::Asked | State::Reminded | State::Escalated => "is open".to_owned(),
    };
    Refusal::Conflict(format!("too late: order {} {state}", entry.order.id))
}

fn since_1970(time: std::time::SystemTime) -> u64 {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::NotFound => f.write_str("there is no such order"),
            Self::Conflict(reason) => f.write_str(reason),
            Self::Later => f.write_str("what came of it is not known yet; send the same again"),
            Self::Failed(_) => f.write_str("the store cannot answer now; send the same again"),
        }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<EffectsError> for Refusal {
    fn from(error: EffectsError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<StepError> for Refusal {
    fn from(error: StepError) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests;

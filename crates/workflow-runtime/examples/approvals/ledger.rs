//! Keys and values in the application's KV: what is known of each order, without asking its run.
//!
//! | key | value |
//! | --- | --- |
//! | `order/{id}` | [`Entry`]: the order and how far it is |
//! | `open/{submitted}/{id}` | nothing; there while the order is open, oldest first |
//! | `closed/{closed, inverted}/{id}` | nothing; there once it is closed, latest first |
//! | `outbox/{id}/{number}` | [`Message`]: what is to be sent to whom |
//! | `payment/{id}/{receipt}` | [`Payment`]: money that was moved |
//!
//! The submission writes the first two in the transaction that makes the run; each step writes what it changes in its
//! own, so a row and the run behind it never contradict each other. Every key has one owner: the run of its order, and
//! after its end the clerk.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use workflow_runtime::{EffectsError, EffectsHandle, RunOutcome, StepError, TerminalEffects, TerminalStatus};

use crate::amount::Amount;
use crate::order::Order;
use crate::verdict::Verdict;

pub(crate) const OPEN: &str = "open/";
pub(crate) const CLOSED: &str = "closed/";

/// What is known of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) order: Order,
    pub(crate) state: State,
    pub(crate) submitted_ms: u64,
    /// The answer that counts.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) closed_ms: Option<u64>,
    /// Why it expired, was stopped or failed.
    pub(crate) reason: Option<String>,
}

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Submitted,
    Asked,
    Reminded,
    Escalated,
    Approved,
    Paid,
    Rejected,
    Withdrawn,
    Expired,
    Stopped,
    Failed,
}

/// Something for a person, to be sent by whoever empties the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) to: String,
    pub(crate) text: String,
    pub(crate) at_ms: u64,
}

/// Money that was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payment {
    pub(crate) receipt: String,
    pub(crate) amount: Amount,
}

impl State {
    /// Whether somebody may still answer.
    pub(crate) fn is_undecided(self) -> bool {
        matches!(self, Self::Submitted | Self::Asked | Self::Reminded | Self::Escalated)
    }

    /// Whether its run goes on.
    pub(crate) fn is_open(self) -> bool {
        self.is_undecided() || self == Self::Approved
    }
}

impl Entry {
    pub(crate) fn new(order: Order, now_ms: u64) -> Self {
        Self { order, state: State::Submitted, submitted_ms: now_ms, verdict: None, closed_ms: None, reason: None }
    }

    /// The rows that say so, as writes and deletes.
    pub(crate) fn rows(&self) -> (Vec<(String, Vec<u8>)>, Option<String>) {
        let id = &self.order.id;
        let open = format!("{OPEN}{:013}/{id}", self.submitted_ms);
        let entry = (order_key(id), encode(self));
        match self.closed_ms {
            None => (vec![entry, (open, Vec::new())], None),
            Some(closed) => {
                let latest_first = u64::MAX - closed;
                (vec![entry, (format!("{CLOSED}{latest_first:020}/{id}"), Vec::new())], Some(open))
            }
        }
    }

    /// Stages the rows to commit with a step.
    pub(crate) fn stage(&self, effects: &EffectsHandle) -> Result<(), EffectsError> {
        let (puts, delete) = self.rows();
        puts.into_iter().try_for_each(|(key, value)| effects.put(key, value))?;
        delete.map_or(Ok(()), |key| effects.delete(key))
    }

    /// Stages the rows to commit with a hook.
    pub(crate) fn stage_in_hook(&self, effects: &TerminalEffects) -> Result<(), EffectsError> {
        let (puts, delete) = self.rows();
        puts.into_iter().try_for_each(|(key, value)| effects.put(key, value))?;
        delete.map_or(Ok(()), |key| effects.delete(key))
    }

    /// Closes an entry that no step has closed: its run was ended from outside, or failed.
    pub(crate) fn close_with(&mut self, outcome: &RunOutcome) {
        if !self.state.is_open() {
            return;
        }
        let is_stopped = outcome.status == TerminalStatus::Cancelled;
        self.state = if is_stopped { State::Stopped } else { State::Failed };
        self.reason.clone_from(&outcome.error);
        self.closed_ms = Some(now_ms());
    }
}

pub(crate) fn order_key(id: &str) -> String {
    format!("order/{id}")
}

pub(crate) fn outbox_prefix(id: &str) -> String {
    format!("outbox/{id}/")
}

/// The key of the message that a step sends; a step sends one.
pub(crate) fn outbox_key(id: &str, step: u32) -> String {
    format!("{}{step:04}", outbox_prefix(id))
}

pub(crate) fn payment_prefix(id: &str) -> String {
    format!("payment/{id}/")
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("it is plain data")
}

/// # Errors
///
/// A permanent one: the bytes stay what they are.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StepError> {
    serde_json::from_slice(bytes).map_err(|error| StepError::permanent(format!("stored by another version: {error}")))
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

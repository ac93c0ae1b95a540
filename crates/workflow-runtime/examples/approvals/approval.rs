//! The steps of an order's run: ask, hear the answer or the silence, pay.
//!
//! | step | waits for | then |
//! | --- | --- | --- |
//! | ask | | below the limit: pay; else ask the approver |
//! | hear | the decision, the withdrawal, or the time to remind | reminds, later asks the manager, later expires |
//! | pay | | moves the money, ends |
//!
//! Which of an approval, a rejection and a withdrawal counts is decided by the run: the first that reaches it ends the
//! wait. A rejection is a success of the workflow, whose result says so; an order that nobody answers fails; one that is
//! withdrawn is cancelled.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};

use crate::amount::Amount;
use crate::bank;
use crate::ledger::{self, Entry, Message, Payment, State, decode, encode, now_ms};
use crate::order::Order;
use crate::verdict::{Verdict, Word, decision_key, withdrawal_key};

const APPROVER: &str = "approver";
const MANAGER: &str = "manager";
/// Who answers for orders that need no person.
const POLICY: &str = "policy";

/// How long people are waited for, and when they are not asked at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// From asking to the reminder.
    pub(crate) remind_after: Duration,
    /// From the reminder to asking the manager.
    pub(crate) escalate_after: Duration,
    /// From asking the manager to the end.
    pub(crate) expire_after: Duration,
    /// Smaller orders are approved at once.
    pub(crate) limit: Amount,
}

/// The payload of every step; the input of a run is its first one.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub(crate) enum Stage {
    Ask { order: Order },
    Hear { order: String, round: Round },
    Pay { order: String },
}

/// Who was asked last, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Round {
    Asked,
    Reminded,
    Escalated,
}

impl Stage {
    /// What people call the step.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "ask",
            Self::Hear { .. } => "hear",
            Self::Pay { .. } => "pay",
        }
    }
}

/// Runs the steps of all orders.
pub(crate) struct Approval {
    terms: Terms,
}

impl Approval {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms }
    }
}

impl StepRunner for Approval {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match decode(&step.payload)? {
            Stage::Ask { order } => self.ask(step, &order).await,
            Stage::Hear { order, round } => self.hear(step, &order, round).await,
            Stage::Pay { order } => pay(step, &order).await,
        }
    }
}

impl Approval {
    async fn ask(&self, step: &Step, order: &Order) -> Result<StepOutcome, StepError> {
        let mut entry = entry(step, &order.id).await?;
        if let Err(invalid) = order.check() {
            return close(step, entry, State::Failed, Some(invalid.to_string()));
        }
        if order.amount < self.terms.limit {
            entry.verdict = Some(Verdict {
                id: POLICY.to_owned(),
                word: Word::Approve,
                by: POLICY.to_owned(),
                comment: format!("below {}", self.terms.limit),
                at_ms: now_ms(),
            });
            return approve(step, entry);
        }
        self.wait(step, entry, Round::Asked)
    }

    async fn hear(&self, step: &Step, order: &str, round: Round) -> Result<StepOutcome, StepError> {
        let mut entry = entry(step, order).await?;
        if let Some(signal) = &step.signal {
            let verdict: Verdict = decode(signal)?;
            let word = verdict.word;
            entry.verdict = Some(verdict);
            return match word {
                Word::Approve => approve(step, entry),
                Word::Reject => close(step, entry, State::Rejected, None),
                Word::Withdraw => close(step, entry, State::Withdrawn, None),
            };
        }
        match round {
            Round::Asked => self.wait(step, entry, Round::Reminded),
            Round::Reminded => self.wait(step, entry, Round::Escalated),
            Round::Escalated => close(step, entry, State::Expired, Some("nobody answered in time".to_owned())),
        }
    }

    /// Tells whose turn it is, and waits for an answer.
    fn wait(&self, step: &Step, mut entry: Entry, round: Round) -> Result<StepOutcome, StepError> {
        let (state, to, text, timeout) = match round {
            Round::Asked => (State::Asked, APPROVER, "please decide", self.terms.remind_after),
            Round::Reminded => (State::Reminded, APPROVER, "a reminder: please decide", self.terms.escalate_after),
            Round::Escalated => {
                (State::Escalated, MANAGER, "the approver does not answer: please decide", self.terms.expire_after)
            }
        };
        entry.state = state;
        entry.stage(&step.effects)?;
        send(step, &entry, to, text)?;
        let order = entry.order.id;
        let keys = [decision_key(&order), withdrawal_key(&order)];
        Ok(StepOutcome::continue_on_any_signal(encode(&Stage::Hear { order, round }), keys, timeout))
    }
}

/// Writes down that the order is approved. From this commit on it is, and paying is a step of its own: however often
/// that has to be tried, the decision stands.
fn approve(step: &Step, mut entry: Entry) -> Result<StepOutcome, StepError> {
    entry.state = State::Approved;
    entry.stage(&step.effects)?;
    Ok(StepOutcome::continue_now(encode(&Stage::Pay { order: entry.order.id })))
}

async fn pay(step: &Step, order: &str) -> Result<StepOutcome, StepError> {
    let entry = entry(step, order).await?;
    let key = format!("{order}-payment");
    let payment: Payment = step.memo.memoized("payment", bank::transfer(&key, entry.order.amount)).await?;
    let row = format!("{}{}", ledger::payment_prefix(order), payment.receipt);
    step.effects.put(row, encode(&payment))?;
    close(step, entry, State::Paid, None)
}

/// Ends the run, and tells the requester.
fn close(step: &Step, mut entry: Entry, state: State, reason: Option<String>) -> Result<StepOutcome, StepError> {
    (entry.state, entry.reason, entry.closed_ms) = (state, reason, Some(now_ms()));
    entry.stage(&step.effects)?;
    let comment = entry.verdict.as_ref().map(|verdict| format!("{}: {}", verdict.by, verdict.comment));
    let said = comment.unwrap_or_default();
    let reason = entry.reason.clone().unwrap_or_default();
    let (text, outcome) = match state {
        State::Paid => ("your order is approved and paid", StepOutcome::Succeed { result: encode(&state) }),
        State::Rejected => ("your order is rejected", StepOutcome::Succeed { result: encode(&state) }),
        State::Withdrawn => ("your order is withdrawn", StepOutcome::Cancel { reason: format!("withdrawn by {said}") }),
        State::Expired => ("your order has expired: nobody answered", StepOutcome::Fail { reason }),
        _ => ("your order cannot be worked on", StepOutcome::Fail { reason }),
    };
    send(step, &entry, &entry.order.requester, text)?;
    Ok(outcome)
}

/// Puts a message into the outbox; it is there exactly if the step is committed.
fn send(step: &Step, entry: &Entry, to: &str, text: &str) -> Result<(), StepError> {
    let Order { id, item, amount, .. } = &entry.order;
    let text = format!("{text} ({item}, {amount})");
    let message = Message { to: to.to_owned(), text, at_ms: now_ms() };
    Ok(step.effects.put(ledger::outbox_key(id, step.step_number), encode(&message))?)
}

/// What the submission and earlier steps have written.
async fn entry(step: &Step, order: &str) -> Result<Entry, StepError> {
    let row = step.kv.get(ledger::order_key(order).as_bytes()).await?;
    decode(&row.ok_or_else(|| StepError::permanent(format!("order {order} has no row")))?)
}

#[cfg(test)]
mod tests;

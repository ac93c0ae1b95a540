//! Each step alone, called by hand.

use std::time::Duration;

use workflow_runtime::{KvReadHandle, Step, StepErrorKind, StepOutcome, StepRunner, Trigger};

use super::{Approval, Round, Stage, Terms};
use crate::ledger::{Entry, Message, Payment, State, decode, encode};
use crate::order::{Draft, Order};
use crate::verdict::{Verdict, Word};

const MINUTE: Duration = Duration::from_secs(60);

fn terms() -> Terms {
    Terms { remind_after: MINUTE, escalate_after: 2 * MINUTE, expire_after: 3 * MINUTE, limit: "100".parse().unwrap() }
}

fn order(amount: &str) -> Order {
    let draft = Draft { id: "po-1".into(), item: "lamp".into(), amount: amount.into(), ..Draft::default() };
    Draft { requester: "Ada".into(), ..draft }.parse().unwrap()
}

fn step(number: u32, stage: &Stage, entry: &Entry) -> Step {
    let mut step = Step::detached(encode(stage));
    (step.run_id, step.step_number) = ("po-1".to_owned(), number);
    step.kv = KvReadHandle::detached_with([("order/po-1", encode(entry))]);
    step
}

fn hear(round: Round) -> Stage {
    Stage::Hear { order: "po-1".to_owned(), round }
}

async fn run(step: &Step) -> StepOutcome {
    Approval::new(terms()).run_step(step).await.unwrap()
}

fn entry_after(step: &Step) -> Entry {
    decode(&step.effects.staged().puts[&b"order/po-1"[..]]).unwrap()
}

fn message(step: &Step) -> (String, String) {
    let staged = step.effects.staged();
    let row = staged.puts.iter().find(|(key, _)| key.starts_with(b"outbox/po-1/")).unwrap().1;
    let Message { to, text, .. } = decode(row).unwrap();
    (to, text)
}

/// The step asks somebody, and waits for both kinds of answers.
fn check_waits(step: &Step, outcome: &StepOutcome, state: State, round: Round, timeout: Duration, to: &str) {
    let StepOutcome::Continue { payload, when: Trigger::OnAnySignal { correlation_keys, timeout: waits } } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(decode::<Stage>(payload).unwrap(), hear(round));
    assert_eq!(*correlation_keys, ["order/po-1/decision", "order/po-1/withdrawn"]);
    assert_eq!((*waits, entry_after(step).state, message(step).0.as_str()), (timeout, state, to));
}

/// The step closes the order, and tells the requester.
fn check_closed(step: &Step, state: State, told: &str) {
    let staged = step.effects.staged();
    let entry = entry_after(step);
    assert_eq!((entry.state, entry.closed_ms.is_some()), (state, true));
    assert!(staged.deletes.contains(&b"open/0000000000017/po-1"[..]));
    assert!(staged.puts.keys().any(|key| key.starts_with(b"closed/") && key.ends_with(b"/po-1")));
    let (to, text) = message(step);
    assert!(to == "Ada" && text.starts_with(told), "{to}: {text}");
}

#[tokio::test]
async fn an_order_goes_to_the_approver() {
    let entry = Entry::new(order("100"), 17);
    let step = step(0, &Stage::Ask { order: entry.order.clone() }, &entry);
    let outcome = run(&step).await;
    check_waits(&step, &outcome, State::Asked, Round::Asked, MINUTE, "approver");
}

#[tokio::test]
async fn a_small_order_is_approved_at_once() {
    let entry = Entry::new(order("99.99"), 17);
    let step = step(0, &Stage::Ask { order: entry.order.clone() }, &entry);
    let outcome = run(&step).await;
    assert_eq!(outcome, StepOutcome::continue_now(encode(&Stage::Pay { order: "po-1".to_owned() })));
    let entry = entry_after(&step);
    assert_eq!((entry.state, entry.verdict.unwrap().by.as_str()), (State::Approved, "policy"));
}

#[tokio::test]
async fn an_order_that_another_program_submitted_wrongly_fails_with_the_field() {
    let entry = Entry::new(Order { item: String::new(), ..order("200") }, 17);
    let step = step(0, &Stage::Ask { order: entry.order.clone() }, &entry);
    assert!(matches!(run(&step).await, StepOutcome::Fail { reason } if reason.starts_with("item: ")));
    check_closed(&step, State::Failed, "your order cannot be worked on");
}

#[tokio::test]
async fn silence_reminds_then_escalates_then_expires() {
    let entry = Entry::new(order("200"), 17);
    let reminded = step(1, &hear(Round::Asked), &entry);
    let outcome = run(&reminded).await;
    check_waits(&reminded, &outcome, State::Reminded, Round::Reminded, 2 * MINUTE, "approver");

    let escalated = step(2, &hear(Round::Reminded), &entry);
    let outcome = run(&escalated).await;
    check_waits(&escalated, &outcome, State::Escalated, Round::Escalated, 3 * MINUTE, "manager");

    let expired = step(3, &hear(Round::Escalated), &entry);
    assert_eq!(run(&expired).await, StepOutcome::Fail { reason: "nobody answered in time".to_owned() });
    check_closed(&expired, State::Expired, "your order has expired");
}

/// What the step that hears `word` answers.
async fn heard(word: Word) -> (Step, StepOutcome) {
    let mut step = step(1, &hear(Round::Asked), &Entry::new(order("200"), 17));
    let verdict = Verdict { id: "v".into(), word, by: "Bob".into(), comment: "so be it".into(), at_ms: 18 };
    step.signal = Some(encode(&verdict));
    let outcome = run(&step).await;
    assert_eq!(entry_after(&step).verdict, Some(verdict));
    (step, outcome)
}

#[tokio::test]
async fn every_answer_ends_the_wait_in_its_own_way() {
    let (step, outcome) = heard(Word::Approve).await;
    assert_eq!(outcome, StepOutcome::continue_now(encode(&Stage::Pay { order: "po-1".to_owned() })));
    assert_eq!(entry_after(&step).state, State::Approved);

    let (step, outcome) = heard(Word::Reject).await;
    assert_eq!(outcome, StepOutcome::Succeed { result: b"\"rejected\"".to_vec() });
    check_closed(&step, State::Rejected, "your order is rejected");

    let (step, outcome) = heard(Word::Withdraw).await;
    assert_eq!(outcome, StepOutcome::Cancel { reason: "withdrawn by Bob: so be it".to_owned() });
    check_closed(&step, State::Withdrawn, "your order is withdrawn");
}

#[tokio::test]
async fn a_payment_that_was_made_before_a_crash_is_not_made_again() {
    let entry = Entry { state: State::Approved, ..Entry::new(order("200"), 17) };
    let step = step(2, &Stage::Pay { order: "po-1".to_owned() }, &entry);
    let made = Payment { receipt: "r-1".to_owned(), amount: entry.order.amount };
    step.memo.put("payment", &encode(&made)).await.unwrap();
    assert_eq!(run(&step).await, StepOutcome::Succeed { result: b"\"paid\"".to_vec() });
    let paid: Payment = decode(&step.effects.staged().puts[&b"payment/po-1/r-1"[..]]).unwrap();
    assert_eq!(paid, made);
    check_closed(&step, State::Paid, "your order is approved and paid");
}

#[tokio::test]
async fn what_does_not_decode_fails_for_good() {
    let entry = Entry::new(order("200"), 17);
    let mut garbled = step(1, &hear(Round::Asked), &entry);
    garbled.signal = Some(b"yes".to_vec());
    let mut rowless = step(1, &hear(Round::Asked), &entry);
    rowless.kv = KvReadHandle::detached();
    for step in [garbled, rowless, Step::detached("no stage")] {
        let error = Approval::new(terms()).run_step(&step).await.unwrap_err();
        assert_eq!(error.kind, StepErrorKind::Permanent, "{error}");
    }
}

//! Whole orders on the in-memory queue, in virtual time: no test waits.

mod crashes;

use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use tokio_util::task::AbortOnDropHandle;
use workflow_runtime::port::{Clock, KvStore};
use workflow_runtime::{KvReadHandle, TerminalStatus, WorkflowRuntime};
use workflow_testkit::MemoryDisk;

use super::{Desk, Refusal};
use crate::approval::{Approval, Terms};
use crate::clerk::Clerk;
use crate::ledger::{Entry, State};
use crate::order::Draft;
use crate::server::settings;
use crate::verdict::{Reply, Word};

/// How long each round waits for an answer.
const ROUND: Duration = Duration::from_secs(10);

fn terms() -> Terms {
    Terms { remind_after: ROUND, escalate_after: ROUND, expire_after: ROUND, limit: "100".parse().unwrap() }
}

/// The process: a desk, and the loop behind it. Dropped, it is dead.
struct Office {
    disk: MemoryDisk,
    desk: Desk,
    _running: AbortOnDropHandle<workflow_runtime::Result<()>>,
}

impl Office {
    fn new() -> Self {
        Self::open(&MemoryDisk::default())
    }

    /// The next process on a disk.
    fn open(disk: &MemoryDisk) -> Self {
        let queue = Arc::new(disk.open());
        let kv: Arc<dyn KvStore> = queue.clone();
        let clerk = Clerk::new(KvReadHandle::new(kv));
        // Everything here is small: no object is ever stored.
        let runtime = WorkflowRuntime::over(queue, Arc::new(InMemory::new()), Approval::new(terms()), clerk)
            .settings(settings())
            .build()
            .unwrap();
        let looping = runtime.clone();
        let running = tokio::spawn(async move { looping.run(std::future::pending()).await });
        Self { disk: disk.clone(), desk: Desk::new(runtime), _running: AbortOnDropHandle::new(running) }
    }

    /// Lets time pass.
    async fn pass(&self, time: Duration) {
        self.disk.clock().sleep(time).await;
    }

    async fn submit(&self, id: &str) -> Entry {
        self.desk.submit(draft(id)).await.unwrap().0
    }

    async fn state(&self, id: &str) -> State {
        self.desk.entry(id).await.unwrap().state
    }

    /// How the run ended, and for what reason.
    async fn end(&self, id: &str) -> (TerminalStatus, Option<String>) {
        let end = self.desk.runtime.wait(id).await.unwrap();
        (end.status, end.error)
    }

    /// The order's messages, each by its addressee and its first word.
    async fn told(&self, id: &str) -> Vec<String> {
        let messages = self.desk.dossier(id).await.unwrap().messages;
        messages.iter().map(|message| format!("{}: {}", message.to, message.text)).collect()
    }

    async fn payments(&self, id: &str) -> usize {
        self.desk.dossier(id).await.unwrap().payments.len()
    }
}

fn draft(id: &str) -> Draft {
    let (item, amount, requester) = ("lamp".to_owned(), "120".to_owned(), "Ada".to_owned());
    Draft { id: id.to_owned(), item, amount, requester, note: String::new() }
}

fn reply(id: &str) -> Reply {
    Reply { id: id.to_owned(), by: "Bob".to_owned(), comment: "so be it".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn silence_reminds_escalates_and_expires_on_time() {
    let office = Office::new();
    office.submit("po-1").await;
    office.pass(ROUND / 2).await;
    for state in [State::Asked, State::Reminded, State::Escalated, State::Expired] {
        assert_eq!(office.state("po-1").await, state);
        office.pass(ROUND).await;
    }
    assert_eq!(office.end("po-1").await, (TerminalStatus::Failed, Some("nobody answered in time".to_owned())));
    let expected = [
        "approver: please decide (lamp, 120.00)",
        "approver: a reminder: please decide (lamp, 120.00)",
        "manager: the approver does not answer: please decide (lamp, 120.00)",
        "Ada: your order has expired: nobody answered (lamp, 120.00)",
    ];
    assert_eq!(office.told("po-1").await, expected);
    assert_eq!(office.payments("po-1").await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_approval_counts_before_and_after_every_reminder() {
    for passed in 0..3 {
        let office = Office::new();
        office.submit("po-1").await;
        office.pass(ROUND * passed + ROUND / 2).await;
        let entry = office.desk.answer("po-1", Word::Approve, reply("a")).await.unwrap();
        assert_eq!((entry.state, entry.verdict.unwrap().by.as_str()), (State::Paid, "Bob"));
        assert_eq!(office.end("po-1").await, (TerminalStatus::Succeeded, None));
        assert_eq!((office.payments("po-1").await, office.told("po-1").await.len()), (1, passed as usize + 2));
        office.pass(9 * ROUND).await;
        assert_eq!(office.told("po-1").await.len(), passed as usize + 2, "nobody is reminded any more");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_comes_before_the_wait_counts() {
    let office = Office::new();
    // Sent as soon as the order is there, it meets the first step in every state.
    let (submitted, answered) = tokio::join!(office.desk.submit(draft("po-1")), async {
        loop {
            match office.desk.answer("po-1", Word::Approve, reply("a")).await {
                Err(Refusal::NotFound) => office.pass(Duration::from_micros(1)).await,
                answered => break answered,
            }
        }
    });
    assert!(submitted.unwrap().1);
    assert_eq!(answered.unwrap().state, State::Paid);
    assert_eq!(office.payments("po-1").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_double_click_counts_once_and_both_clicks_are_told_the_same() {
    let office = Office::new();
    office.submit("po-1").await;
    let click = || office.desk.answer("po-1", Word::Approve, reply("a"));
    let (first, second) = tokio::join!(click(), click());
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(click().await.unwrap().state, State::Paid);
    assert_eq!(office.payments("po-1").await, 1);
    assert_eq!(office.desk.dossier("po-1").await.unwrap().steps.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn of_rivals_one_decides_and_the_others_are_told_so() {
    let office = Office::new();
    office.submit("po-1").await;
    let (approved, rejected, withdrawn) = tokio::join!(
        office.desk.answer("po-1", Word::Approve, reply("a")),
        office.desk.answer("po-1", Word::Reject, reply("b")),
        office.desk.answer("po-1", Word::Withdraw, reply("c")),
    );
    let answers = [approved, rejected, withdrawn];
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Err(Refusal::Conflict(_)))).count(), 2, "{answers:?}");
    // The same id with another word is another answer.
    let again = office.desk.answer("po-1", Word::Approve, reply("b")).await;
    assert!(matches!(again, Err(Refusal::Conflict(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_a_result() {
    let office = Office::new();
    office.submit("po-1").await;
    let entry = office.desk.answer("po-1", Word::Reject, reply("a")).await.unwrap();
    assert_eq!(entry.state, State::Rejected);
    assert_eq!(office.end("po-1").await, (TerminalStatus::Succeeded, None));
    let late = office.desk.answer("po-1", Word::Approve, reply("b")).await;
    assert!(matches!(late, Err(Refusal::Conflict(reason)) if reason == "too late: order po-1 was rejected by Bob"));
    assert_eq!(office.payments("po-1").await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_order_is_withdrawn_while_it_waits() {
    let office = Office::new();
    office.submit("po-1").await;
    office.pass(ROUND + ROUND / 2).await;
    let entry = office.desk.answer("po-1", Word::Withdraw, reply("a")).await.unwrap();
    assert_eq!(entry.state, State::Withdrawn);
    let reason = Some("withdrawn by Bob: so be it".to_owned());
    assert_eq!(office.end("po-1").await, (TerminalStatus::Cancelled, reason));
    let late = office.desk.answer("po-1", Word::Approve, reply("b")).await;
    assert!(matches!(late, Err(Refusal::Conflict(_))), "{late:?}");
    office.pass(ROUND).await;
    assert_eq!(office.state("po-1").await, State::Withdrawn, "the clerk leaves it alone");
}

#[tokio::test(start_paused = true)]
async fn an_order_is_stopped_from_outside_and_leaves_the_open_ones() {
    let office = Office::new();
    office.submit("po-1").await;
    let entry = office.desk.stop("po-1", reply("")).await.unwrap();
    assert_eq!((entry.state, entry.reason.as_deref()), (State::Stopped, Some("stopped by Bob: so be it")));
    let again = office.desk.stop("po-1", reply("")).await;
    assert!(matches!(again, Err(Refusal::Conflict(reason)) if reason == "too late: order po-1 was stopped"));
    let lists = office.desk.lists().await.unwrap();
    assert_eq!((lists.open.len(), lists.closed.len()), (0, 1), "it is shown as closed before the clerk knows");
    office.pass(ROUND).await;
    let lists = office.desk.lists().await.unwrap();
    assert_eq!((lists.open.len(), lists.closed[0].state), (0, State::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_small_order_needs_nobody() {
    let office = Office::new();
    let small = Draft { amount: "99.99".to_owned(), ..draft("po-1") };
    office.desk.submit(small).await.unwrap();
    assert_eq!(office.end("po-1").await, (TerminalStatus::Succeeded, None));
    assert_eq!((office.state("po-1").await, office.payments("po-1").await), (State::Paid, 1));
}

#[tokio::test(start_paused = true)]
async fn an_order_may_be_sent_again_but_not_changed() {
    let office = Office::new();
    let (first, is_new) = office.desk.submit(draft("po-1")).await.unwrap();
    assert!(is_new);
    office.pass(ROUND / 2).await;
    let (again, is_new) = office.desk.submit(draft("po-1")).await.unwrap();
    assert_eq!((again.submitted_ms, is_new, again.state), (first.submitted_ms, false, State::Asked));
    let changed = office.desk.submit(Draft { amount: "121".to_owned(), ..draft("po-1") }).await;
    assert!(matches!(changed, Err(Refusal::Conflict(_))), "{changed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_not_there_is_not_found() {
    let office = Office::new();
    for id in ["po-1", "", "a/b", "ordér", &"x".repeat(10_000)] {
        assert!(matches!(office.desk.dossier(id).await, Err(Refusal::NotFound)), "{id}");
        let answered = office.desk.answer(id, Word::Approve, reply("a")).await;
        assert!(matches!(answered, Err(Refusal::NotFound)), "{id}");
        assert!(matches!(office.desk.stop(id, reply("a")).await, Err(Refusal::NotFound)), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_limits() {
    let office = Office::new();
    office.submit("po-1").await;
    let anonymous = Reply { by: "  ".to_owned(), ..reply("a") };
    let long = Reply { comment: "x".repeat(2_001), ..reply("a") };
    for (reply, field) in [(reply("a b"), "id"), (anonymous, "by"), (long, "comment")] {
        let answered = office.desk.answer("po-1", Word::Approve, reply).await;
        assert!(matches!(&answered, Err(Refusal::Invalid(invalid)) if invalid.field == field), "{answered:?}");
    }
}

//! Power cuts at every operation of an order's life, and clients that send again what was not answered.

use workflow_testkit::MemoryDisk;

use super::{Office, ROUND, draft, reply};
use crate::desk::{Dossier, Refusal};
use crate::ledger::State;
use crate::verdict::Word;

/// What a client does with an order, again from the start for as long as it is not answered.
#[derive(Clone, Copy, Debug)]
enum Course {
    Approved,
    ApprovedLate,
    Rejected,
    Withdrawn,
    Stopped,
    Expired,
}

impl Course {
    async fn live(self, office: &Office) -> Dossier {
        let desk = &office.desk;
        desk.submit(draft("po-1")).await.unwrap();
        let word = match self {
            Self::Approved => Some(Word::Approve),
            Self::ApprovedLate => {
                while desk.entry("po-1").await.unwrap().state.is_undecided()
                    && desk.entry("po-1").await.unwrap().state != State::Reminded
                {
                    office.pass(ROUND / 4).await;
                }
                Some(Word::Approve)
            }
            Self::Rejected => Some(Word::Reject),
            Self::Withdrawn => Some(Word::Withdraw),
            Self::Stopped => {
                match desk.stop("po-1", reply("a")).await {
                    Ok(_) | Err(Refusal::Conflict(_)) => {}
                    other => panic!("{other:?}"),
                }
                None
            }
            Self::Expired => None,
        };
        if let Some(word) = word {
            desk.answer("po-1", word, reply("a")).await.unwrap();
        }
        desk.runtime.wait("po-1").await.unwrap();
        // The clerk has its say.
        office.pass(ROUND).await;
        desk.dossier("po-1").await.unwrap()
    }

    fn expected(self) -> (State, usize, usize) {
        match self {
            Self::Approved => (State::Paid, 1, 2),
            Self::ApprovedLate => (State::Paid, 1, 3),
            Self::Rejected => (State::Rejected, 0, 2),
            Self::Withdrawn => (State::Withdrawn, 0, 2),
            Self::Stopped => (State::Stopped, 0, 1),
            Self::Expired => (State::Expired, 0, 4),
        }
    }
}

/// The power is cut after each number of operations in turn, until the order's life has fewer.
async fn check(course: Course) {
    let mut cuts = 0;
    loop {
        let disk = MemoryDisk::default();
        let office = Office::open(&disk);
        disk.cut_power_after(cuts);
        let undisturbed = tokio::select! {
            biased;
            () = disk.cut() => false,
            _ = course.live(&office) => true,
        };
        // A process later everything is there, or goes on.
        drop(office);
        let office = Office::open(&disk);
        let dossier = course.live(&office).await;
        let (state, payments, messages) = course.expected();
        assert_eq!(dossier.entry.state, state, "{course:?} cut after {cuts} operations: {dossier:?}");
        assert_eq!(dossier.payments.len(), payments, "{course:?} cut after {cuts} operations: {dossier:?}");
        // A stop may come before the approver was asked.
        let told = dossier.messages.len();
        let is_told = told == messages || (matches!(course, Course::Stopped) && told == 0);
        assert!(is_told, "{course:?} cut after {cuts} operations: {dossier:?}");
        let lists = office.desk.lists().await.unwrap();
        assert_eq!((lists.open.len(), lists.closed.len()), (0, 1), "{course:?} cut after {cuts} operations");
        if undisturbed {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 3, "{course:?} lasted {cuts} operations");
}

#[tokio::test(start_paused = true)]
async fn an_approved_order_survives_a_crash_at_any_moment() {
    check(Course::Approved).await;
    check(Course::ApprovedLate).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_or_withdrawn_order_survives_a_crash_at_any_moment() {
    check(Course::Rejected).await;
    check(Course::Withdrawn).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_order_survives_a_crash_at_any_moment() {
    check(Course::Stopped).await;
}

#[tokio::test(start_paused = true)]
async fn an_order_that_nobody_answers_expires_whatever_crashes() {
    check(Course::Expired).await;
}

#[tokio::test(start_paused = true)]
async fn an_order_survives_many_crashes_in_the_same_step() {
    let disk = MemoryDisk::default();
    let office = Office::open(&disk);
    disk.cut_power_after(1);
    // The step may start, and its commit cut the power, before the submission is answered.
    let submission = office.desk.submit(draft("po-1"));
    tokio::join!(disk.cut(), tokio::time::timeout(ROUND, submission)).1.ok();
    drop(office);
    // So much becomes durable that the step starts, and not its commit: a claim, then also what was lost before, then
    // also the turn of a step that is suspected of killing its process.
    for operations in [1, 2].into_iter().chain([3; 18]) {
        let _office = Office::open(&disk);
        disk.cut_power_after(operations);
        tokio::time::timeout(ROUND, disk.cut()).await.expect("the order goes on");
    }
    let office = Office::open(&disk);
    let status = office.desk.runtime.status("po-1").await.unwrap().unwrap();
    assert_eq!((status.step, status.attempts_used), (0, 19));
    let entry = office.desk.answer("po-1", Word::Approve, reply("a")).await.unwrap();
    assert_eq!(entry.state, State::Paid);
}

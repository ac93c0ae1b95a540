//! The second table: every event of a terminal notification, in every phase of its row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use workflow_core::{
    Attempt, AttemptFailed, Attempts, Failure, FailureKind, Incarnation, Jitter, JobId, Notification,
    NotificationAction, NotificationClaimed, NotificationEvent, NotificationTransition, Reason, RetryPolicy,
    decide_notification,
};

use super::document::{Row, table};
use super::fixtures::{FUTURE, MAX_ATTEMPTS, NOW, PAST};
use super::{reasons, render};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    NoRow,
    Ready,
    BackingOffEarly,
    BackingOffDue,
    Parked,
    Dead,
}

impl Stage {
    const ALL: [Self; 6] =
        [Self::NoRow, Self::Ready, Self::BackingOffEarly, Self::BackingOffDue, Self::Parked, Self::Dead];

    fn name(self) -> &'static str {
        match self {
            Self::NoRow => "no row",
            Self::Ready => "ready",
            Self::BackingOffEarly => "backing off, early",
            Self::BackingOffDue => "backing off, due",
            Self::Parked => "parked",
            Self::Dead => "dead",
        }
    }

    fn row(self) -> Option<Notification> {
        let fresh = Attempts::default();
        let lost_and_failed = Attempts { used: 2, lost: 1, ..fresh };
        let row = |due, attempts| {
            Some(Notification { revision: 4, job: JobId::from("current"), attempts, due, dead: self == Self::Dead })
        };
        match self {
            Self::NoRow => None,
            Self::Ready => row(None, fresh),
            Self::BackingOffEarly => row(Some(FUTURE), lost_and_failed),
            Self::BackingOffDue => row(Some(PAST), lost_and_failed),
            Self::Parked => row(None, Attempts { used: 2, base: 2, lost: 2, parked: true }),
            Self::Dead => row(None, Attempts { used: 2, base: 3, lost: 0, parked: false }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Claimed,
    TurnCame,
    HookReturned,
    HookFailed,
    HandedBack,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Claimed, Self::TurnCame, Self::HookReturned, Self::HookFailed, Self::HandedBack];

    fn of(event: &NotificationEvent) -> Self {
        match event {
            NotificationEvent::Claimed(_) => Self::Claimed,
            NotificationEvent::TurnCame(_) => Self::TurnCame,
            NotificationEvent::HookReturned(_) => Self::HookReturned,
            NotificationEvent::HookFailed(_) => Self::HookFailed,
            NotificationEvent::HandedBack { .. } => Self::HandedBack,
        }
    }
}

struct Case {
    what: &'static str,
    delivery: &'static str,
    event: Box<dyn Fn(Attempts) -> NotificationEvent>,
}

impl Case {
    fn at(&self, stage: Stage) -> (Option<Notification>, NotificationEvent) {
        let row = stage.row();
        let attempts = row.as_ref().map(|row| row.attempts).unwrap_or_default();
        (row, (self.event)(attempts))
    }

    fn kind(&self) -> Kind {
        Kind::of(&self.at(Stage::NoRow).1)
    }

    fn decide(&self, stage: Stage) -> NotificationTransition {
        let (row, event) = self.at(stage);
        decide_notification(row.as_ref(), event)
    }
}

fn all() -> Vec<Case> {
    let mut cases = claims();
    cases.extend(current_late_and_stale("", |_, attempt| NotificationEvent::TurnCame(attempt)));
    cases.extend(current_late_and_stale("", |_, attempt| NotificationEvent::HookReturned(attempt)));
    cases.extend(failures());
    cases.extend(current_late_and_stale("", |_, attempt| NotificationEvent::HandedBack {
        attempt,
        next_job: JobId::from("new"),
    }));
    cases
}

fn claims() -> Vec<Case> {
    let case = |delivery, change: fn(Attempts, &mut NotificationClaimed)| {
        let event = move |attempts: Attempts| {
            let mut event = NotificationClaimed {
                job: JobId::from("current"),
                deliveries: attempts.base + 1,
                max_attempts: MAX_ATTEMPTS,
                now: NOW,
                next_job: JobId::from("new"),
            };
            change(attempts, &mut event);
            NotificationEvent::Claimed(event)
        };
        Case { what: "", delivery, event: Box::new(event) }
    };
    vec![
        case("the next delivery", |_, _| {}),
        case("after one lost delivery", |_, event| event.deliveries += 1),
        case("after two lost deliveries", |_, event| event.deliveries += 2),
        case("after as many lost deliveries as attempts", |_, event| event.deliveries += MAX_ATTEMPTS),
        case("attempts used up before it", |attempts, event| event.max_attempts = attempts.used),
        case("overtaken by a later delivery", |_, event| event.deliveries -= 1),
        case("put back by an operator: delivery 1", |_, event| event.deliveries = 1),
        case("stale job", |_, event| event.job = JobId::from("old")),
    ]
}

fn current_late_and_stale(
    what: &'static str,
    event: impl Fn(Attempts, Attempt) -> NotificationEvent + Clone + 'static,
) -> Vec<Case> {
    let with = |delivery, change: fn(&mut Attempt)| {
        let event = event.clone();
        let event = move |attempts: Attempts| {
            let mut attempt = Attempt {
                incarnation: Incarnation::new(7),
                step: 3,
                job: JobId::from("current"),
                deliveries: attempts.base + 1,
            };
            change(&mut attempt);
            event(attempts, attempt)
        };
        Case { what, delivery, event: Box::new(event) }
    };
    vec![
        with("current call", |_| {}),
        with("overtaken by a later delivery", |attempt| attempt.deliveries -= 1),
        with("of a stale job", |attempt| attempt.job = JobId::from("old")),
    ]
}

fn failures() -> Vec<Case> {
    let failed = |kind, retry_after, last: bool| {
        move |attempts: Attempts, attempt: Attempt| {
            let base = Duration::from_secs(1);
            NotificationEvent::HookFailed(AttemptFailed {
                failure: Failure { kind, message: "why".to_owned() },
                retry_after,
                max_attempts: if last { attempts.number(attempt.deliveries) } else { MAX_ATTEMPTS },
                attempt,
                retry: RetryPolicy { base, factor: 1, cap: base, jitter: Jitter::None },
                entropy: 0,
                now: NOW,
                next_job: JobId::from("new"),
            })
        }
    };
    let ten = Some(Duration::from_secs(10));
    [
        ("transient, calls left", failed(FailureKind::Transient, None, false)),
        ("transient, last call", failed(FailureKind::Transient, None, true)),
        ("permanent, calls left", failed(FailureKind::Permanent, None, false)),
        ("permanent, last call", failed(FailureKind::Permanent, None, true)),
        ("panic, calls left", failed(FailureKind::Panicked, None, false)),
        ("panic, last call", failed(FailureKind::Panicked, None, true)),
        ("timeout, calls left", failed(FailureKind::TimedOut, None, false)),
        ("timeout, last call", failed(FailureKind::TimedOut, None, true)),
        ("transient, to be retried after 10 s", failed(FailureKind::Transient, ten, false)),
        ("transient, to be retried after 0", failed(FailureKind::Transient, Some(Duration::ZERO), false)),
        ("transient, to be retried after the longest time", failed(FailureKind::Transient, Some(Duration::MAX), false)),
    ]
    .into_iter()
    .flat_map(|(what, event)| current_late_and_stale(what, event))
    .collect()
}

/// Every reason that the tables give.
pub(crate) fn reasons() -> impl Iterator<Item = Reason> {
    all().into_iter().flat_map(|case| Stage::ALL.map(|stage| case.decide(stage).reason))
}

/// The tables, one for each kind of event.
pub(crate) fn write() -> String {
    let cases = all();
    let mut text = String::new();
    for kind in Kind::ALL {
        let rows = cases.iter().filter(|case| case.kind() == kind).map(|case| Row {
            what: case.what.to_owned(),
            delivery: case.delivery,
            answers: Stage::ALL.iter().map(|&stage| (stage.name(), answer(case, stage))).collect(),
        });
        let head = ["event", "delivery", "phases", "action", "next", "reason"];
        text += &format!("\n### `NotificationEvent::{kind:?}`\n\n{}\n\n", about(kind));
        text += &table(&head, rows.collect());
    }
    text
}

fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Claimed => "The notification's job was delivered.",
        Kind::TurnCame => "The turn of a parked suspect came.",
        Kind::HookReturned => "The hook succeeded.",
        Kind::HookFailed => {
            "The hook failed, panicked or took too long. The retry policy of these rows waits 1 s, without jitter."
        }
        Kind::HandedBack => "The runtime shuts down and gives the delivery back.",
    }
}

fn answer(case: &Case, stage: Stage) -> Vec<String> {
    let (row, transition) = (stage.row(), case.decide(stage));
    let action = match transition.action {
        NotificationAction::Requeue(None) => "`Requeue` now".to_owned(),
        NotificationAction::Requeue(Some(due)) => format!("`Requeue` {}", render::time(due)),
        ref action => format!("`{action:?}`"),
    };
    let reason = format!("`{}`", reasons::name(transition.reason));
    vec![action, next(row.as_ref(), transition.next.as_ref()), reason]
}

fn next(row: Option<&Notification>, next: Option<&Notification>) -> String {
    match next {
        next if next == row => "unchanged".to_owned(),
        None => "deleted".to_owned(),
        Some(next) => {
            let due = next.due.map_or("ready".to_owned(), |due| format!("backing off until {}", render::time(due)));
            let phase = if next.dead { "dead".to_owned() } else { due };
            format!("{phase}, {}, job *{}*", render::attempts(next.attempts), next.job)
        }
    }
}

#[test]
fn every_notification_pair_that_can_be_current_answers_more_than_discard() {
    let mut answers: BTreeMap<(Kind, Stage), BTreeSet<bool>> = BTreeMap::new();
    for case in all() {
        for stage in Stage::ALL {
            let discard = case.decide(stage).action == NotificationAction::Discard;
            answers.entry((case.kind(), stage)).or_default().insert(discard);
        }
    }
    assert_eq!(answers.len(), Kind::ALL.len() * Stage::ALL.len());
    for ((kind, stage), answers) in answers {
        // Without a row nothing is owed; a dead one has no call in hand.
        let always_late = stage == Stage::NoRow || (stage == Stage::Dead && kind != Kind::Claimed);
        assert_eq!(!answers.contains(&false), always_late, "{kind:?} in phase {:?}", stage.name());
    }
}

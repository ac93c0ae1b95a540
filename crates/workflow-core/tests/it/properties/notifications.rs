//! What holds for one decision about a terminal notification, and for the calls it may have.

use proptest::option;
use proptest::prelude::*;
use workflow_core::{
    Attempts, Effect, Event, FailureKind, Notification, NotificationAction, NotificationClaimed, NotificationEvent,
    Phase, Reason, Run, decide, decide_notification,
};

use super::config;
use super::generators::{active, attempt, attempt_failed, attempts, job, number, time};

fn row() -> impl Strategy<Value = Notification> {
    (0..u64::MAX, job(), attempts(), option::of(time()), any::<bool>())
        .prop_map(|(revision, job, attempts, due, dead)| Notification { revision, job, attempts, due, dead })
}

fn claimed() -> impl Strategy<Value = NotificationClaimed> {
    (job(), number(), number(), time()).prop_map(|(job, deliveries, max_attempts, now)| NotificationClaimed {
        job,
        deliveries,
        max_attempts,
        now,
        next_job: "next".into(),
    })
}

fn event() -> impl Strategy<Value = NotificationEvent> {
    prop_oneof![
        claimed().prop_map(NotificationEvent::Claimed),
        attempt().prop_map(NotificationEvent::TurnCame),
        attempt().prop_map(NotificationEvent::HookReturned),
        attempt_failed().prop_map(NotificationEvent::HookFailed),
        attempt().prop_map(|attempt| NotificationEvent::HandedBack { attempt, next_job: "next".into() }),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_decision_is_total_deterministic_and_consistent(row in option::of(row()), event in event()) {
        let transition = decide_notification(row.as_ref(), event.clone());
        prop_assert_eq!(&decide_notification(row.as_ref(), event), &transition);
        let kept = transition.next == row;
        match (&row, &transition.next) {
            (None, next) => prop_assert!(next.is_none() && transition.action == NotificationAction::Discard),
            (Some(_), None) => prop_assert_eq!(&transition.action, &NotificationAction::Apply, "deleted unapplied"),
            (Some(row), Some(next)) => prop_assert_eq!(next.revision, row.revision + u64::from(!kept)),
        }
        prop_assert!(transition.action != NotificationAction::Discard || kept);
        prop_assert_eq!(transition.reason == Reason::HookReturned, transition.action == NotificationAction::Apply);
        if let (NotificationAction::Requeue(due), Some(next)) = (&transition.action, &transition.next) {
            prop_assert_eq!(&next.due, due);
            prop_assert_eq!(next.job.as_str(), "next");
        }
    }

    #[test]
    fn a_dead_row_is_changed_by_an_operator_only(row in row(), event in event()) {
        let dead = Notification { dead: true, ..row };
        let put_back = matches!(&event, NotificationEvent::Claimed(event)
            if event.job == dead.job && event.deliveries <= dead.attempts.base);
        let transition = decide_notification(Some(&dead), event);
        prop_assert_eq!(transition.next == Some(dead), !put_back);
    }

    #[test]
    fn a_claim_calls_the_hook_within_its_limit_when_it_is_due(row in row(), event in claimed()) {
        let mut row = Notification { dead: false, ..row };
        row.attempts.lost %= 3;
        let deliveries = event.deliveries.max(row.attempts.base.saturating_add(1));
        let event = NotificationClaimed { job: row.job.clone(), deliveries, ..event };
        let transition = decide_notification(Some(&row), NotificationEvent::Claimed(event.clone()));
        if transition.action == NotificationAction::Execute {
            let next = transition.next.expect("a called hook keeps its row");
            prop_assert!((1..=event.max_attempts).contains(&next.attempts.number(event.deliveries)));
            prop_assert!(row.due.is_none_or(|due| due <= event.now));
            prop_assert!(!next.attempts.parked);
        }
    }

    #[test]
    fn a_failed_call_is_followed_by_what_follows_a_failed_attempt(mut run in active(), mut failed in attempt_failed()) {
        run.attempts.base = run.attempts.base.min(u32::MAX - 1);
        // What only a step has.
        run.cancel = None;
        run.paused = false;
        run.phase = Phase::Ready;
        failed.attempt.incarnation = run.incarnation;
        failed.attempt.step = run.step;
        failed.attempt.job = run.job.clone();
        failed.attempt.deliveries = run.attempts.base + 1;
        let row = Notification { attempts: run.attempts, ..Notification::new(run.job.clone()) };
        let of_hook = decide_notification(Some(&row), NotificationEvent::HookFailed(failed.clone()));
        let of_step = decide(&Run::Active(run), Event::StepFailed(failed));
        prop_assert_eq!(of_hook.reason, of_step.reason);
        let row = of_hook.next.expect("a failed call keeps its row");
        match of_step.next {
            Run::Active(next) => {
                prop_assert_eq!((row.dead, &row.job, row.attempts), (false, &next.job, next.attempts));
                let job = next.job;
                prop_assert_eq!(of_step.effects, [Effect::EnqueueStep { job, due: row.due }]);
            }
            Run::Ended(_) | Run::Absent => prop_assert!(row.dead),
        }
    }

    /// Its deliveries rise after a crash. An operator's requeue starts them anew.
    #[test]
    fn a_dead_letter_is_settled_again_after_a_crash_and_called_again_on_request(
        row in row(), mut failed in attempt_failed(), crashes in 1..9_u32,
    ) {
        let mut row = Notification { dead: false, ..row };
        row.revision /= 2;
        row.attempts.base %= 1_000;
        failed.failure.kind = FailureKind::Permanent;
        failed.attempt.job = row.job.clone();
        failed.attempt.deliveries = row.attempts.base + 1;
        let last = failed.attempt.deliveries;
        let claim = |deliveries| {
            let (job, now, next_job) = (row.job.clone(), failed.now, failed.next_job.clone());
            NotificationEvent::Claimed(NotificationClaimed { job, deliveries, max_attempts: 2, now, next_job })
        };
        let dead = decide_notification(Some(&row), NotificationEvent::HookFailed(failed.clone()));
        prop_assert_eq!(&dead.action, &NotificationAction::DeadLetter);
        for crash in 1..=crashes {
            let settled = decide_notification(dead.next.as_ref(), claim(last + crash));
            prop_assert_eq!((&settled.next, &settled.action), (&dead.next, &dead.action), "a crash");
            prop_assert_eq!(settled.reason, Reason::EndedAsDeadLetter);
        }
        let again = decide_notification(dead.next.as_ref(), claim(1));
        prop_assert_eq!(&again.action, &NotificationAction::Execute);
        let called = again.next.as_ref().expect("a called hook keeps its row");
        prop_assert!(!called.dead && called.due.is_none());
        prop_assert_eq!(called.attempts, Attempts::default(), "all its attempts");
        let lost = decide_notification(again.next.as_ref(), claim(2));
        prop_assert_eq!(lost.action, NotificationAction::Execute, "it is a call like any other");
        prop_assert_eq!(lost.next.expect("a called hook keeps its row").attempts.number(2), 2);
    }
}

//! The state machine of one terminal notification: the hook is called until it succeeds or its attempts are used up.
//!
//! A notification's row is put by the commit that ends the run and deleted by the commit that applies the hook's
//! effects. Without a row there is nothing to tell.

use crate::failure::AfterFailure;
use crate::{Attempt, AttemptFailed, Attempts, ClaimVerdict, JobId, Reason, Timestamp};

/// A terminal hook call that is owed, as its row tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// One more in every commit that writes the row.
    pub revision: u64,
    /// The queue job whose deliveries call the hook.
    pub job: JobId,
    /// The calls so far.
    pub attempts: Attempts,
    /// Not before this: the end of the pause after a failed call.
    pub due: Option<Timestamp>,
    /// Given up after its last attempt. A job requeued by an operator calls the hook again.
    pub dead: bool,
}

impl Notification {
    /// A notification that is due at once, rung by `job`.
    pub fn new(job: JobId) -> Self {
        Self { revision: 1, job, attempts: Attempts::default(), due: None, dead: false }
    }
}

/// One thing that happened to a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationEvent {
    /// Its job was delivered.
    Claimed(NotificationClaimed),
    /// A parked suspect's turn came.
    TurnCame(Attempt),
    /// The hook succeeded.
    HookReturned(Attempt),
    /// The hook failed, panicked or took too long.
    HookFailed(AttemptFailed),
    /// The runtime shuts down and gives the delivery back.
    HandedBack {
        /// The call that was broken off. It is not counted.
        attempt: Attempt,
        /// The job of the next call. Reserved by the queue.
        next_job: JobId,
    },
}

/// See [`NotificationEvent::Claimed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationClaimed {
    /// The job.
    pub job: JobId,
    /// How often the job has been delivered, this time included.
    pub deliveries: u32,
    /// The calls that the hook may have.
    pub max_attempts: u32,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job to enqueue, should this delivery be early. Reserved by the queue.
    pub next_job: JobId,
}

/// What is to be done with a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationTransition {
    /// The row to write, in the commit that expects the row this was decided on; `None` deletes it.
    pub next: Option<Notification>,
    /// What becomes of the delivery, after the commit.
    pub action: NotificationAction,
    /// Why.
    pub reason: Reason,
}

/// What becomes of a notification's delivery, once the transition is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationAction {
    /// Call the hook.
    Execute,
    /// Keep the delivery and wait for the turn of this suspect.
    Park,
    /// The row's commit enqueues the row's job at this time, if any; then the delivery is done with.
    Requeue(Option<Timestamp>),
    /// The row's commit applies the hook's effects; then the delivery is done with.
    Apply,
    /// The delivery's job goes to the dead letters.
    DeadLetter,
    /// The delivery means nothing any more: nothing is written, and it is done with.
    Discard,
}

/// Decides what `event` does to `row`: total and deterministic, as [`decide`](crate::decide) is.
pub fn decide_notification(row: Option<&Notification>, event: NotificationEvent) -> NotificationTransition {
    let Some(row) = row else {
        return keep(None, NotificationAction::Discard, Reason::NothingOwed);
    };
    match event {
        NotificationEvent::Claimed(event) => claimed(row, event),
        NotificationEvent::TurnCame(attempt) => guarded(row, &attempt, || {
            let attempts = Attempts { parked: false, ..row.attempts };
            recounted(row, attempts, NotificationAction::Execute, Reason::StartedAfterLoss)
        }),
        NotificationEvent::HookReturned(attempt) => guarded(row, &attempt, || NotificationTransition {
            next: None,
            action: NotificationAction::Apply,
            reason: Reason::HookReturned,
        }),
        NotificationEvent::HookFailed(event) => guarded(row, &event.attempt, || failed(row, &event)),
        NotificationEvent::HandedBack { attempt, next_job } => guarded(row, &attempt, || {
            requeued(row, next_job.clone(), row.attempts.replaced(attempt.deliveries), row.due, Reason::HandedBack)
        }),
    }
}

fn claimed(row: &Notification, event: NotificationClaimed) -> NotificationTransition {
    if row.job != event.job {
        return keep(Some(row), NotificationAction::Discard, Reason::StaleDoorbell);
    }
    if row.dead {
        return redelivered_dead(row, event.deliveries);
    }
    if row.attempts.is_late(event.deliveries) {
        return keep(Some(row), NotificationAction::Discard, Reason::LateAttempt);
    }
    if row.due.is_some_and(|due| due > event.now) {
        return requeued(row, event.next_job, row.attempts.replaced(event.deliveries), row.due, Reason::RangEarly);
    }
    match row.attempts.claim(event.deliveries, event.max_attempts) {
        ClaimVerdict::Late => keep(Some(row), NotificationAction::Discard, Reason::LateAttempt),
        ClaimVerdict::Exhausted => dead(row, event.deliveries, Reason::AttemptsLost),
        ClaimVerdict::Park(attempts) => recounted(row, attempts, NotificationAction::Park, Reason::Suspected),
        ClaimVerdict::Start(attempts) => {
            let reason = if attempts == row.attempts { Reason::Started } else { Reason::StartedAfterLoss };
            recounted(row, attempts, NotificationAction::Execute, reason)
        }
    }
}

fn failed(row: &Notification, event: &AttemptFailed) -> NotificationTransition {
    match event.follow_up(&row.attempts) {
        AfterFailure::GiveUp(reason) => dead(row, event.attempt.deliveries, reason),
        AfterFailure::Retry { attempts, until } => {
            let due = (until > event.now).then_some(until);
            requeued(row, event.next_job.clone(), attempts, due, Reason::Retrying)
        }
    }
}

/// A later delivery of the same life means that a crash lost the settlement. Otherwise an operator put the job back,
/// which starts its deliveries anew: so do the attempts.
fn redelivered_dead(row: &Notification, deliveries: u32) -> NotificationTransition {
    if deliveries > row.attempts.base {
        return keep(Some(row), NotificationAction::DeadLetter, Reason::EndedAsDeadLetter);
    }
    let next = revised(row, |next| {
        next.dead = false;
        next.due = None;
        next.attempts = Attempts::next_step_in(deliveries);
    });
    NotificationTransition { next: Some(next), action: NotificationAction::Execute, reason: Reason::PutBack }
}

fn dead(row: &Notification, deliveries: u32, reason: Reason) -> NotificationTransition {
    let next = revised(row, |next| {
        next.dead = true;
        next.attempts.base = deliveries;
    });
    NotificationTransition { next: Some(next), action: NotificationAction::DeadLetter, reason }
}

fn requeued(
    row: &Notification,
    job: JobId,
    attempts: Attempts,
    due: Option<Timestamp>,
    reason: Reason,
) -> NotificationTransition {
    let next = revised(row, |next| {
        next.job = job;
        next.due = due;
        next.attempts = attempts;
    });
    NotificationTransition { next: Some(next), action: NotificationAction::Requeue(due), reason }
}

fn recounted(
    row: &Notification,
    attempts: Attempts,
    action: NotificationAction,
    reason: Reason,
) -> NotificationTransition {
    if attempts == row.attempts {
        return keep(Some(row), action, reason);
    }
    NotificationTransition { next: Some(revised(row, |next| next.attempts = attempts)), action, reason }
}

/// `decision`, unless another delivery or job has overtaken `attempt`, or the last call is over.
fn guarded(
    row: &Notification,
    attempt: &Attempt,
    decision: impl FnOnce() -> NotificationTransition,
) -> NotificationTransition {
    let discard = |reason| keep(Some(row), NotificationAction::Discard, reason);
    if row.job != attempt.job {
        discard(Reason::StaleDoorbell)
    } else if row.dead {
        discard(Reason::AlreadyDead)
    } else if row.attempts.is_late(attempt.deliveries) {
        discard(Reason::LateAttempt)
    } else {
        decision()
    }
}

fn revised(row: &Notification, change: impl FnOnce(&mut Notification)) -> Notification {
    let mut next = row.clone();
    next.revision = next.revision.saturating_add(1);
    change(&mut next);
    next
}

fn keep(row: Option<&Notification>, action: NotificationAction, reason: Reason) -> NotificationTransition {
    NotificationTransition { next: row.cloned(), action, reason }
}

//! A failed attempt of a step or hook, and what follows from it: the same for both.

use std::time::Duration;

use crate::{Attempt, Attempts, JobId, Reason, RetryPolicy, Timestamp};

/// See [`Event::StepFailed`](crate::Event::StepFailed) and
/// [`NotificationEvent::HookFailed`](crate::NotificationEvent::HookFailed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailed {
    /// The attempt that failed.
    pub attempt: Attempt,
    /// What went wrong.
    pub failure: Failure,
    /// The wait that the user's code asked for, instead of the policy's.
    pub retry_after: Option<Duration>,
    /// The attempts that the step or hook may use. A step's never change within an incarnation; a hook's are a setting
    /// of the process.
    pub max_attempts: u32,
    /// How long to wait before the next attempt.
    pub retry: RetryPolicy,
    /// Random bits for the jitter.
    pub entropy: u64,
    /// The time. Only moves on.
    pub now: Timestamp,
    /// The job of the next attempt. Reserved by the queue.
    pub next_job: JobId,
}

/// An attempt that ended without an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whether another attempt may help, and what happened.
    pub kind: FailureKind,
    /// The message, already cut to its limit.
    pub message: String,
}

/// The ways in which an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The user's code says that another attempt may succeed.
    Transient,
    /// The user's code says that no attempt will succeed.
    Permanent,
    /// The user's code panicked. Another attempt may succeed.
    Panicked,
    /// The attempt took longer than its timeout. Another attempt may succeed.
    TimedOut,
}

/// What follows from a failed attempt.
pub(crate) enum AfterFailure {
    /// No other attempt, for this reason.
    GiveUp(Reason),
    /// Another attempt, under the next job.
    Retry {
        /// The counters, with the failed attempt over.
        attempts: Attempts,
        /// Not before this.
        until: Timestamp,
    },
}

impl AttemptFailed {
    /// Decides what follows for a step or hook with the counters `attempts`.
    pub(crate) fn follow_up(&self, attempts: &Attempts) -> AfterFailure {
        match self.failure.kind {
            FailureKind::Permanent => AfterFailure::GiveUp(Reason::FailedPermanently),
            FailureKind::Transient | FailureKind::Panicked | FailureKind::TimedOut => {
                let number = attempts.number(self.attempt.deliveries);
                if number >= self.max_attempts {
                    return AfterFailure::GiveUp(Reason::AttemptsExhausted);
                }
                let delay = self.retry_after.unwrap_or_else(|| self.retry.delay(number, self.entropy));
                AfterFailure::Retry { attempts: attempts.carried_to_new_job(number), until: self.now.after(delay) }
            }
        }
    }
}

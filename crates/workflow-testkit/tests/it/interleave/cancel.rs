//! Cancellations against whatever else ends or moves a run: every answer is so, and a run ends once.

use std::sync::Arc;
use std::time::Duration;

use workflow_runtime::port::JobState;
use workflow_runtime::{CancelOutcome, Error, RunOutcome, SignalOutcome, StepError, StepOutcome, TerminalStatus};
use workflow_testkit::{Actor, Turns};

use super::races::told;
use super::signals::{buffered, runtime, sends, waiting, with_a_loop, without_a_loop, work, world};
use crate::scripted::{RUN, Scripted, World, submit};

const NEVER: Duration = Duration::MAX;
const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn cancels(world: &World, turns: &Turns, reason: &'static str) -> Actor<CancelOutcome> {
    let name = format!("cancel {reason}");
    let canceller = runtime(world, turns, &name);
    turns.actor(&name, async move { canceller.cancel(RUN, Some(reason.to_owned())).await.unwrap() })
}

/// Lets a cancellation meet a loop, which works on the run until it has ended. The answer is true, the run has ended
/// once, and what it leaves is its record.
fn check_against_the_loop(prepare: impl AsyncPrepare) {
    told(with_a_loop().run(move |turns| {
        let prepare = prepare.clone();
        async move {
            let world = prepare.world(&turns).await;
            let answer = cancels(&world, &turns, "enough");
            let worker = runtime(&world, &turns, "loop");
            let ends = turns.actor("wait", async move { work(worker, &[RUN]).await });
            turns.race().await;
            check_end(&world, answer.output(), &ends.output()[0]).await;
        }
    }));
}

/// Makes the world of one order.
trait AsyncPrepare: Clone + Send + Sync + 'static {
    fn world(&self, turns: &Turns) -> impl Future<Output = World> + Send;
}

impl<F: Fn() -> Scripted + Clone + Send + Sync + 'static> AsyncPrepare for F {
    async fn world(&self, turns: &Turns) -> World {
        let world = world(turns, self());
        submit(&world.runtime(), RUN).await;
        world
    }
}

/// A run whose wait is over as soon as somebody looks.
#[derive(Clone)]
struct TimedOut;

impl AsyncPrepare for TimedOut {
    async fn world(&self, turns: &Turns) -> World {
        let world = waiting(turns, &["a", "b"], MINUTE).await;
        tokio::time::sleep(MINUTE).await;
        world
    }
}

pub(super) async fn check_end(world: &World, answer: CancelOutcome, end: &RunOutcome) {
    match answer {
        CancelOutcome::Ended | CancelOutcome::Requested => {
            assert_eq!((end.status, end.error.as_deref()), (TerminalStatus::Cancelled, Some("enough")));
        }
        CancelOutcome::AlreadyEnded(told) => {
            assert_eq!(told, *end);
            assert_ne!(end.status, TerminalStatus::Cancelled);
        }
        other => panic!("{other:?}"),
    }
    let staged = world.disk.entries().iter().filter(|(key, _)| key.starts_with(b"committed/")).count();
    let steps = match end.status {
        TerminalStatus::Cancelled => end.final_step,
        _ => end.final_step + 1,
    };
    assert!(staged == 0 || staged == steps as usize, "{staged} steps have committed, and {steps} should");
    assert_eq!(world.rows("signal"), 0);
    let jobs = world.disk.jobs();
    assert!(jobs.iter().all(|(_, job)| job.state != JobState::Claimed), "{jobs:?}");
    assert_eq!(world.runtime().run_end(RUN).await.unwrap().as_ref(), Some(end));
}

/// A runner whose steps stage a mark each, and end with this.
pub(super) fn marks(steps: u32, last: fn() -> Result<StepOutcome, StepError>) -> Scripted {
    Scripted::new(move |step| async move {
        step.effects.put(format!("committed/{}", step.step_number), "")?;
        if step.step_number + 1 < steps { Ok(StepOutcome::continue_now(Vec::new())) } else { last() }
    })
}

pub(super) fn succeed() -> Result<StepOutcome, StepError> {
    Ok(StepOutcome::Succeed { result: b"done".to_vec() })
}

#[test]
fn a_cancellation_meets_the_settlement() {
    check_against_the_loop(|| marks(1, succeed));
}

#[test]
fn a_cancellation_meets_steps_that_follow_inline() {
    check_against_the_loop(|| marks(3, succeed));
}

#[test]
fn a_cancellation_meets_a_step_that_fails() {
    check_against_the_loop(|| marks(1, || Err(StepError::permanent("no"))));
}

#[test]
fn a_cancellation_meets_the_registration_of_a_waiter() {
    check_against_the_loop(|| {
        Scripted::new(|step| async move {
            Ok(match step.step_number {
                0 => StepOutcome::continue_on_any_signal(Vec::new(), ["a", "b"], Duration::from_secs(5)),
                _ => StepOutcome::Succeed { result: Vec::new() },
            })
        })
    });
}

#[test]
fn a_cancellation_meets_a_timeout() {
    check_against_the_loop(TimedOut);
}

#[test]
fn a_cancellation_and_a_signal_meet_at_a_wait() {
    told(without_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["a", "b"], MINUTE).await;
        let (answer, sent) = (cancels(&world, &turns, "enough"), sends(&world, &turns, "b", "x"));
        turns.race().await;
        assert_eq!(answer.output(), CancelOutcome::Ended);
        let kept: &[&str] = match sent.output() {
            SignalOutcome::Delivered => &[],
            SignalOutcome::Buffered => &["x"],
            other => panic!("{other:?}"),
        };
        assert_eq!(buffered(&world, "b").await, kept);
        assert_eq!(world.rows("signal"), kept.len());
        let end = world.runtime().run_end(RUN).await.unwrap().unwrap();
        assert_eq!((end.status, end.error.as_deref()), (TerminalStatus::Cancelled, Some("enough")));
        // Whatever is left in the queue means nothing.
        let running = world.runtime().spawn(std::future::pending());
        tokio::time::sleep(Duration::from_secs(5)).await;
        running.shutdown().await.unwrap();
        assert_eq!((world.disk.jobs().len(), world.runner.seen().len()), (0, 1));
    }));
}

#[test]
fn a_cancellation_and_a_submission_meet() {
    told(without_a_loop().run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["k"], NEVER));
        let answer = cancels(&world, &turns, "enough");
        let submitter = runtime(&world, &turns, "submit");
        let submitted = turns.actor("submit", async move { submit(&submitter, RUN).await });
        turns.race().await;
        assert!(submitted.output().newly_submitted);
        let end = world.runtime().run_end(RUN).await.unwrap();
        match answer.output() {
            CancelOutcome::NotFound => assert_eq!(end, None),
            CancelOutcome::Ended => assert_eq!(end.unwrap().status, TerminalStatus::Cancelled),
            other => panic!("{other:?}"),
        }
    }));
}

#[test]
fn two_cancellations_meet_and_the_first_reason_stays() {
    told(without_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["k"], NEVER).await;
        let answers = ["one", "other"].map(|reason| (reason, cancels(&world, &turns, reason)));
        turns.race().await;
        let end = world.runtime().run_end(RUN).await.unwrap().unwrap();
        let mut ended = 0;
        for (reason, answer) in answers {
            match answer.output() {
                CancelOutcome::Ended => {
                    assert_eq!(end.error.as_deref(), Some(reason));
                    ended += 1;
                }
                CancelOutcome::AlreadyEnded(told) => assert_eq!(told, end),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ended, 1);
    }));
}

#[test]
fn no_cancellation_is_answered_that_a_crash_undoes() {
    told(with_a_loop().run(|turns| async move {
        let mut world = world(&turns, marks(2, succeed));
        submit(&world.runtime(), RUN).await;
        let canceller = runtime(&world, &turns, "cancel");
        let answer = turns.actor("cancel", async move { canceller.cancel(RUN, Some("enough".to_owned())).await });
        let running = runtime(&world, &turns, "loop").spawn(std::future::pending());
        let (points, disk) = (turns.clone(), world.disk.clone());
        let crash = turns.actor("crash", async move {
            points.point("another process takes over").await;
            disk.open()
        });
        turns.race().await;
        assert!(running.wait().await.is_err_and(|error: Error| error.is_closed()));
        world.queue = crash.output();
        let calls = world.runner.seen().len();
        let end = &work(world.runtime(), &[RUN]).await[0];
        match answer.output() {
            Ok(answer) => {
                if !matches!(answer, CancelOutcome::AlreadyEnded(_)) {
                    assert_eq!(world.runner.seen().len(), calls, "a step starts after the answer");
                }
                check_end(&world, answer, end).await;
            }
            Err(error) => assert!(error.is_closed(), "{error}"),
        }
    }));
}

/// The answer of one is lost for good, while another cancels as well: nobody is told what is not so.
#[test]
fn a_cancellation_whose_commit_was_lost_is_told_the_truth() {
    use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, When};
    told(without_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["k"], NEVER).await;
        let plan = Plan::of(PortCalls::Commit, When::Nth(1), PortFault::Fails);
        let lossy = FaultyPort::new(Arc::new(world.queue.clone()), plan);
        let unlucky = world.over(turns.port("unlucky", Arc::new(lossy)));
        let answer =
            turns.actor("unlucky", async move { unlucky.cancel(RUN, Some("enough".to_owned())).await.unwrap() });
        let other = cancels(&world, &turns, "other");
        turns.race().await;
        let end = world.runtime().run_end(RUN).await.unwrap().unwrap();
        match (answer.output(), other.output()) {
            (CancelOutcome::Ended, CancelOutcome::AlreadyEnded(told)) => {
                assert_eq!((told.error.as_deref(), &told), (Some("enough"), &end));
            }
            (CancelOutcome::AlreadyEnded(told), CancelOutcome::Ended) => {
                assert_eq!((told.error.as_deref(), &told), (Some("other"), &end));
            }
            other => panic!("{other:?}"),
        }
    }));
}

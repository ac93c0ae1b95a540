//! Redrives against each other, against cancellations and against an operator's own means: one brings the run back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workflow_runtime::port::{JobId, JobState};
use workflow_runtime::{
    CancelOutcome, RedriveOptions, RedriveOutcome, RunState, SignalOutcome, StepError, StepOutcome, TerminalStatus,
};
use workflow_testkit::{Actor, Turns};

use super::cancel::cancels;
use super::left::{about_the_run, check_forgotten};
use super::races::told;
use super::signals::{runtime, waiting, without_a_loop, work, world};
use crate::scripted::{RUN, Scripted, World, submit};

const NEVER: Duration = Duration::MAX;

fn redrives(world: &World, turns: &Turns, payload: &'static str) -> Actor<RedriveOutcome> {
    let name = format!("redrive {payload}");
    let redriver = runtime(world, turns, &name);
    let options = RedriveOptions { payload: Some(payload.into()), ..RedriveOptions::default() };
    turns.actor(&name, async move { redriver.redrive(RUN, options).await.unwrap() })
}

/// Fails at its first call and succeeds with its payload at the next.
fn fails_once() -> Scripted {
    let calls = Arc::new(AtomicU32::new(0));
    Scripted::new(move |step| {
        let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            match is_first {
                true => Err(StepError::permanent("no")),
                false => Ok(StepOutcome::Succeed { result: step.payload }),
            }
        }
    })
}

/// A world whose run has failed and left its job among the dead, and that job.
async fn failed(turns: &Turns) -> (World, JobId) {
    let world = world(turns, fails_once()).with(|s| s.repair = false);
    submit(&world.runtime(), RUN).await;
    assert_eq!(work(world.runtime(), &[RUN]).await[0].status, TerminalStatus::Failed);
    let (job, dead) = world.disk.jobs().remove(0);
    assert_eq!(dead.state, JobState::Dead);
    (world, job)
}

/// The run ends well, was brought back once, and leaves nothing.
async fn check_brought_back_once(world: &World) -> Vec<u8> {
    let end = work(world.runtime(), &[RUN]).await.remove(0);
    assert_eq!((end.status, world.runner.seen().len()), (TerminalStatus::Succeeded, 2));
    let status = world.runtime().status(RUN).await.unwrap().unwrap();
    assert_eq!(status.redrives, 1);
    check_forgotten(world).await;
    end.result.unwrap()
}

#[test]
fn of_two_redrives_one_brings_the_run_back() {
    told(without_a_loop().run(|turns| async move {
        let (world, _) = failed(&turns).await;
        let redriven = ["a", "b"].map(|payload| redrives(&world, &turns, payload));
        turns.race().await;
        let expected = match redriven.map(Actor::output) {
            [RedriveOutcome::Redriven, RedriveOutcome::Active] => b"a",
            [RedriveOutcome::Active, RedriveOutcome::Redriven] => b"b",
            other => panic!("{other:?}"),
        };
        let jobs = world.disk.jobs();
        let ringing = jobs.iter().filter(|(_, job)| job.state != JobState::Dead).count();
        assert_eq!(ringing, 1, "{jobs:?}");
        assert_eq!(check_brought_back_once(&world).await, expected);
    }));
}

#[test]
fn a_redrive_and_an_operator_who_puts_the_job_back_bring_the_run_back_once() {
    told(about_the_run().run(|turns| async move {
        let (world, job) = failed(&turns).await;
        let redriven = redrives(&world, &turns, "a");
        let (points, disk) = (turns.clone(), world.disk.clone());
        turns.actor("operator", async move {
            points.point("the dead job is put back").await;
            disk.requeue_dead_job(&job)
        });
        let worker = runtime(&world, &turns, "loop");
        turns.actor("wait", async move {
            let running = worker.spawn(std::future::pending());
            tokio::time::sleep(Duration::from_secs(2)).await;
            running.shutdown().await.unwrap();
        });
        turns.race().await;
        let result = check_brought_back_once(&world).await;
        match redriven.output() {
            RedriveOutcome::Redriven => assert_eq!(result, b"a"),
            RedriveOutcome::Active => assert_eq!(result, b"in"),
            RedriveOutcome::Succeeded(end) => {
                assert_eq!((end.result.as_ref(), &result[..]), (Some(&result), &b"in"[..]));
            }
            other => panic!("{other:?}"),
        }
    }));
}

#[test]
fn a_redrive_and_a_cancellation_meet() {
    told(without_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["k", "l"], NEVER).await;
        world.runtime().cancel(RUN, Some("first".to_owned())).await.unwrap();
        let redriver = runtime(&world, &turns, "redrive");
        let redriven =
            turns.actor("redrive", async move { redriver.redrive(RUN, RedriveOptions::default()).await.unwrap() });
        let cancelled = cancels(&world, &turns, "second");
        turns.race().await;
        assert_eq!(redriven.output(), RedriveOutcome::Redriven);
        let status = world.runtime().status(RUN).await.unwrap().unwrap();
        match cancelled.output() {
            CancelOutcome::AlreadyEnded(end) => {
                assert_eq!((end.error.as_deref(), status.state), (Some("first"), RunState::Waiting));
                assert_eq!(world.rows("signal"), 2);
                assert_eq!(world.runtime().signal("l", b"x".to_vec()).await.unwrap(), SignalOutcome::Delivered);
                assert_eq!(work(world.runtime(), &[RUN]).await[0].result.as_deref(), Some(&b"l=x"[..]));
            }
            CancelOutcome::Ended => {
                let end = world.runtime().run_end(RUN).await.unwrap().unwrap();
                assert_eq!((end.error.as_deref(), status.state), (Some("second"), RunState::Cancelled));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((status.redrives, world.rows("signal-item")), (1, 0));
        check_forgotten(&world).await;
    }));
}

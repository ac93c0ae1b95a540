//! Resumptions against each other, against pauses and against deliveries that are held back: the run goes on, once.

use std::future::pending;
use std::time::Duration;

use workflow_runtime::port::JobState;
use workflow_runtime::{PauseOutcome, ResumeOutcome, RunState, TerminalStatus};
use workflow_testkit::{Actor, Turns};

use super::cancel::{cancels, check_end, marks, succeed};
use super::left::{about_the_run, check_forgotten};
use super::pauses::{ends, pauses, state, works};
use super::races::told;
use super::signals::{runtime, without_a_loop, work, world};
use crate::scripted::{RUN, World, submit};

fn resumes(world: &World, turns: &Turns, name: &str) -> Actor<ResumeOutcome> {
    let resumer = runtime(world, turns, name);
    turns.actor(name, async move { resumer.resume(RUN).await.unwrap() })
}

/// A world whose run is paused; its doorbell is still to ring, or has rung and was held back.
async fn paused(turns: &Turns, was_held_back: bool) -> World {
    let world = world(turns, marks(2, succeed)).with(|s| s.repair = false);
    submit(&world.runtime(), RUN).await;
    assert_eq!(world.runtime().pause(RUN).await.unwrap(), PauseOutcome::Paused);
    if was_held_back {
        let running = world.runtime().spawn(pending());
        tokio::time::sleep(Duration::from_secs(1)).await;
        running.shutdown().await.unwrap();
    }
    assert_eq!(world.disk.jobs().len(), usize::from(!was_held_back));
    world
}

#[test]
fn of_two_resumptions_one_lets_the_run_go_on_with_one_doorbell() {
    for was_held_back in [false, true] {
        told(without_a_loop().run(move |turns| async move {
            let world = paused(&turns, was_held_back).await;
            let resumed = ["one", "other"].map(|name| resumes(&world, &turns, name));
            turns.race().await;
            let resumed = resumed.map(Actor::output);
            assert!(resumed.contains(&ResumeOutcome::Resumed), "{resumed:?}");
            assert!(resumed.contains(&ResumeOutcome::NotPaused), "{resumed:?}");
            let jobs: Vec<_> = world.disk.jobs().into_iter().map(|(_, job)| job.state).collect();
            assert_eq!(jobs, [JobState::Waiting]);
            assert_eq!(ends(&world).await.status, TerminalStatus::Succeeded);
        }));
    }
}

#[test]
fn a_resumption_and_a_delivery_that_is_held_back_meet_and_the_run_goes_on() {
    told(about_the_run().run(|turns| async move {
        let world = paused(&turns, false).await;
        let resumed = ["one", "other"].map(|name| resumes(&world, &turns, name));
        works(&world, &turns);
        turns.race().await;
        let resumed = resumed.map(Actor::output);
        let count = resumed.iter().filter(|answer| **answer == ResumeOutcome::Resumed).count();
        assert_eq!((count, state(&world).await), (1, RunState::Succeeded), "{resumed:?}");
        assert_eq!(ends(&world).await.status, TerminalStatus::Succeeded);
    }));
}

#[test]
fn a_resumption_and_a_pause_meet_and_the_later_one_counts() {
    for is_paused in [false, true] {
        told(about_the_run().run(move |turns| async move {
            let world = match is_paused {
                true => paused(&turns, false).await,
                false => {
                    let world = world(&turns, marks(2, succeed)).with(|s| s.repair = false);
                    submit(&world.runtime(), RUN).await;
                    world
                }
            };
            let (paused, resumed) = (pauses(&world, &turns), resumes(&world, &turns, "resume"));
            works(&world, &turns);
            turns.race().await;
            let (paused, _) = paused.output();
            match (state(&world).await, resumed.output()) {
                // Paused later, or a second time, or not at all.
                (RunState::Succeeded, ResumeOutcome::Resumed | ResumeOutcome::NotPaused) => {}
                (RunState::Succeeded, ResumeOutcome::AlreadyEnded(_)) => assert!(!is_paused),
                (RunState::Paused, ResumeOutcome::NotPaused) => assert!(!is_paused, "{paused:?}"),
                (RunState::Paused, ResumeOutcome::Resumed) => assert_ne!(paused, PauseOutcome::NotFound),
                other => panic!("{other:?}, {paused:?}"),
            }
            assert_eq!(ends(&world).await.status, TerminalStatus::Succeeded);
        }));
    }
}

#[test]
fn a_resumption_and_a_cancellation_meet_and_the_run_ends() {
    for was_held_back in [false, true] {
        told(about_the_run().run(move |turns| async move {
            let world = paused(&turns, was_held_back).await;
            let (resumed, cancelled) = (resumes(&world, &turns, "resume"), cancels(&world, &turns, "enough"));
            let worker = runtime(&world, &turns, "loop");
            let ends = turns.actor("wait", async move { work(worker, &[RUN]).await });
            turns.race().await;
            check_end(&world, cancelled.output(), &ends.output()[0]).await;
            assert_ne!(resumed.output(), ResumeOutcome::NotFound);
            check_forgotten(&world).await;
        }));
    }
}

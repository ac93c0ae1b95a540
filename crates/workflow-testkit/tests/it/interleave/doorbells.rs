//! Looking for missing doorbells, against commits that replace them and operators who remove them: none rings twice,
//! and none is missed for good.

use std::time::Duration;

use workflow_runtime::TerminalStatus;
use workflow_testkit::{Interleaver, Moment, Operation, Turns};

use super::cancel::{marks, succeed};
use super::left::check_forgotten;
use super::pauses::works;
use super::races::told;
use super::signals::{runtime, work, world};
use crate::scripted::{RUN, Scripted, World, submit};

/// Races in which it matters when runs that go on are looked for.
fn about_doorbells() -> Interleaver {
    Interleaver::new().exhaustive_up_to(45).samples(20).seed(7).pass(|call| {
        let is_told = call.moment == Moment::Answered && call.operation != Operation::Commit;
        let is_sought = call.operation == Operation::Scan && call.subject != "listed/active";
        is_told || is_sought || call.subject.ends_with(".notifications")
    })
}

/// A world with a run of three steps, each of which has a doorbell of its own.
async fn rung_for_each_step(turns: &Turns) -> World {
    let world = world(turns, marks(3, succeed)).with(|s| s.inline_steps = 0);
    submit(&world.runtime(), RUN).await;
    world
}

fn begun(world: &World) -> Vec<(u32, u32)> {
    world.runner.seen().into_iter().map(|seen| (seen.step, seen.attempt)).collect()
}

/// The run has ended as it would have without anybody's interference, and leaves nothing.
async fn check_end(world: &World) {
    let end = world.runtime().run_end(RUN).await.unwrap().unwrap();
    assert_eq!((end.status, end.final_step), (TerminalStatus::Succeeded, 2));
    check_forgotten(world).await;
    assert_eq!(world.disk.entries().len(), 3, "each step has committed once");
}

#[test]
fn no_doorbell_rings_again_that_a_commit_replaces() {
    told(about_doorbells().run(|turns| async move {
        let world = rung_for_each_step(&turns).await;
        for (wait, name) in [("wait 1", "loop 1"), ("wait 2", "loop 2")] {
            let worker = runtime(&world, &turns, name);
            turns.actor(wait, async move { work(worker, &[RUN]).await });
        }
        turns.race().await;
        assert_eq!(begun(&world), [(0, 1), (1, 1), (2, 1)]);
        check_end(&world).await;
    }));
}

#[test]
fn of_two_that_miss_a_doorbell_one_rings_it_again() {
    told(about_doorbells().run(|turns| async move {
        let world = rung_for_each_step(&turns).await;
        let job = world.disk.jobs().remove(0).0;
        assert!(world.disk.remove_job(&job));
        for (wait, name) in [("wait 1", "loop 1"), ("wait 2", "loop 2")] {
            let worker = runtime(&world, &turns, name);
            turns.actor(wait, async move { work(worker, &[RUN]).await });
        }
        turns.race().await;
        assert_eq!(begun(&world), [(0, 1), (1, 1), (2, 1)]);
        check_end(&world).await;
    }));
}

#[test]
fn a_doorbell_that_an_operator_removes_at_any_time_rings_again() {
    told(about_doorbells().run(|turns| async move {
        let world = rung_for_each_step(&turns).await;
        works(&world, &turns);
        let (points, disk) = (turns.clone(), world.disk.clone());
        turns.actor("operator", async move {
            points.point("every job is removed").await;
            for (job, _) in disk.jobs() {
                disk.remove_job(&job);
            }
        });
        turns.race().await;
        // It may have come after the look of that loop.
        work(world.runtime(), &[RUN]).await;
        assert!(begun(&world).len() <= 4, "{:?}", begun(&world));
        check_end(&world).await;
    }));
}

/// One that is still to ring does so at its time.
#[test]
fn a_timer_that_an_operator_removes_at_any_time_rings_again_at_its_time() {
    told(about_doorbells().run(|turns| async move {
        let script = Scripted::waits_for(&["k"], Duration::from_secs(1));
        let world = world(&turns, script);
        submit(&world.runtime(), RUN).await;
        works(&world, &turns);
        let (points, disk) = (turns.clone(), world.disk.clone());
        turns.actor("operator", async move {
            points.point("every job is removed").await;
            for (job, _) in disk.jobs() {
                disk.remove_job(&job);
            }
        });
        turns.race().await;
        let end = work(world.runtime(), &[RUN]).await.remove(0);
        assert_eq!(end.result.as_deref(), Some(&b"-"[..]));
        assert_eq!(world.rows("signal"), 0);
        check_forgotten(&world).await;
    }));
}

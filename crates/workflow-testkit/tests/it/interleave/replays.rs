//! Outcomes that are written down, and then the lease is lost: one delivery applies them, and the runner is not called
//! again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workflow_effects::KeySpace;
use workflow_runtime::{RunOutcome, StepOutcome, TerminalStatus};
use workflow_testkit::Turns;

use super::left::{about_the_run, check_forgotten};
use super::races::told;
use super::signals::{buffered, runtime, work, world};
use crate::scripted::{RUN, Scripted, World, submit, text_of};

/// More than a record holds.
const LARGE: usize = 100_000;

/// The key of the outcome that is written down of the only run.
fn outcome_key(world: &World) -> Vec<u8> {
    let keys = KeySpace::new(&world.settings.queue_name);
    let entries = world.disk.entries();
    let (run_id, incarnation) = entries.iter().find_map(|(key, _)| keys.parse_owned(key)).unwrap();
    keys.outcome(&run_id, incarnation).to_vec()
}

/// Lets a loop execute a run of the script, and every lease end once the first outcome is written down.
async fn loses_its_lease(world: &World, turns: &Turns) -> RunOutcome {
    submit(&world.runtime(), RUN).await;
    let worker = runtime(world, turns, "loop");
    let ends = turns.actor("wait", async move { work(worker, &[RUN]).await });
    let (points, disk, key) = (turns.clone(), world.disk.clone(), outcome_key(world));
    let port = turns.port("pause", Arc::new(world.queue.clone()));
    turns.actor("pause", async move {
        port.wait_for_change(&key, None).await.unwrap();
        points.point("every lease ends").await;
        disk.end_leases();
    });
    turns.race().await;
    ends.output().remove(0)
}

fn calls_of(world: &World, step: u32) -> usize {
    world.runner.seen().iter().filter(|seen| seen.step == step).count()
}

/// The step whose outcome was written down first was called once, and every step has committed once.
async fn check_once(world: &World, end: &RunOutcome) {
    assert_eq!(end.status, TerminalStatus::Succeeded, "{end:?}");
    assert_eq!(calls_of(world, 0), 1, "{:?}", world.runner.seen());
    let staged = world.disk.entries().iter().filter(|(key, _)| key.starts_with(b"committed/")).count();
    assert_eq!(staged, end.final_step as usize + 1);
    check_forgotten(world).await;
}

/// A script of two steps whose every call leaves a mark of its own where it commits.
fn counts(first: fn() -> StepOutcome) -> Scripted {
    let calls = Arc::new(AtomicU32::new(0));
    Scripted::new(move |step| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            step.effects.put(format!("committed/{call}"), "")?;
            Ok(match step.step_number {
                0 => first(),
                _ => StepOutcome::Succeed { result: text_of(&step).into() },
            })
        }
    })
}

fn replaying(turns: &Turns, first: fn() -> StepOutcome) -> World {
    world(turns, counts(first)).with(|s| (s.replay, s.repair) = (true, false))
}

#[test]
fn an_end_that_was_written_down_is_applied_once() {
    told(about_the_run().run(|turns| async move {
        let world = replaying(&turns, || StepOutcome::Succeed { result: b"done".to_vec() });
        let end = loses_its_lease(&world, &turns).await;
        assert_eq!(end.result.as_deref(), Some(&b"done"[..]));
        check_once(&world, &end).await;
    }));
}

#[test]
fn a_step_that_was_written_down_is_applied_once_and_the_next_follows() {
    told(about_the_run().run(|turns| async move {
        let world = replaying(&turns, || StepOutcome::continue_now(Vec::new()));
        let end = loses_its_lease(&world, &turns).await;
        assert!(calls_of(&world, 1) <= 3);
        check_once(&world, &end).await;
    }));
}

#[test]
fn a_wait_that_was_written_down_takes_one_signal() {
    told(about_the_run().run(|turns| async move {
        let world = replaying(&turns, || StepOutcome::continue_on_signal(Vec::new(), "k", Duration::MAX));
        for payload in ["x", "y"] {
            world.runtime().signal("k", payload.into()).await.unwrap();
        }
        let end = loses_its_lease(&world, &turns).await;
        assert_eq!(end.result.as_deref(), Some(&b"k=x"[..]));
        assert_eq!(buffered(&world, "k").await, ["y"]);
        world.runtime().clear_signal("k").await.unwrap();
        check_once(&world, &end).await;
    }));
}

/// Whoever comes second must not delete the object: the run names it by then.
#[test]
fn a_large_value_that_was_written_down_stays_with_the_run_that_names_it() {
    told(about_the_run().run(|turns| async move {
        let world = replaying(&turns, || StepOutcome::Succeed { result: vec![7; LARGE] });
        let end = loses_its_lease(&world, &turns).await;
        assert_eq!(end.result, Some(vec![7; LARGE]));
        check_once(&world, &end).await;
    }));
    told(about_the_run().run(|turns| async move {
        let world = replaying(&turns, || StepOutcome::continue_now(vec![7; LARGE]));
        let end = loses_its_lease(&world, &turns).await;
        check_once(&world, &end).await;
    }));
}

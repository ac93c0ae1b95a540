//! Several who take the same signal away: one has it, whatever answers are lost on the way.

use std::sync::Arc;
use std::time::Duration;

use workflow_runtime::RunOutcome;
use workflow_testkit::{FaultyPort, Plan, PortCalls, PortFault, Turns, When};

use super::races::told;
use super::signals::{buffered, runtime, with_a_loop, without_a_loop, work, world};
use crate::scripted::{RUN, Scripted, World, submit};

const NEVER: Duration = Duration::MAX;
/// More than stays in a row.
const LARGE: usize = 100;

/// A world in which these signals are buffered, and these runs are about to take one each.
async fn about_to_take(turns: &Turns, signals: &[&str], runs: &[&str]) -> World {
    let world = world(turns, Scripted::waits_for(&["k"], NEVER)).with(|s| s.inline_limit = LARGE / 2);
    let runtime = world.runtime();
    for signal in signals {
        runtime.signal("k", signal.repeat(LARGE).into()).await.unwrap();
    }
    for run in runs {
        submit(&runtime, run).await;
    }
    world
}

/// Which signals the runs ended with.
fn taken(ends: &[RunOutcome]) -> Vec<String> {
    let text = |end: &RunOutcome| String::from_utf8(end.result.clone().unwrap_or_else(|| panic!("{end:?}"))).unwrap();
    let mut taken: Vec<_> = ends.iter().map(|end| text(end).trim_start_matches("k=")[..1].to_owned()).collect();
    taken.sort();
    taken
}

/// The commit with which a run takes its signal is lost before it is applied, and nobody knows: it is not mistaken for
/// the commit of another run that has taken the signal meanwhile.
#[test]
fn a_take_that_was_lost_is_not_taken_for_anothers() {
    told(with_a_loop().run(|turns| async move {
        let world = about_to_take(&turns, &["1", "2", "3"], &["a", "b"]).await;
        let slot = PortCalls::CommitWriting("workflow/workflow-steps/signal/k".into());
        let lossy = FaultyPort::new(Arc::new(world.queue.clone()), Plan::of(slot, When::Nth(1), PortFault::Fails));
        let worker = world.over(turns.port("loop", Arc::new(lossy)));
        let ends = turns.actor("wait", async move { work(worker, &["a", "b"]).await });
        turns.race().await;
        assert_eq!(taken(&ends.output()), ["1", "2"]);
        // Nor does a step begin with a signal that is not its own.
        let begun = |run: &str| world.runner.seen().iter().filter(|seen| seen.run_id == run).count();
        assert_eq!((begun("a"), begun("b")), (2, 2), "{:?}", world.runner.seen());
        assert_eq!(buffered(&world, "k").await, ["3".repeat(LARGE)]);
    }));
}

/// What is cleared reaches nobody, and what reaches a run is not cleared, object included.
#[test]
fn a_clear_and_a_run_share_out_what_is_buffered() {
    for lost in [false, true] {
        told(with_a_loop().run(move |turns| async move {
            let world = about_to_take(&turns, &["1"], &[RUN]).await;
            let plan = match lost {
                false => Plan::none(),
                true => Plan::of(PortCalls::Commit, When::Nth(1), PortFault::Fails),
            };
            let lossy = FaultyPort::new(Arc::new(world.queue.clone()), plan);
            let clearer = world.over(turns.port("clear", Arc::new(lossy)));
            let cleared = turns.actor("clear", async move { clearer.clear_signal("k").await });
            let worker = runtime(&world, &turns, "loop");
            let after = world.runtime();
            let ends = turns.actor("wait", async move {
                let running = worker.spawn(std::future::pending());
                // Whoever still waits is sent another.
                let end = worker.wait_timeout(RUN, Duration::from_secs(3)).await.unwrap();
                if end.is_none() {
                    after.signal("k", "2".repeat(LARGE).into()).await.unwrap();
                }
                let end = worker.wait(RUN).await.unwrap();
                running.shutdown().await.unwrap();
                end
            });
            turns.race().await;
            let taken = taken(&[ends.output()]);
            match cleared.output() {
                Ok(0) | Err(_) => assert_eq!(taken, ["1"]),
                Ok(1) => assert_eq!(taken, ["2"]),
                other => panic!("{other:?}"),
            }
            assert_eq!(world.rows("signal-item"), 0);
        }));
    }
}

/// A key whose buffer is empty has no slot: that there is none again does not tell that nothing has come and gone.
#[test]
fn what_two_throw_away_is_counted_once() {
    told(without_a_loop().exhaustive_up_to(2_000).run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["k"], NEVER));
        world.runtime().signal("k", "1".into()).await.unwrap();
        let (one, other) = (runtime(&world, &turns, "one"), runtime(&world, &turns, "other"));
        let first = turns.actor("one", async move { one.clear_signal("k").await.unwrap() });
        let others = turns.actor("other", async move {
            let cleared = other.clear_signal("k").await.unwrap();
            other.signal("k", "2".into()).await.unwrap();
            cleared + other.clear_signal("k").await.unwrap()
        });
        turns.race().await;
        assert_eq!((first.output() + others.output(), buffered(&world, "k").await.len()), (2, 0));
    }));
}

/// A signal whose time is over is forgotten or reaches the run that is about to take it, object included.
#[test]
fn an_expiry_and_a_run_share_out_what_is_buffered() {
    for lost in [false, true] {
        told(with_a_loop().longest(Duration::from_secs(30 * 24 * 3600)).run(move |turns| async move {
            let mut world = about_to_take(&turns, &["1", "2"], &[RUN]).await;
            world.settings.signal_ttl = Duration::ZERO;
            // Sent for a week by the default settings: it is over.
            tokio::time::sleep(Duration::from_secs(8 * 24 * 3600)).await;
            let plan = match lost {
                false => Plan::none(),
                true => Plan::of(PortCalls::Commit, When::Nth(1), PortFault::Fails),
            };
            let lossy = FaultyPort::new(Arc::new(world.queue.clone()), plan);
            let worker = world.over(turns.port("loop", Arc::new(lossy)));
            let after = world.runtime();
            let ends = turns.actor("wait", async move {
                let running = worker.spawn(std::future::pending());
                let end = worker.wait_timeout(RUN, Duration::from_secs(3)).await.unwrap();
                if end.is_none() {
                    after.signal("k", "3".repeat(LARGE).into()).await.unwrap();
                }
                let end = worker.wait(RUN).await.unwrap();
                tokio::time::sleep(Duration::from_secs(2)).await;
                running.shutdown().await.unwrap();
                end
            });
            turns.race().await;
            let taken = taken(&[ends.output()]);
            assert!(["1", "2", "3"].contains(&taken[0].as_str()), "{taken:?}");
            assert_eq!((world.rows("signal-item"), world.rows("signal-expiry"), world.rows("signal")), (0, 0, 0));
        }));
    }
}

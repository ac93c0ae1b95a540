//! Signals against whatever else happens to the same key: nothing is lost, nothing counts twice.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{RunOutcome, SignalOptions, SignalOutcome, TerminalStatus};
use workflow_testkit::{Actor, Interleaver, MemoryDisk, Moment, Operation, Turns};

use super::races::told;
use crate::scripted::{RUN, Runtime, Scripted, World, submit, until_it_waits};

const NEVER: Duration = Duration::MAX;
const MINUTE: Duration = Duration::from_secs(60);

/// Races with a loop: what a loop asks beside the run, and when it is told what is as it was asked, is no choice.
pub(super) fn with_a_loop() -> Interleaver {
    Interleaver::new().exhaustive_up_to(60).samples(15).seed(7).pass(|call| {
        call.subject.ends_with(".notifications")
            || call.subject == "priority/"
            || call.moment == Moment::Answered && call.operation != Operation::Commit
    })
}

/// Races of a few calls without a loop. What is applied and not yet durable is met all the same: until it is,
/// the call is inside the queue.
pub(super) fn without_a_loop() -> Interleaver {
    Interleaver::new().exhaustive_up_to(80).samples(20).seed(7).pass(|call| call.moment == Moment::Answered)
}

pub(super) fn world(turns: &Turns, runner: Scripted) -> World {
    World { ids: turns.ids(), ..World::without_hook(runner) }
}

/// A runtime whose calls are those of `name`.
pub(super) fn runtime(world: &World, turns: &Turns, name: &str) -> Runtime {
    world.over(turns.port(name, Arc::new(world.queue.clone())))
}

/// A world whose run waits on the keys already, and whose loop does not run.
pub(super) async fn waiting(turns: &Turns, keys: &[&str], timeout: Duration) -> World {
    let world = world(turns, Scripted::waits_for(keys, timeout));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    running.shutdown().await.unwrap();
    world
}

/// Runs the loop until every one of the runs has ended.
pub(super) async fn work(runtime: Runtime, runs: &[&str]) -> Vec<RunOutcome> {
    let running = runtime.spawn(std::future::pending());
    let mut ends = Vec::new();
    for run in runs {
        ends.push(runtime.wait(run).await.unwrap());
    }
    running.shutdown().await.unwrap();
    ends
}

pub(super) fn sends(world: &World, turns: &Turns, key: &'static str, payload: &'static str) -> Actor<SignalOutcome> {
    let name = format!("signal {payload} on {key}");
    let sender = runtime(world, turns, &name);
    turns.actor(&name, async move { sender.signal(key, payload.into()).await.unwrap() })
}

/// What is buffered on a key in the end.
pub(super) async fn buffered(world: &World, key: &str) -> Vec<String> {
    let signals: Vec<_> = world.runtime().buffered_signals(key).try_collect().await.unwrap();
    signals.into_iter().map(|signal| String::from_utf8(signal.payload).unwrap()).collect()
}

fn text(end: &RunOutcome) -> String {
    String::from_utf8(end.result.clone().unwrap()).unwrap()
}

#[test]
fn a_signal_and_the_registration_of_its_waiter_meet() {
    told(with_a_loop().run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["a", "b"], NEVER));
        submit(&world.runtime(), RUN).await;
        let sent = sends(&world, &turns, "b", "x");
        let worker = runtime(&world, &turns, "loop");
        let ends = turns.actor("wait", async move { work(worker, &[RUN]).await });
        turns.race().await;
        assert!(matches!(sent.output(), SignalOutcome::Delivered | SignalOutcome::Buffered));
        assert_eq!(text(&ends.output()[0]), "b=x");
        assert_eq!((world.rows("signal"), world.rows("signal-item"), world.rows("signal-expiry")), (0, 0, 0));
    }));
}

#[test]
fn a_signal_ends_a_wait_or_the_timeout_does_and_the_signal_stays() {
    told(with_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["a", "b"], MINUTE).await;
        tokio::time::sleep(MINUTE).await;
        let sent = sends(&world, &turns, "b", "x");
        let worker = runtime(&world, &turns, "loop");
        let ends = turns.actor("wait", async move { work(worker, &[RUN]).await });
        turns.race().await;
        match sent.output() {
            SignalOutcome::Delivered => assert_eq!(text(&ends.output()[0]), "b=x"),
            SignalOutcome::Buffered => {
                assert_eq!(text(&ends.output()[0]), "-");
                assert_eq!(buffered(&world, "b").await, ["x"]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.rows("signal"), world.rows("signal-item"));
    }));
}

/// A world in which a run waits for `k`, or one in which none does yet.
pub(super) async fn waiting_if(is_awaited: bool, turns: &Turns) -> World {
    match is_awaited {
        true => waiting(turns, &["k"], NEVER).await,
        false => world(turns, Scripted::waits_for(&["k"], NEVER)),
    }
}

#[test]
fn of_two_signals_of_equal_bytes_both_count() {
    for is_awaited in [true, false] {
        told(without_a_loop().run(move |turns| async move {
            let world = waiting_if(is_awaited, &turns).await;
            let sent = ["one", "other"].map(|name| {
                let sender = runtime(&world, &turns, name);
                turns.actor(name, async move { sender.signal("k", b"x".to_vec()).await.unwrap() })
            });
            turns.race().await;
            let sent = sent.map(Actor::output);
            let delivered = sent.iter().filter(|sent| **sent == SignalOutcome::Delivered).count();
            let kept = sent.iter().filter(|sent| **sent == SignalOutcome::Buffered).count();
            assert_eq!((delivered, kept), if is_awaited { (1, 1) } else { (0, 2) }, "{sent:?}");
            assert_eq!(buffered(&world, "k").await, vec!["x"; kept]);
        }));
    }
}

#[test]
fn of_two_signals_of_one_id_one_counts() {
    for is_awaited in [true, false] {
        told(without_a_loop().run(move |turns| async move {
            let world = waiting_if(is_awaited, &turns).await;
            let sent = ["one", "other"].map(|name| {
                let sender = runtime(&world, &turns, name);
                let options = SignalOptions { id: Some("once".to_owned()) };
                turns.actor(name, async move { sender.signal_with("k", b"x".to_vec(), options).await.unwrap() })
            });
            turns.race().await;
            let sent = sent.map(Actor::output);
            assert_eq!(sent.iter().filter(|sent| **sent == SignalOutcome::Duplicate).count(), 1, "{sent:?}");
            assert_eq!(world.rows("signal-item"), usize::from(!is_awaited));
        }));
    }
}

#[test]
fn of_signals_on_two_keys_of_one_wait_one_ends_it_and_the_other_stays() {
    told(without_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["a", "b"], MINUTE).await;
        let sent = [sends(&world, &turns, "a", "x"), sends(&world, &turns, "b", "y")];
        turns.race().await;
        let expected = match sent.map(Actor::output) {
            [SignalOutcome::Delivered, SignalOutcome::Buffered] => ("a=x", vec![], vec!["y"]),
            [SignalOutcome::Buffered, SignalOutcome::Delivered] => ("b=y", vec!["x"], vec![]),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (buffered(&world, "a").await, buffered(&world, "b").await),
            (owned(&expected.1), owned(&expected.2))
        );
        assert_eq!(text(&work(world.runtime(), &[RUN]).await[0]), expected.0);
    }));
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn of_two_waiters_one_waits_and_the_other_fails() {
    told(with_a_loop().run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["k", "l"], Duration::from_secs(5)));
        for run in ["1", "2"] {
            submit(&world.runtime(), run).await;
        }
        let worker = runtime(&world, &turns, "loop");
        let ends = turns.actor("wait", async move { work(worker, &["1", "2"]).await });
        turns.race().await;
        let mut ends: Vec<_> = ends.output().into_iter().map(|end| (end.status, end.final_step)).collect();
        ends.sort_by_key(|(_, step)| *step);
        assert_eq!(ends, [(TerminalStatus::Failed, 0), (TerminalStatus::Succeeded, 1)]);
        assert_eq!(world.rows("signal"), 0);
    }));
}

#[test]
fn no_signal_is_answered_that_a_crash_undoes() {
    for is_awaited in [true, false] {
        told(without_a_loop().run(move |turns| async move {
            let mut world = match is_awaited {
                true => waiting(&turns, &["k"], NEVER).await,
                false => world(&turns, Scripted::waits_for(&["k"], NEVER)),
            };
            let sent = ["x", "y"].map(|payload| {
                let sender = runtime(&world, &turns, payload);
                turns.actor(payload, async move { sender.signal("k", payload.into()).await })
            });
            let (points, disk): (_, MemoryDisk) = (turns.clone(), world.disk.clone());
            let crash = turns.actor("crash", async move {
                points.point("another process takes over").await;
                disk.open()
            });
            turns.race().await;
            world.queue = crash.output();
            let mut seen = buffered(&world, "k").await;
            if is_awaited && world.rows("signal") == world.rows("signal-item").min(1) {
                seen.push(text(&work(world.runtime(), &[RUN]).await[0]).trim_start_matches("k=").to_owned());
            }
            for (payload, sent) in ["x", "y"].iter().zip(sent.map(Actor::output)) {
                let count = seen.iter().filter(|seen| seen == payload).count();
                assert!(count == 1 || count == 0 && sent.is_err(), "{payload}: {sent:?}, {seen:?}");
            }
        }));
    }
}

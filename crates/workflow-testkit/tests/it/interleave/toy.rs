//! Small scenarios whose orders can be counted by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use workflow_runtime::QueuePort;
use workflow_runtime::port::{Clock, Commit, Read, Rejected};
use workflow_testkit::{Explored, Interleaver, MemoryDisk, Moment, Problem, Turns};

/// Actors that read so many times each.
fn readers(reads: &'static [usize]) -> impl Fn(Turns) -> futures::future::BoxFuture<'static, ()> {
    move |turns| {
        Box::pin(async move {
            let queue = Arc::new(MemoryDisk::default().open());
            for (actor, &reads) in reads.iter().enumerate() {
                let port = turns.port(&format!("reader {actor}"), queue.clone());
                turns.actor(&format!("reader {actor}"), async move {
                    for _ in 0..reads {
                        port.get(b"key", Read::Latest).await.unwrap();
                    }
                });
            }
            turns.race().await;
        })
    }
}

#[track_caller]
fn check_orders(reads: &'static [usize], expected: u64) {
    let explored = Interleaver::new().run(readers(reads));
    assert_eq!((explored.orders, explored.exhaustive), (expected, true), "{reads:?}");
}

#[test]
fn every_order_is_run_once() {
    // Each read stops twice: (n1 + n2 + …)! / (n1! n2! …) orders of n stops each.
    check_orders(&[], 1);
    check_orders(&[3], 1);
    check_orders(&[1, 1], 6);
    check_orders(&[2, 1], 15);
    check_orders(&[2, 2], 70);
    check_orders(&[1, 1, 1], 90);
    check_orders(&[3, 3], 924);
}

#[test]
fn calls_that_pass_save_orders() {
    let explored = Interleaver::new().pass(|call| call.moment == Moment::Answered).run(readers(&[2, 2]));
    assert_eq!(explored.to_string(), "6 orders, all there are");
}

#[test]
fn beyond_the_bound_orders_are_drawn() {
    let explored = Interleaver::new().exhaustive_up_to(50).samples(20).run(readers(&[4, 4, 4]));
    assert_eq!(explored.to_string(), "70 orders, there are more");
}

/// Writes the counter one higher than it was read.
async fn increment(port: Arc<dyn QueuePort>, expects: bool) {
    loop {
        let found = port.get(b"counter", Read::Latest).await.unwrap();
        let next = found.as_ref().map_or(0, |value| value[0]) + 1;
        let expect = if expects { vec![("counter".into(), found)] } else { Vec::new() };
        let commit = Commit { expect, puts: vec![("counter".into(), vec![next].into())], ..Commit::default() };
        match port.commit(vec![commit]).await.remove(0) {
            Ok(()) => return,
            Err(Rejected::Conflict) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

async fn increments(turns: Turns, expects: bool) {
    let disk = MemoryDisk::default();
    let queue = Arc::new(disk.open());
    for name in ["one", "other"] {
        turns.actor(name, increment(turns.port(name, queue.clone()), expects));
    }
    turns.race().await;
    assert_eq!(disk.entries()[0].1, vec![2], "an update is lost");
}

#[test]
fn a_lost_update_is_found_told_and_run_again() {
    let lossy = |turns| increments(turns, false);
    let failed = Interleaver::new().explore(lossy).unwrap_err();
    println!("{failed}");
    assert!(matches!(&failed.problem, Problem::Panicked(message) if message.contains("an update is lost")));
    let again = Interleaver::new().replay(&failed.choices, lossy).unwrap_err();
    assert_eq!((&again.steps, &again.problem), (&failed.steps, &failed.problem));
    assert!(Interleaver::new().replay("0", lossy).is_ok());
}

#[test]
fn an_order_found_by_chance_is_made_simple() {
    let lossy = |turns| increments(turns, false);
    let shortest = Interleaver::new().explore(lossy).unwrap_err();
    let drawn = Interleaver::new().exhaustive_up_to(1).seed(3).explore(lossy).unwrap_err();
    println!("{drawn}");
    assert_eq!(drawn.seed, Some(3));
    assert!(drawn.steps.len() <= shortest.steps.len() + 1, "{drawn}");
}

#[test]
fn no_update_is_lost_that_expects_what_it_read() {
    let explored = Interleaver::new().run(|turns| increments(turns, true));
    println!("{explored}");
    assert!(explored.exhaustive);
}

#[test]
fn one_seed_draws_the_same_orders() {
    let orders_of = |seed| {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let order = seen.clone();
        let scenario = move |turns: Turns| {
            let order = order.clone();
            async move {
                for name in ["a", "b", "c"] {
                    let (order, steps) = (order.clone(), turns.clone());
                    turns.actor(name, async move {
                        for _ in 0..3 {
                            steps.point("step").await;
                            order.lock().unwrap().push(name);
                        }
                    });
                }
                turns.race().await;
            }
        };
        Interleaver::new().exhaustive_up_to(1).samples(20).seed(seed).run(scenario);
        std::mem::take(&mut *seen.lock().unwrap())
    };
    assert_eq!(orders_of(1), orders_of(1));
    assert_ne!(orders_of(1), orders_of(2));
}

#[test]
fn a_scenario_that_is_not_deterministic_is_found_out() {
    let executions = Arc::new(AtomicU64::new(0));
    let scenario = move |turns: Turns| {
        let execution = executions.fetch_add(1, Ordering::Relaxed);
        async move {
            let points = turns.clone();
            turns.actor("a", async move { points.point(&format!("in execution {execution}")).await });
            turns.race().await;
        }
    };
    let failed = Interleaver::new().explore(scenario).unwrap_err();
    let Problem::NotDeterministic(difference) = &failed.problem else { panic!("{failed}") };
    assert_eq!(difference, "first `a: in execution 0`, then `a: in execution 1`");
}

#[test]
fn chance_that_sets_in_late_is_found_out() {
    let executions = Arc::new(AtomicU64::new(0));
    let scenario = move |turns: Turns| {
        let execution = executions.fetch_add(1, Ordering::Relaxed);
        async move {
            for name in ["a", "b"] {
                let points = turns.clone();
                turns.actor(name, async move {
                    points.point("one").await;
                    points.point(if execution == 4 { "odd" } else { "two" }).await;
                    points.point("three").await;
                });
            }
            turns.race().await;
        }
    };
    let failed = Interleaver::new().explore(scenario).unwrap_err();
    assert!(matches!(failed.problem, Problem::NotDeterministic(_)), "{failed}");
}

#[test]
fn an_order_without_end_is_told() {
    let endless = |turns: Turns| async move {
        let points = turns.clone();
        turns.actor("a", async move {
            loop {
                points.point("again").await;
            }
        });
        turns.race().await;
    };
    let failed = Interleaver::new().most_steps(100).explore(endless).unwrap_err();
    assert_eq!(failed.problem, Problem::TooManySteps);
    let waiting = |turns: Turns| async move {
        turns.actor("a", std::future::pending::<()>());
        turns.race().await;
    };
    let failed = Interleaver::new().longest(Duration::from_secs(60)).explore(waiting).unwrap_err();
    assert_eq!(failed.problem, Problem::NeverEnds);
}

#[test]
fn an_actors_panic_fails_the_order() {
    let scenario = |turns: Turns| async move {
        turns.actor("a", async { panic!("no") });
        turns.race().await;
    };
    let failed = Interleaver::new().explore(scenario).unwrap_err();
    assert_eq!(failed.problem, Problem::Panicked("a panicked: no".to_owned()));
}

/// Whether the pause of one actor can be over before the other's point.
fn explore_pause(delays: u32) -> Result<Explored, String> {
    let scenario = |turns: Turns| async move {
        let disk = MemoryDisk::default();
        let clock = disk.clock().clone();
        let (points, start) = (turns.clone(), clock.now());
        let pause = clock.clone();
        turns.actor("pauses", async move { pause.sleep(Duration::from_secs(1)).await });
        turns.actor("goes on", async move {
            points.point("go on").await;
            assert_eq!(clock.now(), start, "late");
        });
        turns.race().await;
    };
    Interleaver::new().delays(delays).explore(scenario).map_err(|failed| failed.problem.to_string())
}

#[test]
fn a_delay_lets_time_pass_although_a_call_could_go_on() {
    assert_eq!(explore_pause(0).unwrap().orders, 1);
    assert!(explore_pause(1).unwrap_err().contains("late"));
}

//! Clocks that are set forwards and back, while runs are delayed, wait, are paused or have ended, and across restarts: no
//! timer is early by the queue's clock, no run is removed that goes on, and everything comes to its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use workflow_runtime::port::Clock;
use workflow_runtime::{RunPhase, RunState, StepOutcome};
use workflow_testkit::{Chance, ClockStep, VirtualClock};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit, until};

const MINUTE: Duration = Duration::from_secs(60);
const STEPS: u32 = 6;
const RUNS: usize = 4;

/// When each step of a run is due that was asked to start later.
type Due = Arc<Mutex<BTreeMap<(String, u32), SystemTime>>>;

fn now(clock: &VirtualClock) -> SystemTime {
    clock.now().into()
}

/// Each step asks for the next one after a while or a wait, and is not early itself.
fn script(clock: &VirtualClock, due: &Due, chance: Chance) -> Scripted {
    let (clock, due, chance) = (clock.clone(), due.clone(), Mutex::new(chance));
    Scripted::new(move |step| {
        let delay = Duration::from_millis(chance.lock().unwrap().below(200_000));
        let (at, key) = (now(&clock), (step.run_id.clone(), step.step_number));
        if let Some(due) = due.lock().unwrap().get(&key) {
            assert!(*due <= at, "step {key:?} is early by {:?}", due.duration_since(at));
        }
        due.lock().unwrap().insert((step.run_id.clone(), step.step_number + 1), at + delay);
        async move {
            Ok(match step.step_number {
                STEPS => StepOutcome::Succeed { result: b"done".to_vec() },
                number if number % 2 == 0 => StepOutcome::continue_after(Vec::new(), delay),
                _ => StepOutcome::continue_on_signal(Vec::new(), step.run_id, delay),
            })
        }
    })
}

/// Sets the clock wrong, by a little or a lot, or right again.
fn set(clock: &VirtualClock, chance: &mut Chance) {
    let by = Duration::from_millis(chance.below([1_000, 100_000, 10_000_000][chance.clone().below(3) as usize]));
    clock.set(if chance.below(2) == 0 { ClockStep::Forwards(by) } else { ClockStep::Back(by) });
}

/// Pauses and resumes runs, for a while.
async fn stir(runtime: &Runtime, chance: &mut Chance) {
    for _ in 0..4 {
        let run_id = format!("run-{}", chance.below(RUNS as u64));
        if runtime.status(&run_id).await.unwrap().is_some() {
            match chance.below(2) {
                0 => drop(runtime.pause(&run_id).await.unwrap()),
                _ => drop(runtime.resume(&run_id).await.unwrap()),
            }
        }
        tokio::time::sleep(Duration::from_millis(chance.below(30_000))).await;
    }
}

async fn check(seed: u64) {
    let (mut chance, due) = (Chance::of(seed), Due::default());
    let mut world = World::without_hook(Scripted::waits_for(&[], MINUTE)).with(|s| s.retention = Some(30 * MINUTE));
    let clock = world.disk.clock().clone();
    world.runner = script(&clock, &due, chance.split());
    let names: Vec<_> = (0..RUNS).map(|number| format!("run-{number}")).collect();
    let mut ended = BTreeMap::new();
    let (mut runtime, mut _running) = world.running();
    for run_id in &names {
        submit(&runtime, run_id).await;
    }
    for round in 0..12 {
        set(&clock, &mut chance);
        stir(&runtime, &mut chance).await;
        for run_id in &names {
            match runtime.status(run_id).await.unwrap() {
                Some(status) if status.state == RunState::Succeeded => drop(ended.insert(run_id, status.since)),
                Some(_) => assert!(!ended.contains_key(run_id)),
                None => {
                    let since = ended.get(run_id).copied().unwrap_or(SystemTime::UNIX_EPOCH);
                    let kept = now(&clock).duration_since(since).unwrap();
                    assert!(kept >= 30 * MINUTE, "seed {seed}: {run_id} is gone after {kept:?}");
                }
            }
        }
        if round % 3 == 2 {
            world.crash();
            (runtime, _running) = world.running();
        }
    }
    for run_id in &names {
        if runtime.status(run_id).await.unwrap().is_some() {
            runtime.resume(run_id).await.unwrap();
        }
    }
    // Whatever the clock shows, it has caught up with itself and everything else by then.
    while !world.leftovers().await.is_empty() {
        clock.set(ClockStep::Forwards(60 * MINUTE));
        tokio::time::sleep(2 * MINUTE).await;
    }
    let finished = world.runner.seen().iter().filter(|seen| seen.step == STEPS).count();
    assert!(finished >= RUNS, "seed {seed}: {finished} runs came to their end");
    world.stop();
}

#[tokio::test(start_paused = true)]
async fn whatever_the_clock_does_no_timer_is_early_and_nothing_is_lost() {
    for seed in 0..6 {
        check(seed).await;
    }
}

/// A clock that is set back stands still: a timer waits until it has caught up, and not for longer.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_delays_a_timer_until_it_has_caught_up() {
    let runner = Scripted::new(|step| async move {
        Ok(match step.step_number {
            0 => StepOutcome::continue_after(Vec::new(), 10 * MINUTE),
            _ => StepOutcome::Succeed { result: b"done".to_vec() },
        })
    });
    let mut world = World::without_hook(runner);
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    let status = until(&runtime, RUN, |status| matches!(status.phase, RunPhase::Delayed { .. })).await;
    let RunPhase::Delayed { until: due } = status.phase else { panic!("{status:?}") };
    world.disk.clock().set(ClockStep::Back(5 * MINUTE));
    running.shutdown().await.unwrap();
    world.crash();
    let (runtime, _running) = world.running();
    let start = tokio::time::Instant::now();
    assert_eq!(result_of(&runtime, RUN).await, "done");
    assert!(now(world.disk.clock()) >= due);
    assert!(start.elapsed() < 15 * MINUTE + Duration::from_secs(2), "{:?}", start.elapsed());
}

/// A jump of years forwards ends what is kept for a time, and never what goes on.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_by_years_takes_no_run_that_goes_on() {
    let mut world = World::without_hook(Scripted::new(|step| async move {
        Ok(match step.signal {
            Some(signal) => StepOutcome::Succeed { result: signal },
            None => StepOutcome::continue_on_signal(Vec::new(), step.run_id, Duration::MAX),
        })
    }));
    let (runtime, running) = world.running();
    for run_id in ["waits", "paused", "ends"] {
        submit(&runtime, run_id).await;
    }
    until(&runtime, "waits", |status| status.state != RunState::Active).await;
    runtime.pause("paused").await.unwrap();
    runtime.cancel("ends", None).await.unwrap();
    world.disk.clock().set(ClockStep::Forwards(Duration::from_secs(50 * 365 * 24 * 3_600)));
    running.shutdown().await.unwrap();
    world.crash();
    let (runtime, _running) = world.running();
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(runtime.status("ends").await.unwrap(), None);
    assert_eq!(runtime.status("waits").await.unwrap().unwrap().state, RunState::Waiting);
    runtime.signal("waits", b"x".to_vec()).await.unwrap();
    assert_eq!(result_of(&runtime, "waits").await, "x");
    assert!(runtime.status("paused").await.unwrap().is_some());
}

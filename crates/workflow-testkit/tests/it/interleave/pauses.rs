//! Pauses against whatever else moves a run: once one is answered nothing starts, and nothing is lost by it.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use workflow_runtime::{
    PauseOutcome, ResumeOutcome, RunOutcome, RunPhase, RunState, SignalOutcome, StepError, StepOutcome, TerminalStatus,
};
use workflow_testkit::{Actor, Turns};

use super::cancel::{cancels, check_end, marks, succeed};
use super::left::{about_the_run, check_forgotten};
use super::races::told;
use super::signals::{buffered, runtime, sends, waiting, without_a_loop, work, world};
use crate::scripted::{RUN, Scripted, World, submit, text_of, until};

const NEVER: Duration = Duration::MAX;
const SECOND: Duration = Duration::from_secs(1);

/// Pauses the run, and says what was answered and how often the runner had been called by then.
pub(super) fn pauses(world: &World, turns: &Turns) -> Actor<(PauseOutcome, usize)> {
    let (pauser, runner) = (runtime(world, turns, "pause"), world.runner.clone());
    turns.actor("pause", async move {
        let answer = pauser.pause(RUN).await.unwrap();
        (answer, runner.seen().len())
    })
}

/// Lets a loop work on the run for longer than any of its waits.
pub(super) fn works(world: &World, turns: &Turns) {
    let worker = runtime(world, turns, "loop");
    turns.actor("worker", async move {
        let running = worker.spawn(pending());
        tokio::time::sleep(3 * SECOND).await;
        running.shutdown().await.unwrap();
    });
}

/// Checks that the answer was true, and that nothing has begun since.
async fn check_answer(world: &World, (answer, calls): (PauseOutcome, usize)) {
    let (state, calls_now) = (state(world).await, world.runner.seen().len());
    match answer {
        PauseOutcome::Paused => assert_eq!((state, calls_now), (RunState::Paused, calls)),
        PauseOutcome::Finishing => {
            assert!(calls_now <= calls + 1, "{:?}", world.runner.seen());
            assert!(!matches!(state, RunState::Active | RunState::Waiting), "{state:?}");
        }
        PauseOutcome::AlreadyEnded(told) => assert_eq!(world.runtime().run_end(RUN).await.unwrap(), Some(told)),
        other => panic!("{other:?}"),
    }
}

pub(super) async fn state(world: &World) -> RunState {
    world.runtime().status(RUN).await.unwrap().unwrap().state
}

/// Resumes the run if it is paused and lets it end. No attempt has begun twice, and nothing is left.
pub(super) async fn ends(world: &World) -> RunOutcome {
    if state(world).await == RunState::Paused {
        assert_eq!(world.runtime().resume(RUN).await.unwrap(), ResumeOutcome::Resumed);
    }
    let end = work(world.runtime(), &[RUN]).await.remove(0);
    let begun: Vec<_> = world.runner.seen().into_iter().map(|seen| (seen.step, seen.attempt)).collect();
    assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), begun.len(), "{begun:?}");
    check_forgotten(world).await;
    end
}

/// Lets a pause meet a loop at work on a run of the script.
fn check_against_the_loop(inline_steps: u32, script: impl Fn() -> Scripted + Clone + Send + Sync + 'static) {
    told(about_the_run().run(move |turns| {
        let script = script();
        async move {
            let world = world(&turns, script).with(|s| (s.inline_steps, s.repair) = (inline_steps, false));
            submit(&world.runtime(), RUN).await;
            let answer = pauses(&world, &turns);
            works(&world, &turns);
            turns.race().await;
            check_answer(&world, answer.output()).await;
            let end = ends(&world).await;
            let staged = world.disk.entries().iter().filter(|(key, _)| key.starts_with(b"committed/")).count();
            let is_error = end.error.as_deref() == Some("an error");
            assert_eq!(staged, end.final_step as usize + usize::from(!is_error), "{end:?}");
        }
    }));
}

#[test]
fn a_pause_meets_steps_that_follow_inline() {
    check_against_the_loop(32, || marks(3, succeed));
}

#[test]
fn a_pause_meets_steps_that_follow_through_the_queue() {
    check_against_the_loop(0, || marks(3, succeed));
}

#[test]
fn a_pause_meets_a_step_that_ends_its_run() {
    let ends = [|| Ok(StepOutcome::Fail { reason: "a reason".to_owned() }), || Err(StepError::permanent("an error"))];
    for end in ends {
        check_against_the_loop(32, move || marks(1, end));
    }
}

/// A world whose run has come to a delay, a backoff or a wait of a second, which is over or not.
async fn comes_to_a_wait(turns: &Turns, script: Scripted, is_over: bool) -> World {
    let world = world(turns, script).with(|s| s.repair = false);
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until(&runtime, RUN, |status| status.phase != RunPhase::Ready).await;
    running.shutdown().await.unwrap();
    if is_over {
        tokio::time::sleep(SECOND).await;
    }
    world
}

/// Lets a pause meet the end of what step 0 has come to.
fn check_against_time(script: fn() -> Scripted) {
    for is_over in [true, false] {
        told(about_the_run().run(move |turns| async move {
            let world = comes_to_a_wait(&turns, script(), is_over).await;
            let answer = pauses(&world, &turns);
            works(&world, &turns);
            turns.race().await;
            check_answer(&world, answer.output()).await;
            let end = ends(&world).await;
            assert_eq!((end.status, world.runner.seen().len()), (TerminalStatus::Succeeded, 2));
        }));
    }
}

#[test]
fn a_pause_meets_the_end_of_a_delay() {
    check_against_time(|| {
        Scripted::new(|step| async move {
            Ok(match step.step_number {
                0 => StepOutcome::continue_after(Vec::new(), SECOND),
                _ => StepOutcome::Succeed { result: Vec::new() },
            })
        })
    });
}

#[test]
fn a_pause_meets_the_end_of_a_backoff() {
    check_against_time(|| {
        Scripted::new(|step| async move {
            match step.attempts {
                1 => Err(StepError::transient("the first fails").retry_after(SECOND)),
                _ => Ok(StepOutcome::Succeed { result: Vec::new() }),
            }
        })
    });
}

/// Waits once for `k` for a second, succeeds with what came, and fails its second step once.
fn waits_and_stumbles() -> Scripted {
    Scripted::new(|step| async move {
        match (step.step_number, step.attempts) {
            (0, _) => Ok(StepOutcome::continue_on_signal(Vec::new(), "k", SECOND)),
            (_, 1) => Err(StepError::transient("the first fails").retry_after(Duration::ZERO)),
            _ => Ok(StepOutcome::Succeed { result: text_of(&step).into() }),
        }
    })
}

/// Signals of the attempts of the step after the wait: all see the same.
fn signals_seen(world: &World) -> BTreeSet<Option<(String, String)>> {
    world.runner.seen().into_iter().filter(|seen| seen.step == 1).map(|seen| seen.signal).collect()
}

#[test]
fn a_pause_a_timeout_and_a_signal_meet_and_the_wait_ends_once() {
    for is_over in [true, false] {
        told(about_the_run().run(move |turns| async move {
            let world = comes_to_a_wait(&turns, waits_and_stumbles(), is_over).await;
            let (answer, sent) = (pauses(&world, &turns), sends(&world, &turns, "k", "x"));
            works(&world, &turns);
            turns.race().await;
            check_answer(&world, answer.output()).await;
            // The wait is over, whatever is paused.
            assert_eq!(world.rows("signal"), world.rows("signal-item"));
            let (result, kept): (_, &[&str]) = match sent.output() {
                SignalOutcome::Delivered => ("k=x", &[]),
                SignalOutcome::Buffered => ("-", &["x"]),
                other => panic!("{other:?}"),
            };
            assert_eq!(buffered(&world, "k").await, kept);
            world.runtime().clear_signal("k").await.unwrap();
            assert_eq!(ends(&world).await.result.as_deref(), Some(result.as_bytes()));
            assert_eq!((signals_seen(&world).len(), world.runner.seen().len()), (1, 3));
        }));
    }
}

#[test]
fn a_pause_and_a_wait_that_takes_a_buffered_signal_meet() {
    told(about_the_run().run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["k"], NEVER)).with(|s| s.repair = false);
        submit(&world.runtime(), RUN).await;
        let (answer, sent) = (pauses(&world, &turns), sends(&world, &turns, "k", "x"));
        works(&world, &turns);
        turns.race().await;
        check_answer(&world, answer.output()).await;
        assert!(matches!(sent.output(), SignalOutcome::Delivered | SignalOutcome::Buffered));
        assert_eq!(ends(&world).await.result.as_deref(), Some(&b"k=x"[..]));
        assert_eq!(world.runner.seen().len(), 2);
    }));
}

#[test]
fn a_pause_and_a_signal_meet_at_a_wait_and_its_step_runs_after_the_resumption() {
    told(without_a_loop().run(|turns| async move {
        let world = waiting(&turns, &["k", "l"], NEVER).await;
        let (answer, sent) = (pauses(&world, &turns), sends(&world, &turns, "l", "x"));
        turns.race().await;
        assert_eq!((answer.output(), sent.output()), ((PauseOutcome::Paused, 1), SignalOutcome::Delivered));
        works(&world, &turns);
        turns.race().await;
        assert_eq!((state(&world).await, world.runner.seen().len()), (RunState::Paused, 1));
        assert_eq!(ends(&world).await.result.as_deref(), Some(&b"l=x"[..]));
        assert_eq!(world.runner.seen().len(), 2);
    }));
}

#[test]
fn a_pause_and_a_cancellation_meet_and_the_run_ends_without_a_resumption() {
    for is_paused in [false, true] {
        told(about_the_run().run(move |turns| async move {
            let world = world(&turns, marks(2, succeed)).with(|s| s.repair = false);
            submit(&world.runtime(), RUN).await;
            if is_paused {
                assert_eq!(world.runtime().pause(RUN).await.unwrap(), PauseOutcome::Paused);
            }
            let (paused, cancelled) = (pauses(&world, &turns), cancels(&world, &turns, "enough"));
            let worker = runtime(&world, &turns, "loop");
            let ends = turns.actor("wait", async move { work(worker, &[RUN]).await });
            turns.race().await;
            check_end(&world, cancelled.output(), &ends.output()[0]).await;
            let (answer, calls) = paused.output();
            let more = world.runner.seen().len() - calls;
            assert!(more <= usize::from(answer == PauseOutcome::Finishing), "{answer:?}, and {more} calls");
            check_forgotten(&world).await;
        }));
    }
}

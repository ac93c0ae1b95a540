//! The removal of a run that has ended, by a sweep or by `forget`, against whoever wants the run or its id: it is there
//! as a whole or not at all, and a later run of its id does not notice.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::port::{JobId, JobState};
use workflow_runtime::{
    CancelOutcome, Error, HistoryLevel, RedriveOptions, RedriveOutcome, SignalOutcome, StepError, StepOutcome,
    SubmitOutcome, TerminalStatus,
};
use workflow_testkit::{Actor, Interleaver, Moment, Operation, Turns};

use super::left::{about_the_run_and_its_places, check_forgotten, check_nothing_is_left, left_of, submission};
use super::races::told;
use super::signals::{runtime, without_a_loop, work};
use crate::scripted::{RUN, Scripted, Told, World, submit, submit_with, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);
/// More than stays in a row.
const LARGE: usize = 100;

/// A world without a run whose hook listens, and that keeps runs for a minute after their ends.
fn world(turns: &Turns, runner: Scripted) -> World {
    let world = World { ids: turns.ids(), ..World::new(runner) };
    world.with(|s| {
        (s.retention, s.history) = (Some(MINUTE), HistoryLevel::Full);
        (s.inline_limit, s.repair) = (LARGE / 2, false);
    })
}

/// A world whose run has ended, with all that there can be of a run, and whose time is over.
async fn over(turns: &Turns, runner: Scripted) -> World {
    let world = world(turns, runner);
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    while world.hook.ends().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.shutdown().await.unwrap();
    tokio::time::sleep(MINUTE).await;
    world
}

/// Lets a loop remove what is over, and do whatever else there is to do.
fn sweep(world: &World, turns: &Turns) -> Actor<Result<bool, Error>> {
    let sweeper = runtime(world, turns, "sweep");
    turns.actor("sweeper", async move {
        let running = sweeper.spawn(pending());
        tokio::time::sleep(Duration::from_secs(2)).await;
        running.shutdown().await.map(|()| true)
    })
}

fn forget(world: &World, turns: &Turns) -> Actor<Result<bool, Error>> {
    let forgetful = runtime(world, turns, "forget");
    turns.actor("forget", async move { forgetful.forget(RUN).await })
}

/// How a run is removed, and the races to let it take part in.
type Removal = (fn(&World, &Turns) -> Actor<Result<bool, Error>>, fn() -> Interleaver);

const REMOVALS: [Removal; 2] = [(sweep, about_the_run_and_its_places), (forget, without_a_loop)];

/// Memoizes what it was submitted with and succeeds with what it finds there in the next step.
fn remembers() -> Scripted {
    Scripted::new(|step| async move {
        let found = step.run_memo.get("input").await?;
        Ok(match (step.step_number, found) {
            (0, None) => {
                step.run_memo.put("input", &step.payload).await?;
                StepOutcome::continue_now(vec![0; LARGE])
            }
            (1, Some(input)) => StepOutcome::Succeed { result: input },
            (_, found) => StepOutcome::Fail { reason: format!("found {found:?}") },
        })
    })
}

/// Checks that there is a whole run, which was submitted with `input`, and that it ends as if it were the first.
async fn check_whole(world: &World, input: &str) {
    let runtime = world.runtime();
    let end = work(runtime.clone(), &[RUN]).await.remove(0);
    assert_eq!((end.status, end.result.as_deref()), (TerminalStatus::Succeeded, Some(input.as_bytes())), "{end:?}");
    let steps: Vec<u32> = runtime.history(RUN).map_ok(|row| row.step).try_collect().await.unwrap();
    assert_eq!(steps, [0, 1]);
    check_forgotten(world).await;
    let results: Vec<_> = world.hook.ends().into_iter().map(|end| end.result.unwrap()).collect();
    assert_eq!(results, [b"in", input.as_bytes()]);
}

#[test]
fn a_removal_and_a_submission_of_the_same_id_meet() {
    for (removal, races) in REMOVALS {
        for input in ["in", "ni"] {
            told(races().run(move |turns| async move {
                let world = over(&turns, remembers()).await;
                let (old, end) = (submission(&world).unwrap(), world.runtime().run_end(RUN).await.unwrap());
                let submitter = runtime(&world, &turns, "submit");
                let submitted = turns.actor("submit", async move { submit_with(&submitter, RUN, input).await });
                let removed = removal(&world, &turns);
                turns.race().await;
                assert!(removed.output().unwrap());
                assert_eq!(left_of(&world, &old), Vec::<String>::new());
                match submitted.output() {
                    Ok(SubmitOutcome { newly_submitted: true, .. }) => check_whole(&world, input).await,
                    Ok(SubmitOutcome { end: told, .. }) => {
                        assert_eq!((told, input), (end, "in"));
                        check_nothing_is_left(&world).await;
                    }
                    Err(Error::InputMismatch(_)) => {
                        assert_ne!(input, "in");
                        check_nothing_is_left(&world).await;
                    }
                    Err(error) => panic!("{error}: {error:?}"),
                }
            }));
        }
    }
}

#[test]
fn of_two_that_forget_a_run_one_does() {
    told(without_a_loop().run(|turns| async move {
        let world = over(&turns, remembers()).await;
        let forgotten = ["one", "other"].map(|name| {
            let forgetful = runtime(&world, &turns, name);
            turns.actor(name, async move { forgetful.forget(RUN).await.unwrap() })
        });
        turns.race().await;
        let [one, other] = forgotten.map(Actor::output);
        assert!(one != other);
        check_nothing_is_left(&world).await;
    }));
}

/// Memoizes what it was called with and fails, unless that is `better`.
fn fails() -> Scripted {
    Scripted::new(|step| async move {
        if step.payload == b"better" {
            let before = step.run_memo.get("payload").await?;
            return Ok(StepOutcome::Succeed { result: before.unwrap_or_default() });
        }
        step.run_memo.put("payload", &[7; LARGE]).await?;
        Err(StepError::permanent("no"))
    })
}

#[test]
fn of_a_removal_and_a_redrive_one_wins() {
    for (removal, races) in REMOVALS {
        told(races().run(move |turns| async move {
            let world = over(&turns, fails()).await;
            let redriver = runtime(&world, &turns, "redrive");
            let options = RedriveOptions { payload: Some(b"better".to_vec()), ..RedriveOptions::default() };
            let redriven = turns.actor("redrive", async move { redriver.redrive(RUN, options).await.unwrap() });
            let removed = removal(&world, &turns);
            turns.race().await;
            match (redriven.output(), removed.output()) {
                (RedriveOutcome::Redriven, Ok(true) | Err(Error::NotEnded(_))) => {
                    let end = work(world.runtime(), &[RUN]).await.remove(0);
                    assert_eq!((end.status, end.result), (TerminalStatus::Succeeded, Some(vec![7; LARGE])));
                    assert_eq!(world.runtime().status(RUN).await.unwrap().unwrap().redrives, 1);
                    check_forgotten(&world).await;
                    assert_eq!(world.hook.ends().len(), 2);
                }
                (RedriveOutcome::NotFound, Ok(true)) => check_nothing_is_left(&world).await,
                other => panic!("{other:?}"),
            }
        }));
    }
}

/// A run that ends again while a sweep looks at its first end has all its time before it.
#[test]
fn a_sweep_spares_a_run_that_has_just_ended_again() {
    told(about_the_run_and_its_places().run(|turns| async move {
        let world = over(&turns, fails()).await;
        let world = World { hook: Told::default(), ..world };
        let again = runtime(&world, &turns, "again");
        let redriven = turns.actor("again", async move {
            let redriven = again.redrive(RUN, RedriveOptions::default()).await.unwrap();
            again.cancel(RUN, None).await.unwrap();
            redriven
        });
        let swept = sweep(&world, &turns);
        turns.race().await;
        swept.output().unwrap();
        let status = world.runtime().status(RUN).await.unwrap();
        assert_eq!(status.is_some(), redriven.output() == RedriveOutcome::Redriven, "{status:?}");
        match status {
            Some(_) => check_forgotten(&world).await,
            None => check_nothing_is_left(&world).await,
        }
    }));
}

/// The only job among the dead.
fn dead_job(world: &World) -> JobId {
    let dead = |(id, job): (JobId, workflow_testkit::StoredJob)| (job.state == JobState::Dead).then_some(id);
    world.disk.jobs().into_iter().find_map(dead).unwrap()
}

/// Fails at its first call and succeeds at the next.
fn fails_once() -> Scripted {
    let calls = Arc::new(AtomicU32::new(0));
    Scripted::new(move |_| {
        let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            match is_first {
                true => Err(StepError::permanent("no")),
                false => Ok(StepOutcome::Succeed { result: Vec::new() }),
            }
        }
    })
}

#[test]
fn of_a_sweep_and_an_operator_who_puts_the_job_back_one_wins() {
    told(about_the_run_and_its_places().run(|turns| async move {
        let world = over(&turns, fails_once()).await;
        let (points, disk, job) = (turns.clone(), world.disk.clone(), dead_job(&world));
        turns.actor("operator", async move {
            points.point("the dead job is put back").await;
            disk.requeue_dead_job(&job)
        });
        let swept = sweep(&world, &turns);
        turns.race().await;
        swept.output().unwrap();
        check_put_back(&world).await;
    }));
}

/// Races about nothing but records and specifications, which leave commits the time to land.
fn about_records() -> Interleaver {
    Interleaver::new().exhaustive_up_to(60).samples(0).delays(2).pass(|call| match call.operation {
        Operation::Commit => false,
        Operation::Get => call.moment == Moment::Answered || call.subject.starts_with("objects/"),
        _ => true,
    })
}

/// The loop that sweeps does not know what the other has in hand.
#[test]
fn of_a_sweep_and_the_delivery_of_a_job_that_was_put_back_one_wins() {
    told(about_records().run(|turns| async move {
        let mut world = over(&turns, fails_once()).await;
        assert!(world.disk.requeue_dead_job(&dead_job(&world)));
        world.settings.retention = None;
        let worker = runtime(&world, &turns, "loop");
        world.settings.retention = Some(MINUTE);
        turns.actor("worker", async move {
            let running = worker.spawn(pending());
            tokio::time::sleep(Duration::from_secs(2)).await;
            running.shutdown().await.unwrap();
        });
        // Begun later, it does not claim the job itself.
        let swept = sweep(&world, &turns);
        turns.race().await;
        swept.output().unwrap();
        check_put_back(&world).await;
    }));
}

/// The run was brought back as a whole, or it is gone as a whole.
async fn check_put_back(world: &World) {
    let Some(status) = world.runtime().status(RUN).await.unwrap() else {
        assert_eq!(world.runner.seen().len(), 1, "a run that has just ended again is removed");
        return check_nothing_is_left(world).await;
    };
    assert_eq!(status.redrives, 1);
    assert_eq!(work(world.runtime(), &[RUN]).await[0].status, TerminalStatus::Succeeded);
    check_forgotten(world).await;
    assert_eq!(world.hook.ends().len(), 2);
}

/// The hook is owed when the time of the run is over, and its delivery is lost now and then.
#[test]
fn a_run_goes_after_its_hook_was_told_and_a_late_notification_means_nothing() {
    let races = about_the_run_and_its_places().pass(|call| {
        let sought = ["priority/", "signal-expiry/", "workflow-steps"];
        sought.contains(&call.subject.as_str())
            || call.moment == Moment::Answered && call.operation != Operation::Commit
    });
    told(races.run(|turns| async move {
        let world = world(&turns, remembers());
        submit(&world.runtime(), RUN).await;
        assert_eq!(world.runtime().cancel(RUN, None).await.unwrap(), CancelOutcome::Ended);
        tokio::time::sleep(MINUTE).await;
        let (worker, hook) = (runtime(&world, &turns, "loop"), world.hook.clone());
        turns.actor("wait", async move {
            let running = worker.spawn(pending());
            while hook.ends().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            running.shutdown().await.unwrap();
        });
        let (points, disk) = (turns.clone(), world.disk.clone());
        turns.actor("pause", async move {
            points.point("every lease ends").await;
            disk.end_leases();
        });
        turns.race().await;
        let running = world.runtime().spawn(pending());
        while submission(&world).is_some() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        running.shutdown().await.unwrap();
        check_nothing_is_left(&world).await;
        let told: Vec<_> = world.hook.ends().into_iter().map(|end| end.status).collect();
        assert!((1..=2).contains(&told.len()), "{told:?}");
        assert!(told.iter().all(|status| *status == TerminalStatus::Cancelled));
    }));
}

/// A signal that was sent to a run that is gone waits for the next one of its id.
#[test]
fn a_removal_keeps_nothing_of_a_wait() {
    told(about_the_run_and_its_places().run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["k"], Duration::MAX));
        submit(&world.runtime(), RUN).await;
        let running = world.runtime().spawn(pending());
        until_it_waits(&world.runtime(), RUN).await;
        world.runtime().cancel(RUN, None).await.unwrap();
        while world.hook.ends().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.shutdown().await.unwrap();
        tokio::time::sleep(MINUTE).await;
        let swept = sweep(&world, &turns);
        let (sender, redriver) = (runtime(&world, &turns, "signal"), runtime(&world, &turns, "redrive"));
        let sent = turns.actor("signal", async move { sender.signal("k", b"x".to_vec()).await.unwrap() });
        let redriven = turns.actor("redrive", async move { redriver.redrive(RUN, RedriveOptions::default()).await });
        turns.race().await;
        swept.output().unwrap();
        match (redriven.output().unwrap(), sent.output()) {
            (RedriveOutcome::Redriven, SignalOutcome::Delivered | SignalOutcome::Buffered) => {
                let end = work(world.runtime(), &[RUN]).await.remove(0);
                assert_eq!(end.result.as_deref(), Some(&b"k=x"[..]));
                check_forgotten(&world).await;
            }
            (RedriveOutcome::NotFound, SignalOutcome::Buffered) => {
                assert_eq!(world.runtime().clear_signal("k").await.unwrap(), 1);
                assert_eq!(world.rows("signal"), 0);
            }
            other => panic!("{other:?}"),
        }
    }));
}

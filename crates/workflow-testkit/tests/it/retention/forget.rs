//! A run that has ended can be forgotten before its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use workflow_runtime::{
    Error, RedriveOptions, RedriveOutcome, RunFilter, RunSpec, StepError, StepOutcome, WorkflowRuntime,
};
use workflow_testkit::{
    FaultyPort, FaultyStore, Gate, Health, Plan, PortCalls, PortFault, StoreCalls, StoreFault, When,
};

use super::zoo::{ZOO, live, world};
use crate::scripted::{RUN, Scripted, Told, World, settle_down, submit, until_it_waits};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn whatever_run_is_forgotten_nothing_of_it_is_left() {
    for run_id in ZOO {
        let mut world = world();
        world.settings.retention = None;
        let (runtime, _running) = world.running();
        live(&runtime, run_id).await;
        assert!(runtime.forget(run_id).await.unwrap(), "{run_id}");
        assert_eq!(runtime.status(run_id).await.unwrap(), None);
        assert_eq!(runtime.run_end(run_id).await.unwrap(), None);
        assert_eq!(runtime.history(run_id).count().await, 0);
        assert!(!runtime.forget(run_id).await.unwrap());
        assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), 0);
        for state in crate::listing::STATES {
            let filter = RunFilter { state: Some(state), ..RunFilter::default() };
            assert_eq!(runtime.count(filter).await.unwrap(), 0, "{run_id} {state:?}");
        }
        // A dead job goes with the next sweep.
        tokio::time::sleep(3 * MINUTE).await;
        assert_eq!(world.leftovers().await, Vec::<String>::new(), "{run_id}");
        world.stop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_without_a_dead_job_is_gone_without_any_loop() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    runtime.signal("k", vec![7; 100_000]).await.unwrap();
    runtime.wait(RUN).await.unwrap();
    running.shutdown().await.unwrap();
    assert!(runtime.forget(RUN).await.unwrap());
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// Whoever reads on while a run goes is told that it is gone, and not before that is durable.
#[tokio::test(start_paused = true)]
async fn nobody_is_told_of_a_removal_that_a_crash_can_undo() {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::ZERO));
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    running.shutdown().await.unwrap();
    let slow = Plan::of(PortCalls::Get, When::Nth(2), PortFault::Slow(MINUTE));
    let reader = world.over(Arc::new(FaultyPort::new(Arc::new(world.queue.clone()), slow)));
    // The record has been read when the run goes, and the history has not.
    let redriven = tokio::spawn(async move {
        reader.redrive(RUN, RedriveOptions { step: Some(0), ..RedriveOptions::default() }).await
    });
    tokio::time::sleep(MINUTE / 2).await;
    world.disk.hold();
    let forgotten = tokio::spawn(async move { runtime.forget(RUN).await });
    tokio::time::sleep(MINUTE).await;
    assert!(!forgotten.is_finished() && !redriven.is_finished());
    world.disk.release();
    assert!(forgotten.await.unwrap().unwrap());
    assert_eq!(redriven.await.unwrap().unwrap(), RedriveOutcome::NotFound);
}

/// An object of the new payload is on its way, and its writer will not know that it has arrived.
#[tokio::test(start_paused = true)]
async fn a_run_is_not_forgotten_while_somebody_brings_it_back_with_a_large_payload() {
    let world = World::without_hook(Scripted::new(|_| async { Err(StepError::permanent("broken")) }));
    let lost = Plan::of(StoreCalls::Put, When::Nth(1), StoreFault::AnswerLost);
    let gate = Gate::new(Arc::new(FaultyStore::new(world.objects.clone(), lost)));
    let built = WorkflowRuntime::over(
        Arc::new(world.queue.clone()),
        Arc::new(gate.clone()),
        world.runner.clone(),
        world.hook.clone(),
    );
    let runtime = built.build().unwrap();
    let _running = runtime.spawn(std::future::pending());
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    settle_down().await;
    gate.close();
    let other = runtime.clone();
    let redriven = tokio::spawn(async move {
        other.redrive(RUN, RedriveOptions { payload: Some(vec![7; 100_000]), ..RedriveOptions::default() }).await
    });
    gate.until_waiting(1).await;
    assert!(matches!(runtime.forget(RUN).await.unwrap_err(), Error::NotDone(_)));
    gate.open();
    assert!(!redriven.await.unwrap().unwrap_err().is_permanent());
    assert_eq!(world.objects().await, 1);
    assert!(runtime.forget(RUN).await.unwrap());
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_is_not_forgotten() {
    let world = World::new(Scripted::waits_for(&["k"], Duration::MAX));
    let (runtime, _running) = world.running();
    assert!(!runtime.forget(RUN).await.unwrap());
    for id in ["", "a/b", "..", &"x".repeat(129)] {
        assert!(matches!(runtime.forget(id).await.unwrap_err(), Error::InvalidRunId { .. }));
    }
    submit(&runtime, RUN).await;
    let check = async || {
        let error = runtime.forget(RUN).await.unwrap_err();
        assert!(matches!(&error, Error::NotEnded(run_id) if run_id == RUN) && error.is_permanent(), "{error:?}");
    };
    check().await;
    until_it_waits(&runtime, RUN).await;
    check().await;
    runtime.pause(RUN).await.unwrap();
    check().await;
    runtime.resume(RUN).await.unwrap();
    runtime.signal("k", b"x".to_vec()).await.unwrap();
    assert_eq!(crate::scripted::result_of(&runtime, RUN).await, "k=x");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_hook_is_owed_is_not_forgotten() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let mut world = World::new(Scripted::new(|_| async { Err(StepError::permanent("no")) }));
    world.hook = Told::answering(move |_| match well.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(StepError::transient("not well").retry_after(MINUTE)),
    });
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    settle_down().await;
    let asked = tokio::time::Instant::now();
    let error = runtime.forget(RUN).await.unwrap_err();
    assert!(matches!(&error, Error::NotDone(run_id) if run_id == RUN) && !error.is_permanent(), "{error:?}");
    assert!(asked.elapsed() < Duration::from_secs(6), "{:?}", asked.elapsed());
    assert_eq!(runtime.run_end(RUN).await.unwrap(), Some(end));
    is_well.store(true, Ordering::Relaxed);
    tokio::time::sleep(2 * MINUTE).await;
    assert!(runtime.forget(RUN).await.unwrap());
}

/// The delivery that ended the run is not settled yet, and its hook is about to be called.
#[tokio::test(start_paused = true)]
async fn a_run_is_forgotten_right_after_its_end() {
    for calls in [1, 2] {
        let mut world = World::new(Scripted::new(|_| async { Ok(StepOutcome::Succeed { result: Vec::new() }) }));
        let left = std::sync::atomic::AtomicUsize::new(calls);
        world.hook = Told::answering(move |_| match left.fetch_sub(1, Ordering::Relaxed) {
            1 => Ok(()),
            _ => Err(StepError::transient("not well").retry_after(Duration::from_secs(2))),
        });
        let (runtime, _running) = world.running();
        submit(&runtime, RUN).await;
        runtime.wait(RUN).await.unwrap();
        assert!(runtime.forget(RUN).await.unwrap());
        assert_eq!((runtime.run_end(RUN).await.unwrap(), world.hook.ends().len()), (None, calls));
        assert_eq!(world.leftovers().await, Vec::<String>::new());
    }
}

/// The first end of the run is still owed when it has ended for the second time.
#[tokio::test(start_paused = true)]
async fn a_run_is_not_forgotten_while_any_of_its_ends_is_owed() {
    let mut world = World::new(Scripted::new(|_| async { Ok(StepOutcome::Fail { reason: "no".to_owned() }) }));
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    world.hook = Told::answering(move |_| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Err(StepError::transient("not well").retry_after(10 * MINUTE)),
        _ => Ok(()),
    });
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    runtime.wait(RUN).await.unwrap();
    settle_down().await;
    assert_eq!(runtime.redrive(RUN, RedriveOptions::default()).await.unwrap(), RedriveOutcome::Redriven);
    runtime.wait(RUN).await.unwrap();
    settle_down().await;
    assert!(matches!(runtime.forget(RUN).await.unwrap_err(), Error::NotDone(_)));
    tokio::time::sleep(11 * MINUTE).await;
    assert_eq!(world.hook.ends().len(), 3);
    assert!(runtime.forget(RUN).await.unwrap());
}

/// The id is free at once, while something of the run before is still to be removed.
#[tokio::test(start_paused = true)]
async fn the_id_of_a_forgotten_run_is_free_at_once() {
    let world = World::without_hook(Scripted::new(|step| async move {
        assert_eq!(step.memo.get("m").await?, None);
        step.memo.put("m", b"m").await?;
        Err(StepError::permanent("no"))
    }));
    let (runtime, _running) = world.running();
    for _ in 0..5 {
        assert!(submit(&runtime, RUN).await.newly_submitted);
        let end = runtime.wait(RUN).await.unwrap();
        assert_eq!(end.error.as_deref(), Some("no"));
        assert!(runtime.forget(RUN).await.unwrap());
    }
    assert_eq!(world.runner.seen().len(), 5);
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_forgets_nothing() {
    let world = World::without_hook(Scripted::new(|_| async { Ok(StepOutcome::Succeed { result: Vec::new() }) }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::none());
    let other = world.over(Arc::new(port.clone()));
    port.set_health(Health::Down);
    let error = other.forget(RUN).await.unwrap_err();
    assert!(!error.is_permanent(), "{error:?}");
    assert_eq!(runtime.run_end(RUN).await.unwrap(), Some(end));
    port.set_health(Health::Well);
    assert!(other.forget(RUN).await.unwrap());
    assert_eq!(runtime.run_end(RUN).await.unwrap(), None);
}

/// Nothing of the run is left that would tell its submitter, another process, that it was made.
#[tokio::test(start_paused = true)]
async fn a_submission_whose_run_is_gone_before_it_has_an_answer_makes_no_second_run() {
    let world = World::without_hook(Scripted::new(|_| async { Ok(StepOutcome::Succeed { result: Vec::new() }) }));
    let world = world.with(|s| s.retention = Some(Duration::ZERO));
    let lost = Plan::of(PortCalls::Commit, When::Nth(1), PortFault::AnswerLost);
    // What the sender reads before its commit is the first.
    let looks_late = lost.and(PortCalls::Get, When::Nth(2), PortFault::Slow(10 * MINUTE));
    let sender = world.over(Arc::new(FaultyPort::new(Arc::new(world.queue.clone()), looks_late)));
    let (_runtime, _running) = world.running();
    let spec = RunSpec { run_id: Some(RUN.to_owned()), ..RunSpec::default() };
    let answer = sender.submit(spec).await;
    assert!(answer.is_err_and(|error| !error.is_permanent()), "nothing tells any more that it was made");
    settle_down().await;
    assert_eq!(world.runner.seen().len(), 1);
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

//! What a call of `cancel` answers is so, and its reason is kept as it was given.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use workflow_runtime::{CancelOutcome, Error, StepOutcome, TerminalStatus};
use workflow_testkit::{FaultyPort, Plan};

use crate::scripted::{RUN, Scripted, World, submit, until_it_waits};

fn waits() -> World {
    World::new(Scripted::waits_for(&["k"], Duration::MAX))
}

#[tokio::test(start_paused = true)]
async fn nobody_is_not_found_and_a_bad_id_is_an_error() {
    let world = waits();
    let runtime = world.runtime();
    assert_eq!(runtime.cancel(RUN, None).await.unwrap(), CancelOutcome::NotFound);
    for id in ["", "a/b", "..", &"x".repeat(129)] {
        let error = runtime.cancel(id, None).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRunId { .. }) && error.is_permanent(), "{error:?}");
    }
    assert!(world.disk.entries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_came_before_is_told_as_it_was() {
    let large = vec![7; 100_000];
    let result = large.clone();
    let world = World::new(Scripted::new(move |_| {
        let result = result.clone();
        async move { Ok(StepOutcome::Succeed { result }) }
    }));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    let entries = world.disk.entries();
    let CancelOutcome::AlreadyEnded(told) = runtime.cancel(RUN, None).await.unwrap() else { panic!("it had ended") };
    assert_eq!((told.status, told.result.as_deref()), (TerminalStatus::Succeeded, Some(&large[..])));
    assert_eq!(told, end);
    assert!(world.disk.entries().len() <= entries.len());
}

#[tokio::test(start_paused = true)]
async fn of_many_who_cancel_one_ends_the_run_and_its_reason_stays() {
    let world = waits();
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    let calls = (0..8).map(|number| runtime.cancel(RUN, Some(number.to_string())));
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let ended: Vec<_> = (0..8).filter(|&number| answers[number] == CancelOutcome::Ended).collect();
    assert_eq!(ended.len(), 1, "{answers:?}");
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!(end.error, Some(ended[0].to_string()));
    for answer in answers.into_iter().filter(|answer| *answer != CancelOutcome::Ended) {
        assert_eq!(answer, CancelOutcome::AlreadyEnded(end.clone()));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.hook.ends(), [end]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_one_commit() {
    let world = waits();
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::none());
    let other = world.over(Arc::new(port.clone()));
    assert_eq!(other.cancel(RUN, None).await.unwrap(), CancelOutcome::Ended);
    assert_eq!(port.counts().commits, 1);
    assert!(matches!(other.cancel(RUN, None).await.unwrap(), CancelOutcome::AlreadyEnded(_)));
    assert_eq!(port.counts().commits, 1);
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_kept_up_to_its_limit() {
    for (reason, kept) in [("", 0), ("why", 3), (&"é\0".repeat(10_000), 8 * 1024)] {
        let world = waits();
        let runtime = world.runtime();
        submit(&runtime, RUN).await;
        runtime.cancel(RUN, Some(reason.to_owned())).await.unwrap();
        let error = runtime.run_end(RUN).await.unwrap().unwrap().error.unwrap();
        assert!(error.len() <= kept && error.len() + 10 >= kept, "{}", error.len());
        assert!(reason.starts_with(error.trim_end_matches(|c: char| c != 'é' && c != '\0')) || error == reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_cancels_all_the_same() {
    let world = waits();
    let runtime = world.runtime();
    submit(&runtime, RUN).await;
    world.disk.hold();
    let call = tokio::time::timeout(Duration::from_secs(1), runtime.cancel(RUN, None));
    assert!(call.await.is_err());
    world.disk.release();
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Cancelled);
}

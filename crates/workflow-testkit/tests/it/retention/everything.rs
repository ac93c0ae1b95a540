//! Nothing of a run is left after its time, and nothing of anybody else is touched.

use std::time::Duration;

use workflow_runtime::{RunFilter, RunOrder};

use futures::StreamExt;

use super::zoo::{KEPT, ZOO, live, live_all, outlive, world};
use crate::scripted::{Scripted, World, settle_down, submit, until_it_waits};

/// The rows of applications.
fn applications(world: &World) -> usize {
    world.disk.entries().iter().filter(|(key, _)| key.starts_with(b"app/")).count()
}

#[tokio::test(start_paused = true)]
async fn nothing_of_any_run_is_left_but_what_it_gave_to_its_application() {
    let world = world();
    let (runtime, _running) = world.running();
    live_all(&runtime).await;
    settle_down().await;
    assert!(world.leftovers().await.len() > 10 * ZOO.len());
    assert_eq!((world.objects().await > 4 * ZOO.len(), applications(&world)), (true, ZOO.len()));
    outlive(&world).await;
    assert_eq!(world.leftovers().await, Vec::<String>::new());
    assert_eq!((world.rows("priority"), applications(&world)), (1, ZOO.len()));
    assert_eq!(runtime.count(RunFilter::default()).await.unwrap(), 0);
    for run_id in ZOO {
        assert_eq!(runtime.status(run_id).await.unwrap(), None);
        assert_eq!(runtime.run_end(run_id).await.unwrap(), None);
        assert_eq!(runtime.history(run_id).count().await, 0);
    }
}

/// Each kind by itself, for whatever one of them leaves might go with another.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_run_is_left_that_was_the_only_one() {
    for run_id in ZOO {
        let world = world();
        let (runtime, _running) = world.running();
        live(&runtime, run_id).await;
        outlive(&world).await;
        assert_eq!(world.leftovers().await, Vec::<String>::new(), "{run_id}");
        world.stop();
    }
}

/// Ended runs go, each at its time; those that go on, wait, are paused or came later do not notice.
#[tokio::test(start_paused = true)]
async fn what_belongs_to_others_stays() {
    let world = world();
    let (runtime, _running) = world.running();
    live_all(&runtime).await;
    let mut others = World::without_hook(Scripted::waits_for(&["theirs"], Duration::MAX));
    (others.disk, others.queue) = (world.disk.clone(), world.queue.clone());
    others.settings.queue_name = "others".to_owned();
    let (theirs, _running_theirs) = others.running();
    submit(&theirs, "waits").await;
    until_it_waits(&theirs, "waits").await;
    theirs.signal("nobody", b"x".to_vec()).await.unwrap();
    tokio::time::sleep(KEPT / 2).await;
    live(&runtime, "a-later-one").await;
    tokio::time::sleep(KEPT * 3 / 4).await;
    let left: Vec<_> = runtime.runs(RunFilter::default(), RunOrder::OldestFirst).collect().await;
    let left: Vec<_> = left.into_iter().map(|run| run.unwrap().run_id).collect();
    assert_eq!(left, ["a-later-one"]);
    assert!(runtime.run_end("a-later-one").await.unwrap().is_some());
    assert_eq!(theirs.count(RunFilter::default()).await.unwrap(), 1);
    theirs.signal("theirs", b"x".to_vec()).await.unwrap();
    assert_eq!(crate::scripted::result_of(&theirs, "waits").await, "theirs=x");
    assert_eq!(theirs.clear_signal("nobody").await.unwrap(), 1);
}

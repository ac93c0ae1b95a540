//! Objects that nothing names: a process died between writing one and the commit that was to name it.

use std::time::Duration;

use workflow_runtime::{RunSpec, StepOutcome};
use workflow_testkit::ClockStep;

use crate::objects::{run_rows, signal_rows};
use crate::scripted::{RUN, Scripted, World, settle_down};

const LARGE: usize = 100_000;
const HOUR: Duration = Duration::from_secs(3_600);

fn large() -> RunSpec {
    RunSpec { run_id: Some(RUN.to_owned()), input: vec![1; LARGE], ..RunSpec::default() }
}

fn world() -> World {
    World::without_hook(Scripted::new(|step| async move { Ok(StepOutcome::Succeed { result: step.payload }) }))
}

/// A world in which a process has died right before it could commit what names an object: a submission, or a signal.
async fn orphaned(signalled: bool) -> World {
    let mut world = world();
    let runtime = world.runtime();
    // The row that tells of the object becomes durable, and nothing after it.
    world.disk.cut_power_after(1);
    tokio::select! {
        biased;
        () = world.disk.cut() => {}
        _ = runtime.submit(large()), if !signalled => panic!("answered without power"),
        _ = runtime.signal("k", vec![1; LARGE]), if signalled => panic!("answered without power"),
    }
    world.crash();
    assert_eq!(world.objects().await, 1);
    world
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nothing_names_goes_after_a_day_with_its_row() {
    for signalled in [false, true] {
        let world = orphaned(signalled).await;
        assert_eq!(
            (run_rows(&world).len(), signal_rows(&world).len()),
            (usize::from(!signalled), usize::from(signalled))
        );
        look(&world).await;
        assert_eq!(world.objects().await, 1, "somebody may be about to name it");
        world.disk.clock().set(ClockStep::Forwards(25 * HOUR));
        look(&world).await;
        assert_eq!(world.leftovers().await, Vec::<String>::new());
    }
}

/// Lets a loop run for a while: it looks when it starts.
async fn look(world: &World) {
    let (_, running) = world.running();
    settle_down().await;
    running.shutdown().await.unwrap();
}

/// Whatever a pass finds named stays, however old it is.
#[tokio::test(start_paused = true)]
async fn an_object_that_a_run_or_a_buffered_signal_names_stays() {
    let mut world = world();
    world.settings.retention = None;
    world.settings.signal_ttl = Duration::MAX;
    let (runtime, running) = world.running();
    runtime.submit(large()).await.unwrap();
    runtime.signal("k", vec![1; LARGE]).await.unwrap();
    runtime.wait(RUN).await.unwrap();
    let before = world.objects().await;
    running.shutdown().await.unwrap();
    world.disk.clock().set(ClockStep::Forwards(100 * HOUR));
    look(&world).await;
    assert_eq!((world.objects().await, run_rows(&world).len(), signal_rows(&world).len()), (before, 1, 1));
    assert_eq!(runtime.check().await.unwrap(), []);
}

//! Scenarios that wait for long: time that nothing happens in costs next to nothing.

use std::time::Duration;

use workflow_runtime::{NoopTerminalHook, RunSpec};
use workflow_testkit::{Sim, explore};

use crate::scripted::{RUN, Scripted};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A run that waits so long for a signal that never comes.
async fn waits(sim: Sim, time: Duration) {
    let start = *sim.keep(|| sim.now());
    let runtime = sim.start(Scripted::waits_for(&["k"], time), NoopTerminalHook);
    runtime.submit(RunSpec { run_id: Some(RUN.to_owned()), ..RunSpec::default() }).await.unwrap();
    assert_eq!(runtime.wait(RUN).await.unwrap().result.as_deref(), Some(&b"-"[..]));
    assert!(sim.now() >= start + time);
}

#[test]
fn a_wait_of_a_day_has_few_points() {
    let held = explore(|sim| waits(sim, DAY));
    println!("{held}");
    // Each hour somebody looks for missing doorbells, signals that are over, and runs to remove.
    assert!(held.exhaustive && held.points < 24 * 12 + 60, "{held}");
}

#[test]
fn a_wait_of_a_month_passes() {
    Sim::run(1, |sim| waits(sim, 30 * DAY));
}

#[test]
fn time_in_which_nothing_is_due_passes_at_a_stroke() {
    Sim::run(1, |sim| async move {
        waits(sim.clone(), Duration::ZERO).await;
        let before = sim.disk().clock().skipped().len();
        sim.advance(DAY / 2).await;
        let jumps = sim.disk().clock().skipped().len() - before;
        assert!(jumps < 12 * 10, "{jumps} jumps, the last: {:?}", sim.disk().clock().skipped().last());
    });
}

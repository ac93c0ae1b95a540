//! What of the state machine is exercised, told by runtimes themselves.

mod ours;
mod page;
mod phases;

use workflow_core::{Run, RunId};
use workflow_effects::{KeySpace, decode_run};
use workflow_runtime::PhaseKind;
use workflow_runtime::port::Clock;

use crate::scripted::World;

/// A run, as its record tells.
fn run_of(world: &World, run_id: &str) -> Run {
    let run_id = RunId::parse(run_id).unwrap();
    let key = KeySpace::new(&world.settings.queue_name).run(&run_id);
    let record = world.disk.entries().into_iter().find(|(found, _)| *found == key).map(|(_, record)| record);
    decode_run(&run_id, record.as_deref()).unwrap()
}

/// The phase that a run is in.
fn phase_of(world: &World, run_id: &str) -> PhaseKind {
    run_of(world, run_id).phase_kind(world.disk.clock().now())
}

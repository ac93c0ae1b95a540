//! The real runtime under faults of every kind, drawn by seed: whatever happens, every run ends once with the right
//! result, and what its steps and its hook stage is applied once. Then the faults stop, and everything ends.

mod mischief;
mod plans;
mod workload;
mod world;

pub(crate) use self::mischief::mischief;
pub(crate) use self::plans::Faults;
pub(crate) use self::workload::Drawn;
use self::world::{Course, simulate};

/// So many seeds of `faults`, or as many as the environment says in `SEEDS`. Gives what was met, so that a test can
/// check that it was.
fn survive(faults: Faults, seeds: u64) -> Vec<Course> {
    let asked = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    (0..asked.unwrap_or(seeds)).map(|seed| simulate(seed, faults)).collect()
}

#[test]
fn a_queue_that_fails_by_chance_harms_no_run() {
    let courses = survive(Faults { port: true, ..Faults::default() }, 10);
    assert!(courses.iter().all(|course| course.faults_met() > 10));
}

#[test]
fn an_object_store_that_fails_by_chance_harms_no_run() {
    let courses = survive(Faults { store: true, ..Faults::default() }, 5);
    assert!(courses.iter().any(|course| course.objects.rules.len() > 5));
}

#[test]
fn a_clock_that_is_set_forwards_and_back_harms_no_run() {
    survive(Faults { clock: true, ..Faults::default() }, 5);
}

#[test]
fn leases_that_end_all_at_once_and_a_disk_that_holds_writes_back_harm_no_run() {
    survive(Faults { disk: true, ..Faults::default() }, 5);
}

#[test]
fn processes_that_die_in_the_middle_of_everything_harm_no_run() {
    let courses = survive(Faults { deaths: true, ..Faults::default() }, 8);
    assert!(courses.iter().any(|course| course.deaths > 2));
}

#[test]
fn all_of_it_at_once_harms_no_run() {
    survive(Faults::all(), 10);
}

#[test]
fn a_seed_means_one_course_of_events() {
    for seed in 100..104 {
        let first = simulate(seed, Faults::all());
        assert_eq!(simulate(seed, Faults::all()), first, "seed {seed}");
    }
}

//! Our own proof: random users call everything that a runtime offers, runs do everything that a run can, and processes
//! meet every fault. Then the faults stop, and everything ends. All the while the invariants watch.

mod answer;
mod committed;
mod event;
mod invariants;
mod marks;
mod op;
mod script;
mod users;
mod witness;
mod workload;
mod world;

use std::fmt;
use std::time::{Duration, Instant};

use self::marks::{Mark, Marks};
use self::world::{Course, simulate};

/// How many seeds are simulated at each change of the code.
const SEEDS: u64 = 20;

/// The simulation of `seed`, in which everything holds.
fn hold(seed: u64) -> Course {
    simulate(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}replay: cargo xtask sim --seed {seed}"))
}

/// What came of many seeds.
struct Total {
    start: Instant,
    seeds: u64,
    operations: u64,
    marks: Marks,
}

impl Total {
    fn new() -> Self {
        Self { start: Instant::now(), seeds: 0, operations: 0, marks: Marks::default() }
    }

    fn add(&mut self, course: &Course) {
        self.seeds += 1;
        self.operations += course.operations;
        self.marks.add(&course.marks);
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = self.operations as f64 / seconds;
        writeln!(f, "{} seeds, {} operations in {seconds:.1} s, {rate:.0} a second", self.seeds, self.operations)?;
        write!(f, "{}", self.marks)
    }
}

#[test]
fn whatever_happens_every_invariant_holds_and_every_case_is_reached() {
    let mut total = Total::new();
    (0..SEEDS).for_each(|seed| total.add(&hold(seed)));
    println!("{total}");
    let missed: Vec<Mark> = Mark::ALL.into_iter().filter(|mark| total.marks.count(*mark) == 0).collect();
    assert_eq!(missed, []);
}

#[test]
fn one_seed_is_one_trace() {
    let courses: Vec<Course> = (100..103).map(hold).collect();
    for (seed, course) in (100..).zip(&courses) {
        assert_eq!(hold(seed), *course, "seed {seed}");
    }
    assert_ne!(courses[0].trace, courses[1].trace);
}

/// From the seed in `SIM_SEED` on, one seed or as many as fit into `SIM_MINUTES`: `cargo xtask sim`.
#[test]
#[ignore = "goes on for as long as it is told to"]
fn from_one_seed_on_for_as_long_as_asked() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let first = number("SIM_SEED").unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(60 * number("SIM_MINUTES").unwrap_or(0));
    let mut total = Total::new();
    for seed in first.. {
        total.add(&hold(seed));
        if Instant::now() >= end {
            break;
        }
    }
    println!("{total}");
}

//! The power is cut at every single write of a scenario, and the store opened again: whatever was acknowledged before
//! the cut still holds, and everything comes to its one right end.
//!
//! How writes of concurrent tasks are grouped is left to chance, so that a cut at the n-th write is not the same cut
//! each time; what is checked holds at any.

mod checks;
mod log;
mod scenario;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use workflow_testkit::PowerCut;

use self::log::Log;
use self::scenario::{client, opened};

/// How long a process lives on after its power was cut, so that it has the time to say something wrong.
const AFTERLIFE: Duration = Duration::from_millis(10);
/// How often the power is cut at each write: each round groups the writes of concurrent tasks as it happens.
const ROUNDS: usize = 4;
/// Nothing takes so long.
const STUCK: Duration = Duration::from_secs(60);

/// Runs `process` to its end or to the cut, whichever comes first, and drops all of it.
fn lives(process: impl Future<Output = ()>, power: &PowerCut) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let cut = async {
            power.cut().await;
            tokio::time::sleep(AFTERLIFE).await;
        };
        let lived = async {
            tokio::select! {
                biased;
                () = cut => {}
                () = process => {}
            }
        };
        tokio::time::timeout(STUCK, lived).await.expect("nothing ends, and nobody cut the power");
    });
    tokio.shutdown_background();
}

/// One life of the scenario's process on `disk`, with so many writes before the power is cut. At the start it checks
/// that what earlier lives were told still holds.
fn live(disk: &Arc<InMemory>, log: &Log, writes: usize) -> PowerCut {
    let power = PowerCut::after(writes, disk.clone());
    let store: Arc<dyn ObjectStore> = Arc::new(power.clone());
    log.process_starts();
    lives(
        async {
            let process = opened(store, log).await;
            checks::what_was_told_holds(&process, log).await;
            client(&process, log).await;
        },
        &power,
    );
    power
}

/// The last life: nothing fails, everything ends.
fn live_to_the_end(disk: &Arc<InMemory>, log: &Log) {
    let power = PowerCut::after(usize::MAX, disk.clone());
    log.process_starts();
    lives(
        async {
            let process = opened(disk.clone(), log).await;
            checks::what_was_told_holds(&process, log).await;
            client(&process, log).await;
            checks::everything_ended_right(&process, log).await;
        },
        &power,
    );
    checks::nothing_told_contradicts(log);
}

/// Lives once with so many writes as each of `cuts` says, then to the end. The power of each life: a process may have
/// done its work before the cut.
fn check(cuts: &[usize]) -> Vec<PowerCut> {
    let (disk, log) = (Arc::new(InMemory::new()), Log::default());
    let survived = catch_unwind(AssertUnwindSafe(|| {
        let powers = cuts.iter().map(|writes| live(&disk, &log, *writes)).collect();
        live_to_the_end(&disk, &log);
        powers
    }));
    survived.unwrap_or_else(|panic| {
        eprintln!("the power was cut after {cuts:?} writes; told:\n{}", log.text());
        resume_unwind(panic)
    })
}

/// Checks all of `cases` on two threads. Most of their cuts must happen, or little was shown.
fn check_all(cases: &[Vec<usize>]) {
    let (next, happened) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(cuts) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cut = check(cuts).iter().filter(|power| power.is_cut()).count();
            happened.fetch_add(cut, Ordering::Relaxed);
        }
    };
    std::thread::scope(|threads| {
        let other = threads.spawn(work);
        work();
        other.join().expect("the cuts of the other thread are survived");
    });
    let (happened, planned) = (happened.into_inner(), cases.iter().map(Vec::len).sum::<usize>());
    println!("{happened} of {planned} cuts happened");
    assert!(happened > planned / 2, "{happened} of {planned} cuts happened");
}

/// The number of writes of a scenario that nobody interrupts.
fn writes_of_the_scenario() -> usize {
    let writes = check(&[usize::MAX])[0].writes();
    assert!(writes > 10, "the scenario makes {writes} writes only");
    writes
}

#[test]
fn a_power_cut_at_any_write_loses_nothing_that_was_acknowledged() {
    let writes = writes_of_the_scenario();
    let cases: Vec<_> = (0..ROUNDS).flat_map(|_| (0..=writes).map(|writes| vec![writes])).collect();
    check_all(&cases);
}

#[test]
fn neither_does_a_second_cut_while_the_first_is_recovered_from() {
    let writes = writes_of_the_scenario();
    // Early and late first cuts meet early and late second ones, and a third that comes early.
    let cases: Vec<_> = (0..writes).map(|first| vec![first, first * 7 % writes, first * 3 % 11]).collect();
    check_all(&cases);
}

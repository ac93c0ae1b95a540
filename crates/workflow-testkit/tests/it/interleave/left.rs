//! What is left of runs, anywhere in the store: rows, places in indexes, jobs, objects.

use std::future::pending;
use std::time::Duration;

use workflow_effects::{KeySpace, decode_run};
use workflow_runtime::Error;
use workflow_testkit::{Call, Interleaver, Moment, Operation};

use crate::scripted::{RUN, World};

/// One submission of a run, by the number that whatever belongs to it names.
#[derive(Debug, PartialEq)]
pub(super) struct Submission([u8; 16]);

/// The submission that the record of the only run is of.
pub(super) fn submission(world: &World) -> Option<Submission> {
    let keys = KeySpace::new(&world.settings.queue_name);
    world.disk.entries().iter().find_map(|(key, record)| {
        let run = decode_run(&keys.parse_run(key)?, Some(record)).unwrap();
        Some(Submission(run.incarnation()?.value().to_be_bytes()))
    })
}

/// What names the submission: keys, what they hold, jobs.
pub(super) fn left_of(world: &World, Submission(number): &Submission) -> Vec<String> {
    let reversed: Vec<u8> = number.iter().rev().copied().collect();
    let names = |bytes: &[u8]| bytes.windows(number.len()).any(|part| part == number || *part == *reversed);
    let entries = world.disk.entries();
    let rows = entries.iter().filter(|(key, value)| names(key) || names(value));
    let jobs = world.disk.jobs().into_iter().filter(|(_, job)| names(&job.payload));
    rows.map(|(key, _)| key.escape_ascii().to_string()).chain(jobs.map(|(id, _)| id.to_string())).collect()
}

/// Checks that nothing is left of any run, once a loop had its time: it removes dead jobs, and deliveries that were
/// overtaken come back to it when their leases end.
pub(super) async fn check_nothing_is_left(world: &World) {
    if !world.leftovers().await.is_empty() {
        world.disk.end_leases();
        let running = world.runtime().spawn(pending());
        tokio::time::sleep(Duration::from_millis(500)).await;
        running.shutdown().await.unwrap();
    }
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// Forgets the run, which has ended, as soon as its hook was told, and checks that nothing of it is left.
pub(super) async fn check_forgotten(world: &World) {
    let runtime = world.runtime();
    if matches!(runtime.forget(RUN).await, Err(Error::NotDone(_))) {
        let running = runtime.spawn(pending());
        while let Err(Error::NotDone(_)) = runtime.forget(RUN).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.shutdown().await.unwrap();
    }
    assert_eq!(submission(world), None);
    check_nothing_is_left(world).await;
}

/// Races in which a choice is what is asked about the run: not what loops look for beside it, nor when an answer comes
/// but a commit's.
pub(super) fn about_the_run() -> Interleaver {
    bounded().pass(|call| call.operation == Operation::Scan || is_beside(call))
}

/// The same races where it matters when runs are looked for.
pub(super) fn about_the_run_and_its_places() -> Interleaver {
    let sought = ["priority/", "signal-expiry/"];
    bounded().pass(move |call| sought.contains(&call.subject.as_str()) || is_beside(call))
}

fn bounded() -> Interleaver {
    Interleaver::new().exhaustive_up_to(45).samples(20).seed(7)
}

fn is_beside(call: &Call) -> bool {
    let is_told = call.moment == Moment::Answered && call.operation != Operation::Commit;
    is_told || call.subject.ends_with(".notifications") && call.operation == Operation::Claim
}

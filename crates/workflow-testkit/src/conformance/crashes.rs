//! Death at every single durable write of a scenario, and what the next process must find.

mod scenario;

use std::collections::BTreeMap;

use workflow_runtime::port::{ClaimedJob, JobId, Read};

use self::scenario::{Begun, End, Facts, Told, live, row, twin};
use super::Subject;
use super::world::{World, ids};

/// The fewest writes that the scenario makes. With less, the store has little in which to die.
const FEWEST_WRITES: u64 = 20;

/// "Applied as a whole or not at all", "durable when it returns", "visible in the order in which they become durable",
/// "every claim that became durable", "until the settlement is durable": at each write n, a process dies.
pub async fn a_crash_at_any_write_leaves_whole_commits_without_a_gap_and_all_that_was_answered<S: Subject>() {
    for writes in 0.. {
        let subject = S::new();
        let told = Told::default();
        let died = match subject.open_with_power_for(writes).await {
            None => true,
            Some(port) => {
                tokio::select! {
                    biased;
                    () = subject.cut() => true,
                    () = live(port, &told) => false,
                }
            }
        };
        let port = subject.open().await;
        println!("the power is cut after {writes} writes; told: {told:?}");
        check(&World { subject, port }, &told).await;
        if !died {
            assert!(writes >= FEWEST_WRITES, "the scenario makes {writes} writes only");
            return;
        }
    }
}

/// Checks that what was told still holds, and that the rest makes sense.
async fn check<S: Subject>(world: &World<S>, told: &Told) {
    let there = check_commits(world, told).await;
    let found = Found { deliveries: deliveries(world.claim(99).await), dead: world.dead().await };
    check_jobs(found, &there, &told.lock());
}

/// Which commits are there: whole ones, the answered ones, and with each all that came before it.
async fn check_commits<S: Subject>(world: &World<S>, told: &Told) -> Vec<bool> {
    let count = told.lock().commits.len();
    let (mut there, mut chain) = (Vec::new(), None);
    for number in 0..count {
        let row = world.get(&row(number), Read::Durable).await.is_some();
        let twin = world.get(&twin(number), Read::Durable).await.is_some();
        assert_eq!(row, twin, "commit {number} is there by half");
        there.push(row);
        let commit = &told.lock().commits[number];
        assert!(row || !commit.answered, "commit {number} was answered and is gone");
        let whole_past = there[..commit.follows].iter().all(|there| *there);
        assert!(!row || whole_past, "commit {number} is there, and not all that came before it");
        if row && commit.is_link {
            chain = Some(number.to_string());
        }
    }
    assert_eq!(world.latest("chain").await, chain.map(Into::into));
    there
}

/// The jobs that a process finds.
struct Found {
    deliveries: BTreeMap<JobId, u32>,
    dead: Vec<JobId>,
}

/// Checks that each job is where its commit and its settlement say, and nowhere else.
fn check_jobs(mut found: Found, there: &[bool], told: &Facts) {
    for (number, (there, Begun { job, .. })) in there.iter().zip(&told.commits).enumerate() {
        let delivered = found.deliveries.remove(job);
        let dead = found.dead.iter().position(|dead| dead == job).map(|at| found.dead.remove(at)).is_some();
        let is_right = match told.ends.get(job) {
            _ if !there => delivered.is_none() && !dead,
            None => delivered.is_some() && !dead,
            Some((End::Acked, true)) => delivered.is_none() && !dead,
            Some((End::Acked, false)) => !dead,
            Some((End::Dead, true)) => delivered.is_none() && dead,
            Some((End::Dead, false)) => delivered.is_some() != dead,
            Some((End::Dropped, true)) => delivered.is_none() && !dead,
            Some((End::Dropped, false)) => delivered.is_none() || !dead,
        };
        assert!(is_right, "job {number} was delivered: {delivered:?}, is dead: {dead}");
        let claims = told.claims.get(job).copied().unwrap_or_default();
        // A dead one that is dropped half-way begins anew.
        let is_dropped = matches!(told.ends.get(job), Some((End::Dropped, _)));
        if let Some(delivered) = delivered.filter(|_| !is_dropped) {
            let counted = claims.persisted + 1..=claims.begun + 1;
            assert!(counted.contains(&delivered), "job {number} is delivered for the {delivered}th time: {claims:?}");
        }
    }
    assert!(found.deliveries.is_empty(), "nobody has queued {:?}", found.deliveries);
    assert!(found.dead.is_empty(), "nobody has queued {:?}", found.dead);
}

/// How often each job was delivered, this time included.
fn deliveries(claimed: Vec<ClaimedJob>) -> BTreeMap<JobId, u32> {
    let deliveries: BTreeMap<_, _> = claimed.iter().map(|job| (job.job.clone(), job.deliveries)).collect();
    assert_eq!(deliveries.len(), claimed.len(), "a job is delivered twice: {:?}", ids(&claimed));
    deliveries
}

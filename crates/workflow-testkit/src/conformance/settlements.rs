//! How claims end.

use workflow_runtime::port::{JobState, Settlement};

use super::Subject;
use super::world::{
    LEASE, MOMENT, QUEUE, SECONDS, World, assert_waits, eventually, give_up_after, ringing, ringing_in, soon,
};

/// "The job is done and forgotten."
pub async fn an_acknowledged_job_is_forgotten<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(None).await;
    world.ack(&world.claim_one().await.claim).await;
    tokio::time::sleep(LEASE + SECONDS).await;
    world.assert_no_job().await;
    let world = world.crash().await;
    world.assert_no_job().await;
    assert!(world.dead().await.is_empty());
}

/// "The job is kept among the dead ones." "The ids of the dead jobs of `queue`, at most `limit`."
pub async fn a_dead_job_is_kept_and_not_delivered<S: Subject>() {
    let world = World::<S>::new().await;
    assert!(world.dead().await.is_empty());
    let mut dead = Vec::new();
    for _ in 0..3 {
        dead.push(world.ring(None).await);
        world.bury(&world.claim_one().await.claim).await;
    }
    let other = world.port.next_job_id();
    world.commit(ringing_in("other", &other, None)).await.expect("a job with a fresh id is queued");
    let claimed = world.port.claim("other", 1, LEASE).await.expect("an open queue answers a claim").remove(0);
    world.bury(&claimed.claim).await;
    tokio::time::sleep(LEASE + SECONDS).await;
    for _ in 0..2 {
        world.assert_no_job().await;
        assert_eq!(world.dead().await, dead);
        let port = world.port.clone();
        let of = async |queue, limit| port.dead_jobs(queue, limit).await.expect("an open queue tells its dead jobs");
        assert_eq!(of("other", 9).await, std::slice::from_ref(&other));
        assert!(of("neither", 9).await.is_empty());
        for limit in 0..3 {
            let some = of(QUEUE, limit).await;
            assert_eq!(some.len(), limit);
            assert!(some.iter().all(|job| dead.contains(job)));
        }
    }
    let world = world.crash().await;
    assert_eq!(world.dead().await, dead);
    world.assert_no_job().await;
}

/// "It carries no effects, so that a repetition changes nothing."
pub async fn a_repeated_settlement_changes_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    world.ring(None).await;
    let acked = world.claim_one().await.claim;
    world.ack(&acked).await;
    let dead = world.ring(None).await;
    let buried = world.claim_one().await.claim;
    world.bury(&buried).await;
    for claim in [&acked, &buried] {
        world.ack(claim).await;
        world.bury(claim).await;
    }
    assert_eq!(world.dead().await, [dead]);
    world.assert_no_job().await;
}

/// "Until the settlement is durable."
pub async fn a_settlement_is_answered_once_it_is_durable<S: Subject>() {
    for die in [false, true] {
        let world = World::<S>::new().await;
        let job = world.ring(None).await;
        let claim = world.claim_one().await.claim;
        world.port.persist_claims().await.expect("an open queue persists its claims");
        world.subject.hold();
        let settlement = if die { Settlement::Dead(claim, "because".to_owned()) } else { Settlement::Ack(claim) };
        let mut settled = Box::pin(world.port.settle(settlement));
        assert_waits(&mut settled).await;
        world.subject.release();
        soon(settled).await.expect("an open queue settles a claim");
        let world = world.crash().await;
        world.assert_no_job().await;
        assert_eq!(world.dead().await, if die { vec![job] } else { Vec::new() });
    }
}

/// "Jobs that nobody holds are forgotten, waiting or dead."
pub async fn jobs_that_nobody_holds_can_be_dropped<S: Subject>() {
    let world = World::<S>::new().await;
    let dead = [world.ring(None).await, world.ring(None).await];
    for claimed in world.claim(9).await {
        world.bury(&claimed.claim).await;
    }
    let late = world.ring(Some(world.after(LEASE))).await;
    let jobs = [&dead[..], &[world.ring(None).await, late, world.port.next_job_id()]].concat();
    let kept = world.ring(None).await;
    // Some are named twice.
    world.drop_jobs(&[&jobs[..], &jobs[1..4]].concat()).await;
    for job in &jobs {
        assert_eq!(world.state(job).await, None);
    }
    world.drop_jobs(&jobs).await;
    world.drop_jobs(&[]).await;
    tokio::time::sleep(LEASE + SECONDS).await;
    assert_eq!(world.claim_one().await.job, kept);
    assert!(world.dead().await.is_empty());
    let world = world.crash().await;
    for job in &jobs {
        assert_eq!(world.state(job).await, None);
        world.commit(ringing(job, None)).await.expect("the id is free again");
    }
}

/// "Those that somebody holds are left as they are."
pub async fn jobs_that_somebody_holds_are_not_dropped<S: Subject>() {
    let world = World::<S>::new().await;
    let (held, dead) = (world.ring(None).await, world.ring(None).await);
    for claimed in world.claim(9).await.iter().filter(|claimed| claimed.job == dead) {
        world.bury(&claimed.claim).await;
    }
    assert!(world.requeue(&dead).await);
    let requeued = world.claim_one().await;
    let waiting = world.ring(None).await;
    world.drop_jobs(&[held.clone(), waiting, dead.clone()]).await;
    assert_eq!(world.state(&held).await, Some(JobState::Claimed));
    world.port.extend(&requeued.claim, 3 * LEASE).expect("the claim is as good as before");
    assert!(!requeued.lost.is_cancelled());
    tokio::time::sleep(LEASE).await;
    assert_eq!(world.next().await.job, held, "its lease has ended");
    world.bury(&requeued.claim).await;
    assert_eq!(world.dead().await, [dead]);
}

/// "Jobs are forgotten": on the way, nobody is handed a dead one.
pub async fn a_dead_job_that_is_dropped_is_not_delivered<S: Subject>() {
    let world = World::<S>::new().await;
    // So many that, if the way leads past a claim, it does for long enough to meet one.
    let mut dead = Vec::new();
    for _ in 0..64 {
        dead.push(world.ring(None).await);
    }
    for claimed in world.claim(dead.len()).await {
        world.bury(&claimed.claim).await;
    }
    let (port, jobs) = (world.port.clone(), dead.clone());
    let dropped = tokio::spawn(async move { port.settle(Settlement::Drop(jobs)).await });
    while !dropped.is_finished() {
        // At every moment of the way: what follows from one is over before time goes on.
        for _ in 0..9 {
            world.assert_no_job().await;
        }
        tokio::time::sleep(MOMENT / 1_000).await;
    }
    dropped.await.expect("the task does not panic").expect("an open queue settles");
    for job in &dead {
        assert_eq!(world.state(job).await, None);
    }
    world.assert_no_job().await;
}

/// "Until the settlement is durable."
pub async fn a_drop_is_answered_once_it_is_durable<S: Subject>() {
    let world = World::<S>::new().await;
    let dead = world.ring(None).await;
    world.bury(&world.claim_one().await.claim).await;
    let jobs = vec![dead, world.ring(None).await];
    world.subject.hold();
    let mut dropped = Box::pin(world.port.settle(Settlement::Drop(jobs.clone())));
    assert_waits(&mut dropped).await;
    world.subject.release();
    soon(dropped).await.expect("an open queue settles");
    let world = world.crash().await;
    for job in &jobs {
        assert_eq!(world.state(job).await, None);
    }
}

/// "`settle`, once begun, runs to its end."
pub async fn a_settlement_whose_caller_gives_up_goes_on<S: Subject>() {
    for polls in 1..6 {
        let world = World::<S>::new().await;
        let job = world.ring(None).await;
        let claim = world.claim_one().await.claim;
        world.subject.hold();
        give_up_after(polls, world.port.settle(Settlement::Dead(claim, "because".to_owned()))).await;
        world.subject.release();
        eventually(async || (world.dead().await == [job.clone()]).then_some(())).await;
        tokio::time::sleep(SECONDS).await;
        let world = world.crash().await;
        assert_eq!(world.dead().await, [job]);
        world.assert_no_job().await;
    }
}

//! How claims end.

use workflow_runtime::port::{JobId, Settlement};

use super::Subject;
use super::world::{LEASE, QUEUE, SECONDS, World, assert_waits, eventually, give_up_after, ringing_in, soon};

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

/// "A job that nobody holds is forgotten. One that somebody holds, or that is not there, is left as it is."
pub async fn a_job_that_nobody_holds_can_be_dropped<S: Subject>() {
    let world = World::<S>::new().await;
    let drop = async |job: &JobId| {
        world.port.settle(Settlement::Drop(job.clone())).await.expect("an open queue settles");
    };
    let later = world.port.clock().now().after(LEASE);
    let (ready, late) = (world.ring(None).await, world.ring(Some(later)).await);
    for job in [&ready, &late] {
        drop(job).await;
        drop(job).await;
        assert_eq!(world.state(job).await, None);
    }
    tokio::time::sleep(LEASE + SECONDS).await;
    world.assert_no_job().await;

    let held = world.ring(None).await;
    let claim = world.claim_one().await.claim;
    drop(&held).await;
    world.port.extend(&claim, LEASE).expect("the claim is as good as before");
    world.bury(&claim).await;
    drop(&held).await;
    assert_eq!(world.dead().await, std::slice::from_ref(&held));
    let world = world.crash().await;
    assert_eq!(world.dead().await, [held]);
    world.assert_no_job().await;
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

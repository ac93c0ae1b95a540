//! What a crash leaves, where the crash is chosen by holding the store. [`crashes`](super::crashes) tries them all.

use workflow_runtime::port::{Commit, Read};

use super::Subject;
use super::world::{World, assert_waits, at_once, expecting, putting, ringing, soon};

/// "It is durable when `commit` returns it as `Ok`."
pub async fn a_commit_is_answered_once_it_is_durable<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.port.next_job_id();
    world.subject.hold();
    let mut answer = Box::pin(world.commit(Commit { puts: putting("slot", "new").puts, ..ringing(&job, None) }));
    assert_waits(&mut answer).await;
    world.subject.release();
    soon(answer).await.expect("a commit without expectations is applied");
    let world = world.crash().await;
    assert_eq!(world.latest("slot").await.as_deref(), Some(&b"new"[..]));
    assert_eq!(world.claim_one().await.job, job);
}

/// "Applied as a whole or not at all": what was never durable is gone, with everything that was built on it.
pub async fn what_was_not_durable_is_gone_as_a_whole<S: Subject>() {
    let world = World::<S>::new().await;
    for key in ["slot", "gone", "stays"] {
        world.put(key, "old").await;
    }
    let (kept, lost) = (world.ring(None).await, world.port.next_job_id());
    world.subject.hold();
    let change = Commit { puts: putting("slot", "new").puts, deletes: vec!["gone".into()], ..ringing(&lost, None) };
    let first = world.begin(expecting("slot", Some("old"), change)).await;
    let claimed = at_once(world.claim(9)).await;
    // Decided on what the first commit left, if that is visible yet.
    let next = expecting("slot", Some("new"), putting("slot", "newer"));
    let second = world.begin(next).await;
    let world = world.crash().await;
    drop((first, second, claimed));
    assert_eq!(world.latest("slot").await.as_deref(), Some(&b"old"[..]));
    assert_eq!(world.get("gone", Read::Durable).await.as_deref(), Some(&b"old"[..]));
    assert_eq!(world.get("stays", Read::Durable).await.as_deref(), Some(&b"old"[..]));
    assert_eq!(world.claim_one().await.job, kept);
    world.commit(ringing(&lost, None)).await.expect("the job was never there");
    assert_eq!(world.claim_one().await.job, lost);
}

/// "Returns once no crash can undo any claim that this process made before the call."
pub async fn a_claim_that_no_crash_can_undo_is_counted<S: Subject>() {
    let mut world = World::<S>::new().await;
    let job = world.ring(None).await;
    for delivery in 1..=3 {
        let claimed = world.claim_one().await;
        assert_eq!((&claimed.job, claimed.deliveries), (&job, delivery));
        world.port.persist_claims().await.expect("an open queue persists its claims");
        world = world.crash().await;
    }
    // While nothing becomes durable, a claim is persisted already, or the call waits.
    world.subject.hold();
    let claimed = at_once(world.claim(1)).await.is_some_and(|claimed| !claimed.is_empty());
    let persisted = at_once(world.port.persist_claims()).await.is_some();
    let world = world.crash().await;
    let again = world.claim_one().await.deliveries;
    assert!(again == 5 || (again == 4 && !(claimed && persisted)), "the delivery is counted as {again}");
}

/// "A claim need not be durable when it returns." Whether it is or not, the job is delivered again.
pub async fn a_claim_that_was_not_persisted_is_delivered_again<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.ring(None).await;
    world.subject.hold();
    let claimed = at_once(world.claim(1)).await;
    let world = world.crash().await;
    let again = world.claim_one().await;
    assert_eq!(again.job, job);
    assert!((1..=2).contains(&again.deliveries), "the delivery is counted as {}", again.deliveries);
    drop(claimed);
    world.assert_no_job().await;
}

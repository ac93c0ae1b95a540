//! A queue that the next process has opened, while the last one still runs.

use std::sync::Arc;

use bytes::Bytes;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{Error, Read, Rejected, Settlement};

use super::Subject;
use super::world::{LEASE, QUEUE, World, assert_waits, commit_on, eventually, putting, range, soon};

fn is_closed<T>(answer: &Result<T, Error>) -> bool {
    answer.as_ref().is_err_and(Error::is_closed)
}

/// "Once the queue is lost to this process every call says so with `Closed`, calls that wait included, within seconds
/// and for ever."
pub async fn whoever_lost_the_queue_is_told_so_by_every_call<S: Subject>() {
    let old = World::<S>::new().await;
    old.put("slot", "old").await;
    let job = old.ring(None).await;
    let claimed = old.claim_one().await;
    old.port.persist_claims().await.expect("an open queue persists its claims");
    let port = old.port.clone();
    let change = tokio::spawn(async move { port.wait_for_change(b"slot", Some(&Bytes::from("old"))).await });
    tokio::task::yield_now().await;

    let next = World { port: old.subject.open().await, subject: old.subject };
    let port = old.port;
    // Nothing is written: whoever only looks for work notices, too.
    eventually(async || is_closed(&port.claim(QUEUE, 1, LEASE).await).then_some(())).await;
    assert!(is_closed(&soon(change).await.expect("the task does not panic")));
    soon(claimed.lost.cancelled()).await;
    for _ in 0..2 {
        assert!(is_closed(&port.claim(QUEUE, 1, LEASE).await));
        for read in [Read::Latest, Read::Durable] {
            assert!(is_closed(&port.get(b"slot", read).await));
            assert!(is_closed(&port.scan(&range("s", None, 9), read).await));
        }
        assert!(
            matches!(commit_on(&*port, putting("slot", "late")).await, Err(Rejected::Unknown(error)) if error.is_closed())
        );
        assert!(is_closed(&port.settle(Settlement::Ack(claimed.claim.clone())).await));
        assert!(is_closed(&port.settle(Settlement::Dead(claimed.claim.clone(), "late".to_owned())).await));
        assert!(is_closed(&port.settle(Settlement::Drop(vec![job.clone()])).await));
        assert!(is_closed(&port.persist_claims().await));
        assert!(is_closed(&port.dead_jobs(QUEUE, 1).await));
        assert!(is_closed(&port.job_state(&job).await));
        assert!(is_closed(&port.is_requeued(&job).await));
        assert!(is_closed(&port.wait_for_change(b"slot", Some(&Bytes::from("old"))).await));
        assert!(port.extend(&claimed.claim, LEASE).is_err());
        tokio::time::sleep(LEASE).await;
    }

    let again = next.claim_one().await;
    assert_eq!((again.job, again.deliveries), (job, 2), "the job is the next process's");
    next.port.extend(&again.claim, LEASE).expect("the last process did not touch the claim");
    assert_eq!(next.latest("slot").await.as_deref(), Some(&b"old"[..]));
    assert!(next.dead().await.is_empty());
}

/// A commit of the last process, from the first moment on, is refused and leaves nothing.
pub async fn a_commit_of_whoever_lost_the_queue_changes_nothing<S: Subject>() {
    let old = World::<S>::new().await;
    old.put("slot", "old").await;
    let next = World { port: old.subject.open().await, subject: old.subject };
    let port: Arc<dyn QueuePort> = old.port;
    let late = soon(commit_on(&*port, putting("slot", "late"))).await;
    assert!(matches!(&late, Err(Rejected::Unknown(error)) if error.is_closed()), "{late:?}");
    assert_eq!(next.get("slot", Read::Durable).await.as_deref(), Some(&b"old"[..]));
    let next = next.crash().await;
    assert_eq!(next.latest("slot").await.as_deref(), Some(&b"old"[..]));
}

/// "Calls that wait included", where nobody else calls anything, and whoever waited first has given up.
pub async fn whoever_only_waits_is_told_that_the_queue_is_lost<S: Subject>() {
    let old = World::<S>::new().await;
    old.put("slot", "old").await;
    let seen = Bytes::from("old");
    let [mut first, mut second] = [(); 2].map(|()| Box::pin(old.port.wait_for_change(b"slot", Some(&seen))));
    assert_waits(&mut first).await;
    assert_waits(&mut second).await;
    drop(first);
    let _next = old.subject.open().await;
    assert!(is_closed(&soon(second).await));
}

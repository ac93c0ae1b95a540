//! Commits: exact, whole, and carried through whoever waits for them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures::future::join_all;
use workflow_effects::{Commit, KvStore, Read, Rejected};
use workflow_runtime::QueuePort;

use super::{World, eventually, putting, ringing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_commits_that_expect_the_same_bytes_one_wins() {
    let world = World::new().await;
    for round in 0..20u32 {
        let before = world.latest("slot").await;
        let rivals = (0..8u32).map(|rival| {
            let value = format!("{round}/{rival}");
            let expect = vec![("slot".into(), before.clone())];
            world.commit(Commit { expect, ..putting("slot", value) })
        });
        let answers = join_all(rivals).await;
        let winners: Vec<_> = (0..8u32).filter(|rival| answers[*rival as usize].is_ok()).collect();
        let [winner] = winners[..] else { panic!("{winners:?} won") };
        assert!(answers.iter().all(|answer| matches!(answer, Ok(()) | Err(Rejected::Conflict))));
        assert_eq!(world.latest("slot").await.unwrap(), format!("{round}/{winner}"));
    }
}

#[tokio::test]
async fn a_commit_that_expects_other_bytes_changes_nothing_and_rings_nothing() {
    let world = World::new().await;
    let job = world.port.next_job_id();
    let expect = vec![("slot".into(), Some("never there".into()))];
    let commit = Commit { expect, puts: putting("slot", "new").puts, ..ringing(&job, None) };
    assert!(matches!(world.commit(commit).await, Err(Rejected::Conflict)));
    assert_eq!(world.latest("slot").await, None);
    assert!(world.claim(9).await.is_empty());
}

#[tokio::test]
async fn an_expectation_that_is_not_written_is_invalid() {
    let world = World::new().await;
    let commit = Commit { expect: vec![("slot".into(), None)], ..putting("other", "new") };
    let Err(Rejected::Invalid(error)) = world.commit(commit).await else { panic!("it was accepted") };
    assert!(error.is_permanent());
    assert_eq!(world.latest("other").await, None);
}

#[tokio::test]
async fn a_commit_with_a_job_id_that_is_taken_is_invalid_and_writes_nothing() {
    let world = World::new().await;
    let taken = world.ring().await;
    let fresh = world.port.next_job_id();
    let mut commit = ringing(&fresh, None);
    commit.enqueues.extend(ringing(&taken, None).enqueues);
    commit.puts = putting("slot", "new").puts;
    let Err(Rejected::Invalid(error)) = world.commit(commit).await else { panic!("it was accepted") };
    assert!(error.is_permanent());
    assert_eq!(world.latest("slot").await, None);
    let jobs: Vec<_> = world.claim(9).await.into_iter().map(|job| job.job).collect();
    assert_eq!(jobs, [taken]);
}

#[tokio::test]
async fn a_value_beyond_the_stores_cap_is_invalid_and_writes_nothing() {
    let world = World::new().await;
    let mut commit = putting("large", vec![0; 256 * 1024 + 1]);
    commit.puts.extend(putting("small", "new").puts);
    let Err(Rejected::Invalid(error)) = world.commit(commit).await else { panic!("it was accepted") };
    assert!(error.is_permanent());
    assert_eq!(world.latest("small").await, None);
}

#[tokio::test]
async fn the_answers_are_in_the_order_of_the_commits() {
    let world = World::new().await;
    let expecting = |key: &'static str| Commit { expect: vec![(key.into(), Some("x".into()))], ..putting(key, "new") };
    let answers = world.port.commit(vec![putting("a", "1"), expecting("b"), putting("c", "3")]).await;
    assert!(matches!(answers[..], [Ok(()), Err(Rejected::Conflict), Ok(())]));
    assert_eq!(world.latest("c").await.unwrap(), "3");
}

#[tokio::test]
async fn a_commit_whose_caller_gives_up_after_any_poll_is_whole_or_was_never_begun() {
    for polls in 0..6 {
        let world = World::new().await;
        // The queue has been found empty, so a claim looks again only when it is told of the job.
        assert!(world.claim(1).await.is_empty());
        let job = world.port.next_job_id();
        let commit = Commit { puts: putting("slot", "new").puts, ..ringing(&job, None) };
        // It cannot end under the polls.
        world.gate.close();
        {
            let mut answer = pin!(world.port.commit(vec![commit]));
            for _ in 0..polls {
                poll_fn(|context| {
                    let _ = answer.as_mut().poll(context);
                    Poll::Ready(())
                })
                .await;
                tokio::task::yield_now().await;
            }
        }
        world.gate.open();
        if polls == 0 {
            world.ring().await;
            assert_eq!(world.latest("slot").await, None);
            assert_ne!(world.claim_one().await.job, job);
            continue;
        }
        let claimed = eventually(async || world.claim(1).await.pop()).await;
        assert_eq!(claimed.job, job);
        assert_eq!(world.port.get(b"slot", Read::Durable).await.unwrap().unwrap(), "new");
    }
}

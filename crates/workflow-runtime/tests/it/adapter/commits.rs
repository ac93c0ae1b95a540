//! Commits at the same time, and what is seen of them in flight.

use futures::future::join_all;
use workflow_effects::{Commit, Rejected};
use workflow_runtime::QueuePort;

use super::{AT_ONCE, World, assert_waits, commit_on, eventually, putting, ringing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_commits_on_several_threads_that_expect_the_same_bytes_one_wins() {
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
async fn a_doorbell_can_be_claimed_before_its_commit_is_durable() {
    let world = World::new().await;
    world.gate.close();
    let job = world.port.next_job_id();
    let commit = Commit { puts: putting("slot", "new").puts, ..ringing(&job, None) };
    let port = world.port.clone();
    let flight = tokio::spawn(async move { commit_on(&port, commit).await });
    eventually(async || world.latest("slot").await).await;
    assert_eq!(world.claim_one().await.job, job);
    assert!(!flight.is_finished());
    world.gate.open();
    flight.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_change_is_told_of_it_at_once() {
    let world = World::new().await;
    let mut change = Box::pin(world.port.wait_for_change(b"slot", None));
    assert_waits(&mut change).await;
    world.commit(putting("slot", "new")).await.unwrap();
    let told = tokio::time::timeout(AT_ONCE, change).await.expect("it is told at once");
    assert_eq!(told.unwrap().unwrap(), "new");
}

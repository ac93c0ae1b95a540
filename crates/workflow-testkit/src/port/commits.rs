//! What becomes of the commits of one call.

use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use workflow_runtime::port::{Commit, Error, Rejected};

use super::faulty::FaultyPort;
use super::health::unavailable;
use crate::PortFault;

impl FaultyPort {
    /// Commits, each meeting its fault.
    pub(super) async fn commit_each(
        &self,
        commits: Vec<Commit>,
        faults: Vec<Option<PortFault>>,
    ) -> Vec<Result<(), Rejected>> {
        let survivors = faults.iter().find_map(|fault| match fault {
            Some(PortFault::DiesInBatch(survivors)) => Some(*survivors),
            _ => None,
        });
        if let Some(survivors) = survivors {
            return self.die_after(commits, survivors).await;
        }
        let mut answers = Vec::with_capacity(commits.len());
        for (commit, fault) in commits.into_iter().zip(faults) {
            answers.push(self.commit_one(commit, fault).await);
        }
        answers
    }

    /// Commits that meet no fault: the queue may group them.
    pub(super) async fn commit_all(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        if self.shared.condition.answers().await.is_err() {
            return commits.iter().map(|_| Err(unknown())).collect();
        }
        let answers = self.port.commit(commits).await;
        self.count_conflicts(&answers);
        self.shared.condition.returns().await;
        answers
    }

    async fn die_after<T>(&self, mut commits: Vec<Commit>, survivors: usize) -> T {
        self.shared.condition.is_well().await;
        commits.truncate(survivors);
        if !commits.is_empty() {
            self.port.commit(commits).await;
        }
        self.shared.condition.die();
        pending().await
    }

    async fn commit_one(&self, commit: Commit, fault: Option<PortFault>) -> Result<(), Rejected> {
        self.delay(fault).await;
        self.shared.condition.answers().await.map_err(Rejected::Unknown)?;
        match fault {
            Some(PortFault::Fails) => return Err(unknown()),
            Some(PortFault::Refused) => {
                return Err(Rejected::Invalid(Error::InvalidCommit {
                    detail: "is refused by the test's plan".to_owned(),
                }));
            }
            _ => {}
        }
        let compared: Vec<_> =
            commit.expect.iter().map(|(key, _)| (key.clone(), commit.next(key).flatten().cloned())).collect();
        let answer = self.port.commit(vec![commit]).await.pop().unwrap_or_else(|| Err(unknown()));
        self.count_conflicts(std::slice::from_ref(&answer));
        if let Some(PortFault::AnswerLostForLong(at_most)) = fault {
            self.others_move_on(compared, at_most).await;
        }
        self.shared.condition.returns().await;
        match fault {
            Some(PortFault::AnswerLost | PortFault::AnswerLostForLong(_)) if answer.is_ok() => Err(unknown()),
            _ => answer,
        }
    }

    fn count_conflicts(&self, answers: &[Result<(), Rejected>]) {
        let refused = answers.iter().filter(|answer| matches!(answer, Err(Rejected::Conflict))).count();
        self.count(|counts| counts.conflicts += refused as u64);
    }

    /// Waits until each key holds something else than what was put there, `at_most` so long.
    async fn others_move_on(&self, keys: Vec<(Bytes, Option<Bytes>)>, at_most: Duration) {
        let changes = keys.iter().map(|(key, put)| self.port.wait_for_change(key, put.as_ref()));
        let clock = self.port.clock();
        tokio::select! {
            biased;
            _ = join_all(changes) => {}
            () = clock.sleep(at_most) => {}
        }
    }
}

fn unknown() -> Rejected {
    Rejected::Unknown(unavailable())
}

//! A port whose calls stop twice: before they reach the queue, and before their answers return.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{
    Claim, ClaimedJob, Clock, Commit, Error, JobId, JobState, KvStore, Read, Rejected, ScanPage, ScanRange, Settlement,
};

use super::Turns;
use super::call::{
    Call, Operation, answer_text, claimed_text, commits_text, committed_text, key_text, page_text, settlement_text,
    state_text, value_text,
};

pub(super) struct TurnsPort {
    pub(super) name: Arc<str>,
    pub(super) inner: Arc<dyn QueuePort>,
    pub(super) turns: Turns,
}

impl TurnsPort {
    /// Carries out a call that may be given up half-way.
    async fn read<T>(
        &self,
        (operation, subject): (Operation, String),
        call: impl Future<Output = T> + Send,
        text: impl FnOnce(&T) -> String + Send,
    ) -> T
    where
        T: Send,
    {
        let actor = self.turns.actor_of(&self.name);
        let asked = self.turns.call(&actor, operation, || subject);
        let answer = ask(&self.turns, &actor, asked.clone(), call).await;
        self.answer(asked, &answer, text).await;
        answer
    }

    /// Carries out a call that runs to its end, whatever becomes of whoever waits for it.
    async fn write<T: Send + 'static>(
        &self,
        (operation, subject): (Operation, String),
        call: impl Future<Output = T> + Send + 'static,
        text: impl FnOnce(&T) -> String + Send,
    ) -> T {
        let actor = self.turns.actor_of(&self.name);
        let asked = self.turns.call(&actor, operation, || subject);
        let (turns, begun) = (self.turns.clone(), asked.clone());
        let answer = tokio::spawn(async move { ask(&turns, &actor, begun, call).await }).await;
        // A call that died with the async runtime has no answer.
        let Ok(answer) = answer else { return pending().await };
        self.answer(asked, &answer, text).await;
        answer
    }

    async fn answer<T>(&self, asked: Option<Call>, answer: &T, text: impl FnOnce(&T) -> String + Send) {
        if let Some(asked) = asked {
            let answered = asked.answered(text(answer));
            self.turns.schedule.turn(answered).await;
        }
    }
}

async fn ask<T>(turns: &Turns, actor: &Arc<str>, asked: Option<Call>, call: impl Future<Output = T>) -> T {
    if let Some(asked) = asked {
        turns.schedule.turn(asked).await;
    }
    turns.schedule.inside(actor, call).await
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl KvStore for TurnsPort {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        let what = (Operation::Get, key_text(key));
        let text = |answer: &_| answer_text(answer, |value: &Option<Bytes>| value_text(value.as_ref()));
        self.read(what, self.inner.get(key, read), text).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        let what = (Operation::Scan, key_text(&range.prefix));
        self.read(what, self.inner.scan(range, read), |answer| answer_text(answer, page_text)).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<(), Rejected>> {
        let (what, inner) = ((Operation::Commit, commits_text(&commits)), self.inner.clone());
        self.write(what, async move { inner.commit(commits).await }, |answers| committed_text(answers)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl QueuePort for TurnsPort {
    async fn claim(&self, queue: &str, max: usize, lease: Duration) -> Result<Vec<ClaimedJob>, Error> {
        let (queue, inner) = (queue.to_owned(), self.inner.clone());
        let what = (Operation::Claim, queue.clone());
        let text = |answer: &_| answer_text(answer, |jobs: &Vec<ClaimedJob>| claimed_text(jobs));
        self.write(what, async move { inner.claim(&queue, max, lease).await }, text).await
    }

    async fn persist_claims(&self) -> Result<(), Error> {
        let inner = self.inner.clone();
        let text = |answer: &_| answer_text(answer, |()| "done".to_owned());
        self.write((Operation::PersistClaims, String::new()), async move { inner.persist_claims().await }, text).await
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), Error> {
        self.inner.extend(claim, lease)
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        let inner = self.inner.clone();
        let what = (Operation::Settle, settlement_text(&settlement).to_owned());
        let text = |answer: &_| answer_text(answer, |()| "done".to_owned());
        self.write(what, async move { inner.settle(settlement).await }, text).await
    }

    async fn wait_for_work(&self, queues: &[String], at_most: Duration) {
        // The claim that follows is what has its place in the order.
        self.inner.wait_for_work(queues, at_most).await;
    }

    async fn wait_for_change(&self, key: &[u8], seen: Option<&Bytes>) -> Result<Option<Bytes>, Error> {
        let actor = self.turns.actor_of(&self.name);
        let answer = self.inner.wait_for_change(key, seen).await;
        let asked = self.turns.call(&actor, Operation::WaitForChange, || key_text(key));
        self.answer(asked, &answer, |answer| answer_text(answer, |value| value_text(value.as_ref()))).await;
        answer
    }

    fn may_have_ready_job(&self, queue: &str) -> bool {
        self.inner.may_have_ready_job(queue)
    }

    async fn job_state(&self, job: &JobId) -> Result<Option<JobState>, Error> {
        let text = |answer: &_| answer_text(answer, |state: &Option<JobState>| state_text(*state).to_owned());
        self.read((Operation::JobState, job.to_string()), self.inner.job_state(job), text).await
    }

    async fn is_requeued(&self, job: &JobId) -> Result<bool, Error> {
        let text = |answer: &_| answer_text(answer, |requeued: &bool| if *requeued { "yes" } else { "no" }.to_owned());
        self.read((Operation::IsRequeued, job.to_string()), self.inner.is_requeued(job), text).await
    }

    async fn dead_jobs(&self, queue: &str, limit: usize) -> Result<Vec<JobId>, Error> {
        let text = |answer: &_| answer_text(answer, |jobs: &Vec<JobId>| format!("{} jobs", jobs.len()));
        self.read((Operation::DeadJobs, queue.to_owned()), self.inner.dead_jobs(queue, limit), text).await
    }

    fn next_job_id(&self) -> JobId {
        self.inner.next_job_id()
    }

    fn open_number(&self) -> u64 {
        self.inner.open_number()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }
}

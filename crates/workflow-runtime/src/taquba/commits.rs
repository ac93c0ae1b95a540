//! Commits: marked as in flight before they begin, and noted for the timer and the waiters after they end.

use std::sync::Arc;

use ::taquba::{EnqueueOptions, EnqueueRequest, SettlementEffects};
use bytes::Bytes;
use workflow_effects::{Commit, Error, Rejected};

use super::failure::refusal;
use super::flights::Doubt;
use super::lanes::Lane;
use super::lever::Lever;
use super::queue::{MARK_KEY, Shared};

impl Shared {
    /// Applies one commit. It is a task of its own: a transaction whose future is dropped half-way leaves a job that
    /// no claim finds.
    pub(super) async fn commit(self: Arc<Self>, commit: Commit) -> Result<(), Rejected> {
        commit.check().map_err(Rejected::Invalid)?;
        let keys: Vec<Bytes> = commit.written().cloned().collect();
        let mut open = Vec::new();
        let mut flight = self.flights.take_off(keys.clone(), || {
            open = self.not_known(&commit.expect);
            open.len() < commit.expect.len()
        });
        let compared = if flight.excludes() { open } else { commit.expect.iter().collect() };
        self.each_ready(&commit, |lane| lane.take_off());
        let _pull = self.lever.get().map(Lever::pull);
        flight.cleared().await;
        let compares: Vec<_> = compared.into_iter().map(|(key, value)| (key.as_ref(), value.as_deref())).collect();
        let outcome = self.queue.kv_compare_commit(&compares, effects(&commit)).await;
        let answer = match outcome {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Rejected::Conflict),
            Err(cause) if cause.is_permanent() => Err(Rejected::Invalid(refusal(&cause))),
            Err(cause) => Err(Rejected::Unknown(self.failure(cause).await)),
        };
        self.note_landing(&commit, &answer, flight.is_alone());
        if matches!(answer, Err(Rejected::Unknown(_))) {
            drop(flight);
        } else {
            flight.land();
        }
        // It may have rung even if nobody knows; a doorbell that is not there is passed over.
        let refused = matches!(answer, Err(Rejected::Conflict | Rejected::Invalid(_)));
        self.each_ready(&commit, |lane| lane.land(refused));
        if !refused {
            self.schedule_due(&commit);
        }
        self.watchers.changed(&keys);
        answer
    }

    /// Those of `expected` of which the store has to tell whether they hold.
    fn not_known<'c>(&self, expected: &'c [(Bytes, Option<Bytes>)]) -> Vec<&'c (Bytes, Option<Bytes>)> {
        expected.iter().filter(|(key, value)| self.known.get(key).as_ref() != Some(value)).collect()
    }

    /// Notes what the keys of `commit` hold now, if that is sure.
    fn note_landing(&self, commit: &Commit, answer: &Result<(), Rejected>, is_alone: bool) {
        match answer {
            Ok(()) if is_alone => self.known.landed(commit),
            Ok(()) | Err(Rejected::Unknown(_)) => self.known.forget(commit.written().map(Bytes::as_ref)),
            Err(Rejected::Conflict | Rejected::Invalid(_)) => {}
        }
    }

    /// Visits the lane of every job in `commit` that is ready at once.
    fn each_ready(&self, commit: &Commit, visit: impl Fn(&Lane)) {
        for enqueue in commit.enqueues.iter().filter(|enqueue| enqueue.due.is_none()) {
            visit(&self.lanes.of(&enqueue.queue));
        }
    }

    /// Tells the timer which doorbells of `commit` are due later.
    fn schedule_due(&self, commit: &Commit) {
        for enqueue in &commit.enqueues {
            if let Some(due) = enqueue.due {
                self.schedule.add(&enqueue.queue, due, enqueue.job.clone());
            }
        }
    }

    /// Returns once everything that could be read before the call is durable: the log keeps the order of the writes.
    pub(super) async fn barrier(&self) -> Result<(), Error> {
        match self.mark().await {
            Ok(()) => Ok(()),
            Err(cause) => Err(self.failure(cause).await),
        }
    }

    /// Writes a mark into the log.
    pub(super) async fn mark(&self) -> ::taquba::Result<()> {
        let _pull = self.lever.get().map(Lever::pull);
        self.queue.kv_put(MARK_KEY, &self.open_number.to_be_bytes()).await
    }

    /// Makes a read durable that may have seen a commit of unknown outcome.
    pub(super) async fn resolve(&self, settled: Result<(), Doubt>) -> Result<(), Error> {
        if let Err(doubt) = settled {
            self.barrier().await?;
            self.flights.dispel(&doubt);
        }
        Ok(())
    }
}

fn effects(commit: &Commit) -> SettlementEffects {
    let mut effects = SettlementEffects::default();
    effects.kv_writes.extend(commit.puts.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    effects.kv_deletes.extend(commit.deletes.iter().map(|key| key.to_vec()));
    effects.enqueues.extend(commit.enqueues.iter().map(|enqueue| {
        EnqueueRequest {
            queue: enqueue.queue.clone(),
            payload: enqueue.payload.to_vec(),
            options: EnqueueOptions::default()
                .id_override(enqueue.job.to_string())
                .max_attempts(u32::MAX)
                .run_at(enqueue.due.map(Into::into)),
        }
    }));
    effects
}

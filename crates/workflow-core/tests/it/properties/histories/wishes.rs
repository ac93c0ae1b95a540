//! What somebody asks of the run, or does to its doorbell, and no delivery brings.

use proptest::prelude::*;
use workflow_core::{
    CancelRequested, DoorbellMissed, Event, Incarnation, InputHash, PauseRequested, Phase, Reason, RedriveRequested,
    Remains, Resumed, Run, Signalled, Submitted, Value,
};

use super::slots::key;
use super::{Checked, Job, World};

impl World {
    pub(super) fn submit(&mut self, input: u8, delay_ms: Option<u64>) -> Checked {
        let first = self.run == Run::Absent;
        let job = self.next_job();
        let event = Submitted {
            incarnation: Incarnation::new(self.rung.len() as u128),
            job,
            input: Value::from(vec![input]),
            input_hash: InputHash([input; 32]),
            stored_input_hash: (!first).then_some(InputHash([0; 32])),
            now: self.now,
            run_at: self.later(delay_ms),
        };
        self.wish(Event::Submitted(event))?;
        Ok(())
    }

    /// A signal goes to whoever waits, or to the buffer.
    pub(super) fn signal(&mut self, index: usize) -> Checked {
        let (signal, waiter) = self.slots.send(key(index));
        let Some((incarnation, step)) = waiter else {
            self.slots.buffer(signal);
            return Ok(());
        };
        let (now, next_job) = (self.now, self.next_job());
        let reason = self.wish(Event::Signalled(Signalled { signal, incarnation, step, now, next_job }))?;
        prop_assert_eq!(reason, Reason::Signalled, "a slot names a run that does not wait");
        Ok(())
    }

    /// Overlooked: the delivery began after somebody had looked whether there is one.
    pub(super) fn cancel(&mut self, overlooked: bool) -> Checked {
        let is_claimed = match &self.run {
            Run::Active(run) => self.jobs.get(&run.job).is_some_and(|job| job.claimed),
            Run::Absent | Run::Ended(_) => false,
        };
        let in_hand = is_claimed && !overlooked;
        self.wish(Event::CancelRequested(CancelRequested { reason: None, in_hand, now: self.now }))?;
        Ok(())
    }

    pub(super) fn pause(&mut self) -> Checked {
        self.wish(Event::PauseRequested(PauseRequested { now: self.now }))?;
        Ok(())
    }

    /// Stale: the doorbell was taken away after somebody had looked whether there is one. Nothing else removes the job
    /// that the record names, and a record that has changed since is looked at again.
    pub(super) fn resume(&mut self, stale: bool) -> Checked {
        let has_doorbell = match &self.run {
            Run::Active(run) => self.jobs.contains_key(&run.job) || (stale && self.removed.as_ref() == Some(&run.job)),
            Run::Absent | Run::Ended(_) => false,
        };
        let (now, next_job) = (self.now, self.next_job());
        self.wish(Event::Resumed(Resumed { has_doorbell, now, next_job }))?;
        Ok(())
    }

    /// From a step that was written down, or from the final one.
    pub(super) fn redrive(&mut self, from: Option<usize>, payload: bool, taken: bool) -> Checked {
        let phase = match &self.run {
            Run::Ended(run) => run.remains.as_ref().map(|Remains { phase, .. }| phase),
            Run::Absent | Run::Active(_) => None,
        };
        let keys = match phase {
            Some(Phase::Waiting { keys, .. }) => {
                keys.iter().map(|key| self.slots.look_up(key.clone(), taken)).collect()
            }
            Some(Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. }) | None => Vec::new(),
        };
        let from = from.and_then(|index| self.history.values().cycle().nth(index).cloned());
        let payload = payload.then(|| Value::from("another"));
        let (now, next_job) = (self.now, self.next_job());
        self.wish(Event::RedriveRequested(RedriveRequested { from, payload, keys, now, next_job }))?;
        Ok(())
    }

    /// An operator takes the run's job away, whoever holds it.
    pub(super) fn remove_doorbell(&mut self) {
        if let Run::Active(run) = &self.run
            && self.jobs.remove(&run.job).is_some()
        {
            self.removed = Some(run.job.clone());
        }
    }

    /// Somebody finds that the run's doorbell is gone, or looks for one that is stale.
    pub(super) fn miss_doorbell(&mut self, stale: usize) -> Checked {
        let Run::Active(run) = &self.run else { return Ok(()) };
        let is_there = self.jobs.contains_key(&run.job);
        let needed = run.needs_doorbell();
        let job = if is_there { self.rung.get(stale).filter(|job| **job != run.job) } else { Some(&run.job) };
        let Some(job) = job.cloned() else { return Ok(()) };
        let (now, next_job) = (self.now, self.next_job());
        let reason = self.wish(Event::DoorbellMissed(DoorbellMissed { job, now, next_job }))?;
        let missed = matches!(reason, Reason::RungAgain | Reason::CancelledOnRequest);
        prop_assert_eq!(missed, !is_there && needed, "{:?}", reason);
        Ok(())
    }

    /// An operator puts the dead job back.
    pub(super) fn requeue(&mut self) {
        if let Some(job) = self.dead.pop_first() {
            self.jobs.insert(job, Job { requeued: true, ..Job::default() });
        }
    }
}

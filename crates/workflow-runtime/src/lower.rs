//! Lowering: the one place that turns a decision into keys, bytes and jobs.

mod slots;

use std::iter;

use bytes::Bytes;
use workflow_core::{
    ActiveRun, Effect, Incarnation, JobId, Phase, Run, RunId, Signal, SignalId, Timestamp, Transition, Value,
};
use workflow_effects::{
    BellTarget, Commit, Doorbell, Enqueue, Index, IndexEntry, KeySpace, NotificationRow, RecordedEnd, Spec,
    StagedEffects, StepRow, encode_doorbell, encode_notification, encode_run, encode_spec, encode_step_row,
};

pub(crate) use self::slots::{delete_signal, write_slot};
use crate::HistoryLevel;
use crate::engine::{DEFAULT_PRIORITY, Queues};
use crate::reads::Gathered;
use crate::signals::GatheredSlots;
use crate::spec::header_hash;

/// What lowering needs to know besides the transition.
pub(crate) struct Lowering<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) queue_name: &'a str,
    pub(crate) queues: &'a Queues,
    /// The opening of the queue that rings the doorbells.
    pub(crate) open: u64,
    pub(crate) run_id: &'a RunId,
    /// The run that the transition was decided on.
    pub(crate) from: &'a Gathered,
    pub(crate) spec: &'a Spec,
    /// What the step or the submission staged.
    pub(crate) staged: &'a StagedEffects,
    /// The slots of the keys that the transition is about.
    pub(crate) slots: &'a GatheredSlots,
    /// A number that no other commit has.
    pub(crate) drawn: SignalId,
    /// The notification of an end that the hook observes, with its job.
    pub(crate) notification: Option<NotificationRow>,
    /// How much is written down of steps.
    pub(crate) history: HistoryLevel,
    /// The attempt that ends its step with this transition.
    pub(crate) attempted: Option<Attempted>,
}

/// An attempt that ends its step.
#[derive(Clone)]
pub(crate) struct Attempted {
    /// The step, and what it was called with.
    pub(crate) step: u32,
    pub(crate) payload: Value,
    /// The signal that it was called with.
    pub(crate) signal: Option<Signal>,
    /// Its number, from 1.
    pub(crate) attempt: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Timestamp,
}

impl Attempted {
    /// An attempt that ends the step in hand of `run`.
    pub(crate) fn of(run: &ActiveRun, attempt: u32, started_at: Timestamp, ended_at: Timestamp) -> Self {
        let (payload, signal) = (run.payload.clone(), run.signal.clone());
        Self { step: run.step, payload, signal, attempt, started_at, ended_at }
    }
}

/// The transaction that carries `transition` out.
pub(crate) fn lower(lowering: &Lowering<'_>, transition: &Transition) -> Commit {
    let record_key = lowering.keys.run(lowering.run_id);
    let mut commit = Commit { expect: vec![(record_key.clone(), lowering.from.record.clone())], ..Commit::default() };
    let incarnation = transition.next.incarnation().expect("a transition that is committed has a run");
    commit.puts.push((record_key, encode_run(&transition.next).expect("a run that is not absent has a record")));
    move_listing(&mut commit, lowering, &transition.next, incarnation);
    for effect in &transition.effects {
        match effect {
            Effect::RecordSubmission => {
                record_submission(&mut commit, lowering, incarnation);
                apply_staged(&mut commit, lowering.staged);
            }
            Effect::EnqueueStep { job, due } => enqueue_step(&mut commit, lowering, incarnation, job, *due),
            Effect::ApplyStaged => apply_staged(&mut commit, lowering.staged),
            Effect::RecordStep => record_step(&mut commit, lowering, transition, incarnation),
            Effect::NotifyEnd => notify(&mut commit, lowering, &transition.next, incarnation),
            Effect::RegisterWaiter { keys } => lowering.register_waiter(&mut commit, transition, incarnation, keys),
            Effect::FreeWaiter { keys } => lowering.free_waiter(&mut commit, keys),
            Effect::TakeSignal { key } => lowering.take_signal(&mut commit, incarnation, key),
            // These two follow the commit.
            Effect::DropDoorbell(job) => note_left_job(&mut commit, lowering, incarnation, job),
            Effect::ReleaseValue(_) => {}
        }
    }
    commit
}

impl Lowering<'_> {
    /// The queue payload of a doorbell.
    fn doorbell(&self, incarnation: Incarnation, target: BellTarget) -> Bytes {
        encode_doorbell(&Doorbell {
            run_id: self.run_id.clone(),
            incarnation,
            queue_name: self.queue_name.to_owned(),
            open: self.open,
            target,
        })
    }
}

/// Adds what the run was submitted with, and its places in the indexes that never change.
fn record_submission(commit: &mut Commit, lowering: &Lowering<'_>, incarnation: Incarnation) {
    let (keys, spec) = (lowering.keys, lowering.spec);
    commit.puts.push((keys.spec(lowering.run_id, incarnation), encode_spec(spec)));
    commit.puts.extend(spec.priority.map(|of| (keys.priority(of), Bytes::new())));
    let places = submission_places(keys, lowering.run_id, incarnation, spec);
    commit.puts.extend(places.map(|place| (place, Bytes::new())));
}

/// The places in the indexes that a run has from its submission on.
pub(crate) fn submission_places<'a>(
    keys: &'a KeySpace,
    run_id: &RunId,
    incarnation: Incarnation,
    spec: &'a Spec,
) -> impl Iterator<Item = Bytes> + use<'a> {
    let entry = IndexEntry { at: spec.submitted_at, run_id: run_id.clone(), incarnation };
    let of_headers = spec.headers.iter().map(|(name, value)| Index::Header(header_hash(name, value)));
    iter::once(Index::Submitted).chain(of_headers).map(move |index| keys.indexed(index, &entry))
}

/// Moves the run to its place among those in its state, if that is another than before.
fn move_listing(commit: &mut Commit, lowering: &Lowering<'_>, next: &Run, incarnation: Incarnation) {
    let (before, after) = (lowering.from.run.state(), next.state());
    if before == after {
        return;
    }
    let place = |(state, at)| {
        let entry = IndexEntry { at, run_id: lowering.run_id.clone(), incarnation };
        lowering.keys.indexed(Index::State(state), &entry)
    };
    commit.deletes.extend(before.map(place));
    commit.puts.extend(after.map(|after| (place(after), left_job(next))));
}

/// What the place of `run` in the index of states holds: the job that its end has left among the dead, for whoever
/// removes the run.
pub(crate) fn left_job(run: &Run) -> Bytes {
    match run {
        Run::Ended(ended) if ended.dead_letter => Bytes::copy_from_slice(ended.final_job.as_str().as_bytes()),
        Run::Absent | Run::Active(_) | Run::Ended(_) => Bytes::new(),
    }
}

/// Writes down which job a run that is brought back had left among the dead, for whoever removes the run.
fn note_left_job(commit: &mut Commit, lowering: &Lowering<'_>, incarnation: Incarnation, job: &JobId) {
    if let Run::Ended(ended) = &lowering.from.run {
        let key = lowering.keys.left_job(lowering.run_id, incarnation, ended.redrive);
        commit.puts.push((key, Bytes::copy_from_slice(job.as_str().as_bytes())));
    }
}

/// Adds staged application KV to `commit`.
pub(crate) fn apply_staged(commit: &mut Commit, staged: &StagedEffects) {
    commit.puts.extend(staged.puts.iter().map(|(key, value)| (key.clone(), value.clone())));
    commit.deletes.extend(staged.deletes.iter().cloned());
}

fn enqueue_step(
    commit: &mut Commit,
    lowering: &Lowering<'_>,
    incarnation: Incarnation,
    job: &JobId,
    due: Option<Timestamp>,
) {
    let queue = lowering.queues.of_priority(lowering.spec.priority.unwrap_or(DEFAULT_PRIORITY));
    let payload = lowering.doorbell(incarnation, BellTarget::Step);
    commit.enqueues.push(Enqueue { queue, job: job.clone(), payload, due });
}

fn notify(commit: &mut Commit, lowering: &Lowering<'_>, next: &Run, incarnation: Incarnation) {
    let (Some(row), Run::Ended(ended)) = (&lowering.notification, next) else { return };
    let redrive = ended.redrive;
    commit.puts.push((lowering.keys.notification(lowering.run_id, incarnation, redrive), encode_notification(row)));
    commit.enqueues.push(Enqueue {
        queue: lowering.queues.notifications(),
        job: row.state.job.clone(),
        payload: lowering.doorbell(incarnation, BellTarget::Notification { redrive }),
        due: None,
    });
}

/// Adds the row of the history that tells how the step ended, as far as the level goes.
fn record_step(commit: &mut Commit, lowering: &Lowering<'_>, transition: &Transition, incarnation: Incarnation) {
    let Some(attempted) = &lowering.attempted else { return };
    let end = match &transition.next {
        Run::Ended(ended) => ended.status.into(),
        Run::Active(run) => match run.phase {
            Phase::Ready => RecordedEnd::Continued,
            Phase::BackingOff { .. } | Phase::Delayed { .. } => RecordedEnd::Delayed,
            Phase::Waiting { .. } => RecordedEnd::Waited,
        },
        Run::Absent => RecordedEnd::Continued,
    };
    let written = match lowering.history {
        HistoryLevel::Off => false,
        HistoryLevel::Ends => matches!(transition.next, Run::Ended(_)),
        HistoryLevel::Full => true,
    };
    if written {
        let Attempted { step, attempt, started_at, ended_at, .. } = *attempted;
        let signal_key = attempted.signal.as_ref().map(|signal| signal.key.to_string());
        let is_full = lowering.history == HistoryLevel::Full;
        let payload = is_full.then(|| attempted.payload.clone());
        let signal = attempted.signal.clone().filter(|_| is_full);
        let row = StepRow { attempt, started_at, ended_at, end, payload, signal_key, signal };
        commit.puts.push((lowering.keys.history(lowering.run_id, incarnation, step), encode_step_row(&row)));
    }
}

/// The values that nothing names any more once `transition` is durable, but for rows of the history.
pub(crate) fn released(transition: &Transition) -> impl Iterator<Item = &Value> {
    let named = named_values(&transition.next);
    transition.effects.iter().filter_map(move |effect| match effect {
        Effect::ReleaseValue(value) if value.object().is_some() && !named.contains(&value) => Some(value),
        _ => None,
    })
}

/// The values that the record of `run` names.
pub(crate) fn named_values(run: &Run) -> Vec<&Value> {
    let (value, signal) = match run {
        Run::Absent => (None, None),
        Run::Active(run) => (Some(&run.payload), run.signal.as_ref()),
        Run::Ended(run) => match &run.remains {
            Some(remains) => (Some(&remains.payload), remains.signal.as_ref()),
            None => (run.result.as_ref(), None),
        },
    };
    value.into_iter().chain(signal.map(|signal| &signal.payload)).collect()
}

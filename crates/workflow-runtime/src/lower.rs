//! Lowering: the one place that turns a decision into keys, bytes and jobs.

mod slots;

use bytes::Bytes;
use workflow_core::{ActiveRun, Effect, Incarnation, JobId, Phase, Run, RunId, SignalId, Timestamp, Transition, Value};
use workflow_effects::{
    BellTarget, Commit, Doorbell, Enqueue, KeySpace, NotificationRow, RecordedEnd, Spec, StagedEffects, StepRow,
    encode_doorbell, encode_notification, encode_run, encode_spec, encode_step_row,
};

pub(crate) use self::slots::{delete_signal, write_slot};
use crate::HistoryLevel;
use crate::engine::{DEFAULT_PRIORITY, Queues};
use crate::signals::GatheredSlots;

/// What lowering needs to know besides the transition.
pub(crate) struct Lowering<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) queue_name: &'a str,
    pub(crate) queues: &'a Queues,
    /// The opening of the queue that rings the doorbells.
    pub(crate) open: u64,
    pub(crate) run_id: &'a RunId,
    /// The record that the transition was decided on.
    pub(crate) record: Option<&'a Bytes>,
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
    /// The key of the signal that it was called with.
    pub(crate) signal_key: Option<String>,
    /// Its number, from 1.
    pub(crate) attempt: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Timestamp,
}

impl Attempted {
    /// An attempt that ends the step in hand of `run`.
    pub(crate) fn of(run: &ActiveRun, attempt: u32, started_at: Timestamp, ended_at: Timestamp) -> Self {
        let signal_key = run.signal.as_ref().map(|signal| signal.key.to_string());
        Self { step: run.step, payload: run.payload.clone(), signal_key, attempt, started_at, ended_at }
    }
}

/// The transaction that carries `transition` out.
pub(crate) fn lower(lowering: &Lowering<'_>, transition: &Transition) -> Commit {
    let record_key = lowering.keys.run(lowering.run_id);
    let mut commit = Commit { expect: vec![(record_key.clone(), lowering.record.cloned())], ..Commit::default() };
    let incarnation = transition.next.incarnation().expect("a transition that is committed has a run");
    commit.puts.push((record_key, encode_run(&transition.next).expect("a run that is not absent has a record")));
    for effect in &transition.effects {
        match effect {
            Effect::RecordSubmission => {
                let key = lowering.keys.spec(lowering.run_id, incarnation);
                commit.puts.push((key, encode_spec(lowering.spec)));
                commit.puts.extend(lowering.spec.priority.map(|of| (lowering.keys.priority(of), Bytes::new())));
                apply_staged(&mut commit, lowering.staged);
            }
            Effect::EnqueueStep { job, due } => enqueue_step(&mut commit, lowering, incarnation, job, *due),
            Effect::ApplyStaged => apply_staged(&mut commit, lowering.staged),
            Effect::RecordStep => record_step(&mut commit, lowering, transition, incarnation),
            Effect::NotifyEnd => notify(&mut commit, lowering, incarnation),
            Effect::RegisterWaiter { keys } => lowering.register_waiter(&mut commit, transition, incarnation, keys),
            Effect::FreeWaiter { keys } => lowering.free_waiter(&mut commit, keys),
            Effect::TakeSignal { key } => lowering.take_signal(&mut commit, key),
            // These two follow the commit.
            Effect::DropDoorbell(_) | Effect::ReleaseValue(_) => {}
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

fn notify(commit: &mut Commit, lowering: &Lowering<'_>, incarnation: Incarnation) {
    let Some(row) = &lowering.notification else { return };
    commit.puts.push((lowering.keys.notification(lowering.run_id, incarnation, 0), encode_notification(row)));
    commit.enqueues.push(Enqueue {
        queue: lowering.queues.notifications(),
        job: row.state.job.clone(),
        payload: lowering.doorbell(incarnation, BellTarget::Notification { redrive: 0 }),
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
    let (written, payload) = match lowering.history {
        HistoryLevel::Off => (false, None),
        HistoryLevel::Ends => (matches!(transition.next, Run::Ended(_)), None),
        HistoryLevel::Full => (true, Some(attempted.payload.clone())),
    };
    if written {
        let Attempted { step, attempt, started_at, ended_at, .. } = *attempted;
        let row = StepRow { attempt, started_at, ended_at, end, payload, signal_key: attempted.signal_key.clone() };
        commit.puts.push((lowering.keys.history(lowering.run_id, incarnation, step), encode_step_row(&row)));
    }
}

/// The values that nothing names any more once `transition` is durable.
pub(crate) fn released(transition: &Transition) -> impl Iterator<Item = &Value> {
    let named = |value: &Value| match &transition.next {
        Run::Active(run) => {
            let signal = run.signal.as_ref().and_then(|signal| signal.payload.object());
            run.payload.object() == value.object() || signal == value.object()
        }
        Run::Ended(run) => run.result.as_ref().is_some_and(|result| result.object() == value.object()),
        Run::Absent => false,
    };
    transition.effects.iter().filter_map(move |effect| match effect {
        Effect::ReleaseValue(value) if value.object().is_some() && !named(value) => Some(value),
        _ => None,
    })
}

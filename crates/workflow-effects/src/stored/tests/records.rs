//! Every kind of record as one type, and strategies that make them.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::option;
use proptest::prelude::*;
use workflow_core::{
    ActiveRun, Attempt, Attempts, CancelRequest, CorrelationKey, EndedRun, Incarnation, InputHash, JobId, KeyState,
    Notification, ObjectRef, Outcome, Phase, Remains, Run, RunId, Signal, SignalId, Slot, Status, Timestamp, Value,
    WaitKey, Waiter, When,
};

use crate::error::Result;
use crate::staged::StagedEffects;
use crate::stored::*;

/// A record of any kind. A run is never absent, and a slot is never idle: of such there is no record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    Run(Run),
    Spec(Spec),
    Notification(NotificationRow),
    Doorbell(Doorbell),
    Memo(MemoEntry),
    Step(StepRow),
    Slot(Slot),
    Signal(BufferedSignal),
    Expiry(SignalExpiry),
    Objects(ObjectsRow),
    SignalObjects(SignalObjectsRow),
    Id(SignalId),
    OutcomeRow(OutcomeRow),
    Outcome(RecordedOutcome),
}

impl Record {
    pub(super) fn encode(&self) -> Bytes {
        match self {
            Self::Run(run) => encode_run(run).unwrap(),
            Self::Spec(spec) => encode_spec(spec),
            Self::Notification(row) => encode_notification(row),
            Self::Doorbell(bell) => encode_doorbell(bell),
            Self::Memo(entry) => encode_memo_entry(entry),
            Self::Step(row) => encode_step_row(row),
            Self::Slot(slot) => encode_slot(slot).unwrap(),
            Self::Signal(signal) => encode_buffered_signal(signal),
            Self::Expiry(expiry) => encode_signal_expiry(expiry),
            Self::Objects(row) => encode_objects_row(row),
            Self::SignalObjects(row) => encode_signal_objects_row(row),
            Self::Id(id) => encode_signal_id(*id),
            Self::OutcomeRow(row) => encode_outcome_row(row),
            Self::Outcome(recorded) => encode_outcome(recorded),
        }
    }

    /// Decodes `bytes` as a record of the kind of `self`.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Self> {
        let run_id = RunId::parse("r").unwrap();
        Ok(match self {
            Self::Run(_) => Self::Run(decode_run(&run_id, Some(bytes))?),
            Self::Spec(_) => Self::Spec(decode_spec(&run_id, bytes)?),
            Self::Notification(_) => Self::Notification(decode_notification(&run_id, bytes)?),
            Self::Doorbell(_) => Self::Doorbell(decode_doorbell(bytes)?),
            Self::Memo(_) => Self::Memo(decode_memo_entry(&run_id, "k", bytes)?),
            Self::Step(_) => Self::Step(decode_step_row(&run_id, bytes)?),
            Self::Slot(_) => Self::Slot(decode_slot(&key("k/\0"), Some(bytes))?),
            Self::Signal(_) => Self::Signal(decode_buffered_signal(&key("k/\0"), bytes)?),
            Self::Expiry(_) => Self::Expiry(decode_signal_expiry(bytes)?),
            Self::Objects(_) => Self::Objects(decode_objects_row(&run_id, bytes)?),
            Self::SignalObjects(_) => Self::SignalObjects(decode_signal_objects_row(bytes)?),
            Self::Id(_) => Self::Id(decode_signal_id(bytes)?),
            Self::OutcomeRow(_) => Self::OutcomeRow(decode_outcome_row(&run_id, bytes)?),
            Self::Outcome(_) => Self::Outcome(decode_outcome(&run_id, bytes)?),
        })
    }

    /// One record of each kind.
    pub(super) fn kinds() -> [Self; 14] {
        [
            Self::Run(Run::Active(active())),
            Self::Spec(spec()),
            Self::Notification(notification()),
            Self::Doorbell(doorbell()),
            Self::Memo(MemoEntry { revision: 6, value: Value::from("memo") }),
            Self::Step(step()),
            Self::Slot(slot()),
            Self::Signal(buffered()),
            Self::Expiry(expiry()),
            Self::Objects(objects()),
            Self::SignalObjects(signal_objects()),
            Self::Id(SignalId::new(7)),
            Self::OutcomeRow(outcome_row()),
            Self::Outcome(recorded()),
        ]
    }
}

pub(super) fn key(text: &str) -> CorrelationKey {
    CorrelationKey::parse(text).unwrap()
}

pub(super) fn active() -> ActiveRun {
    ActiveRun {
        revision: 3,
        incarnation: Incarnation::new(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
        redrive: 4,
        since: Timestamp::from_millis(1_700_000_000_001),
        step: 2,
        job: JobId::from("job-3"),
        phase: Phase::Ready,
        payload: Value::from("hello"),
        signal: None,
        attempts: Attempts { used: 1, base: 2, lost: 3, parked: true },
        cancel: None,
        paused: false,
    }
}

pub(super) fn signal() -> Signal {
    Signal { id: SignalId::new(7), key: key("a/\0b"), payload: Value::from("yes") }
}

pub(super) fn ended() -> EndedRun {
    EndedRun {
        revision: 300,
        incarnation: Incarnation::new(7),
        status: Status::Succeeded,
        result: Some(Value::from("done")),
        error: None,
        final_step: 70_000,
        ended_at: Timestamp::from_millis(1_700_000_000_000),
        final_job: JobId::from("job-9"),
        dead_letter: false,
        redrive: 4,
        remains: None,
    }
}

pub(super) fn spec() -> Spec {
    Spec {
        headers: BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]),
        max_attempts: 5,
        priority: Some(9),
        input_hash: InputHash(std::array::from_fn(|index| index as u8)),
        submitted_at: Timestamp::from_millis(1_700_000_000_000),
        object_prefix: "objects".to_owned(),
    }
}

pub(super) fn notification() -> NotificationRow {
    NotificationRow {
        state: Notification {
            revision: 4,
            job: JobId::from("job-4"),
            attempts: Attempts { used: 5, base: 0, lost: 0, parked: false },
            due: Some(Timestamp::from_millis(1_000)),
            dead: true,
        },
        status: Status::Failed,
        error: Some("no".to_owned()),
        final_step: 2,
    }
}

pub(super) fn doorbell() -> Doorbell {
    Doorbell {
        run_id: RunId::parse("order-17").unwrap(),
        incarnation: Incarnation::new(7),
        queue_name: "workflow-steps".to_owned(),
        open: 0x0102_0304_0506_0708,
        target: BellTarget::Step,
    }
}

pub(super) fn step() -> StepRow {
    StepRow {
        attempt: 2,
        started_at: Timestamp::from_millis(1_700_000_000_000),
        ended_at: Timestamp::from_millis(1_700_000_000_100),
        end: RecordedEnd::Continued,
        payload: None,
        signal_key: None,
        signal: None,
    }
}

pub(super) fn slot() -> Slot {
    let waiter = Waiter { run_id: RunId::parse("order-17").unwrap(), incarnation: Incarnation::new(7), step: 2 };
    Slot { revision: 3, waiter: Some(waiter), head: 0, tail: 0, last: None }
}

pub(super) fn buffered() -> BufferedSignal {
    BufferedSignal {
        id: SignalId::new(7),
        payload: Value::from("yes"),
        sent_at: Timestamp::from_millis(1_700_000_000_000),
        expires_at: Timestamp::from_millis(1_700_604_800_000),
        idempotency_id: None,
    }
}

pub(super) fn expiry() -> SignalExpiry {
    SignalExpiry { signal: SignalId::new(7), key: key("a/\0b"), number: Some(300), idempotency_id: None }
}

pub(super) fn objects() -> ObjectsRow {
    let since = Timestamp::from_millis(1_700_000_000_000);
    ObjectsRow { since, prefix: "objects".to_owned(), state: ObjectsState::Fresh }
}

pub(super) fn signal_objects() -> SignalObjectsRow {
    let ObjectsRow { since, prefix, .. } = objects();
    SignalObjectsRow { since, prefix, state: SignalObjectsState::Fresh }
}

pub(super) fn outcome_row() -> OutcomeRow {
    let attempt = Attempt { incarnation: Incarnation::new(7), step: 2, job: JobId::from("job-3"), deliveries: 300 };
    OutcomeRow { attempt, started_at: Timestamp::from_millis(1_700_000_000_000), content: Value::from("out") }
}

pub(super) fn recorded() -> RecordedOutcome {
    let outcome = Outcome::Continue { payload: Value::from("in"), when: When::Now };
    let puts = BTreeMap::from([("b".into(), "2".into()), ("a".into(), "1".into())]);
    RecordedOutcome { outcome, staged: StagedEffects { puts, deletes: ["c".into()].into() } }
}

/// What the slot of the key holds is not recorded.
pub(super) fn wait(text: &str) -> WaitKey {
    WaitKey { key: key(text), state: KeyState::Free }
}

pub(super) fn any_record() -> impl Strategy<Value = Record> {
    prop_oneof![
        active_runs().prop_map(|run| Record::Run(Run::Active(run))),
        ended_runs().prop_map(|run| Record::Run(Run::Ended(run))),
        specs().prop_map(Record::Spec),
        notifications().prop_map(Record::Notification),
        doorbells().prop_map(Record::Doorbell),
        (any::<u64>(), values()).prop_map(|(revision, value)| Record::Memo(MemoEntry { revision, value })),
        steps().prop_map(Record::Step),
        slots().prop_map(Record::Slot),
        buffered_signals().prop_map(Record::Signal),
        expiries().prop_map(Record::Expiry),
        objects_rows().prop_map(Record::Objects),
        signal_objects_rows().prop_map(Record::SignalObjects),
        signal_ids().prop_map(Record::Id),
        outcome_rows().prop_map(Record::OutcomeRow),
        recorded_outcomes().prop_map(Record::Outcome),
    ]
}

fn incarnations() -> impl Strategy<Value = Incarnation> {
    any::<u128>().prop_map(Incarnation::new)
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_millis)
}

fn jobs() -> impl Strategy<Value = JobId> {
    any::<String>().prop_map(JobId::from)
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(Value::from),
        (any::<String>(), any::<u64>()).prop_map(|(path, len)| Value::Object(ObjectRef { path, len })),
    ]
}

fn attempts() -> impl Strategy<Value = Attempts> {
    any::<(u32, u32, u32, bool)>().prop_map(|(used, base, lost, parked)| Attempts { used, base, lost, parked })
}

fn keys() -> impl Strategy<Value = CorrelationKey> {
    prop_oneof!["[a/\0]{1,3}", ".{1,64}", "[a-z]{1024}"].prop_map(|text| key(&text))
}

fn signals() -> impl Strategy<Value = Signal> {
    (signal_ids(), keys(), values()).prop_map(|(id, key, payload)| Signal { id, key, payload })
}

fn signal_ids() -> impl Strategy<Value = SignalId> {
    any::<u128>().prop_map(SignalId::new)
}

fn phases() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Ready),
        times().prop_map(|until| Phase::BackingOff { until }),
        times().prop_map(|until| Phase::Delayed { until }),
        (proptest::collection::vec(keys(), 0..5), option::of(times()))
            .prop_map(|(keys, until)| Phase::Waiting { keys, until }),
    ]
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Succeeded), Just(Status::Failed), Just(Status::Cancelled)]
}

fn active_runs() -> impl Strategy<Value = ActiveRun> {
    let cancels = option::of(option::of(any::<String>()).prop_map(|reason| CancelRequest { reason }));
    let held = (values(), option::of(signals()), attempts(), cancels);
    let counts = (any::<(u64, u32, u32, bool)>(), times());
    (counts, incarnations(), jobs(), phases(), held).prop_map(
        |(((revision, redrive, step, paused), since), incarnation, job, phase, (payload, signal, attempts, cancel))| {
            ActiveRun {
                revision,
                incarnation,
                redrive,
                since,
                step,
                job,
                phase,
                payload,
                signal,
                attempts,
                cancel,
                paused,
            }
        },
    )
}

fn ended_runs() -> impl Strategy<Value = EndedRun> {
    let results = (statuses(), option::of(values()), option::of(any::<String>()));
    let remains = (values(), option::of(signals()), phases()).prop_map(|(payload, signal, phase)| Remains {
        payload,
        signal,
        phase,
    });
    let last = (times(), jobs(), option::of(remains));
    (any::<(u64, u32, u32, bool)>(), incarnations(), results, last).prop_map(
        |(
            (revision, redrive, final_step, dead_letter),
            incarnation,
            (status, result, error),
            (ended_at, final_job, remains),
        )| EndedRun {
            revision,
            incarnation,
            status,
            result,
            error,
            final_step,
            ended_at,
            final_job,
            dead_letter,
            redrive,
            remains,
        },
    )
}

fn specs() -> impl Strategy<Value = Spec> {
    let headers = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..4);
    (headers, any::<(u32, Option<u32>, [u8; 32])>(), times(), any::<String>()).prop_map(
        |(headers, (max_attempts, priority, hash), submitted_at, object_prefix)| Spec {
            headers,
            max_attempts,
            priority,
            input_hash: InputHash(hash),
            submitted_at,
            object_prefix,
        },
    )
}

fn notifications() -> impl Strategy<Value = NotificationRow> {
    let states = (any::<(u64, bool)>(), jobs(), attempts(), option::of(times()))
        .prop_map(|((revision, dead), job, attempts, due)| Notification { revision, job, attempts, due, dead });
    (states, statuses(), option::of(any::<String>()), any::<u32>())
        .prop_map(|(state, status, error, final_step)| NotificationRow { state, status, error, final_step })
}

fn steps() -> impl Strategy<Value = StepRow> {
    let ends = prop_oneof![
        Just(RecordedEnd::Continued),
        Just(RecordedEnd::Delayed),
        Just(RecordedEnd::Waited),
        statuses().prop_map(RecordedEnd::from),
    ];
    let signals = (option::of(any::<String>()), option::of(signals()));
    (any::<u32>(), times(), times(), ends, option::of(values()), signals).prop_map(
        |(attempt, started_at, ended_at, end, payload, (signal_key, signal))| StepRow {
            attempt,
            started_at,
            ended_at,
            end,
            payload,
            signal_key,
            signal,
        },
    )
}

fn run_ids() -> impl Strategy<Value = RunId> {
    "[A-Za-z0-9_-]{1,128}".prop_map(|id| RunId::parse(id).unwrap())
}

fn slots() -> impl Strategy<Value = Slot> {
    let waiters = (run_ids(), incarnations(), any::<u32>()).prop_map(|(run_id, incarnation, step)| Waiter {
        run_id,
        incarnation,
        step,
    });
    let numbers = prop_oneof![Just((0, 0)), any::<(u64, u64)>().prop_map(|(a, b)| (a.min(b), a.max(b)))];
    (any::<u64>(), option::of(waiters), numbers, option::of(signal_ids()))
        .prop_map(|(revision, waiter, (head, tail), last)| Slot { revision, waiter, head, tail, last })
        .prop_filter("an idle slot has no record", |slot| !slot.is_idle())
}

fn buffered_signals() -> impl Strategy<Value = BufferedSignal> {
    (signal_ids(), values(), times(), times(), option::of(any::<String>())).prop_map(
        |(id, payload, sent_at, expires_at, idempotency_id)| BufferedSignal {
            id,
            payload,
            sent_at,
            expires_at,
            idempotency_id,
        },
    )
}

fn expiries() -> impl Strategy<Value = SignalExpiry> {
    (signal_ids(), keys(), option::of(any::<u64>()), option::of(any::<String>()))
        .prop_map(|(signal, key, number, idempotency_id)| SignalExpiry { signal, key, number, idempotency_id })
}

fn objects_rows() -> impl Strategy<Value = ObjectsRow> {
    let states = prop_oneof![Just(ObjectsState::Fresh), Just(ObjectsState::Named), Just(ObjectsState::Condemned)];
    (times(), any::<String>(), states).prop_map(|(since, prefix, state)| ObjectsRow { since, prefix, state })
}

fn signal_objects_rows() -> impl Strategy<Value = SignalObjectsRow> {
    let states = prop_oneof![
        Just(SignalObjectsState::Fresh),
        keys().prop_map(|key| SignalObjectsState::Buffered { key }),
        (run_ids(), incarnations()).prop_map(|(run_id, incarnation)| SignalObjectsState::Owned { run_id, incarnation }),
        Just(SignalObjectsState::Condemned),
    ];
    (times(), any::<String>(), states).prop_map(|(since, prefix, state)| SignalObjectsRow { since, prefix, state })
}

fn doorbells() -> impl Strategy<Value = Doorbell> {
    let targets =
        prop_oneof![Just(BellTarget::Step), any::<u32>().prop_map(|redrive| BellTarget::Notification { redrive }),];
    (run_ids(), incarnations(), any::<String>(), any::<u64>(), targets).prop_map(
        |(run_id, incarnation, queue_name, open, target)| Doorbell { run_id, incarnation, queue_name, open, target },
    )
}

fn outcome_rows() -> impl Strategy<Value = OutcomeRow> {
    let attempts = (incarnations(), any::<(u32, u32)>(), jobs())
        .prop_map(|(incarnation, (step, deliveries), job)| Attempt { incarnation, step, job, deliveries });
    (attempts, times(), values()).prop_map(|(attempt, started_at, content)| OutcomeRow { attempt, started_at, content })
}

fn recorded_outcomes() -> impl Strategy<Value = RecordedOutcome> {
    let texts = || any::<Vec<u8>>().prop_map(Bytes::from);
    let puts = proptest::collection::btree_map(texts(), texts(), 0..4);
    let deletes = proptest::collection::btree_set(texts(), 0..4);
    (outcomes(), puts, deletes)
        .prop_map(|(outcome, puts, deletes)| RecordedOutcome { outcome, staged: StagedEffects { puts, deletes } })
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let waits = keys().prop_map(|key| WaitKey { key, state: KeyState::Free });
    let whens = prop_oneof![
        Just(When::Now),
        times().prop_map(When::At),
        (proptest::collection::vec(waits, 0..5), option::of(times()))
            .prop_map(|(keys, until)| When::OnSignal { keys, until }),
    ];
    prop_oneof![
        (values(), whens).prop_map(|(payload, when)| Outcome::Continue { payload, when }),
        values().prop_map(|result| Outcome::Succeed { result }),
        any::<String>().prop_map(|reason| Outcome::Fail { reason }),
        any::<String>().prop_map(|reason| Outcome::Cancel { reason }),
    ]
}

//! Every kind of record as one type, and strategies that make them.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::option;
use proptest::prelude::*;
use workflow_core::{
    ActiveRun, Attempts, EndedRun, Incarnation, InputHash, JobId, Notification, ObjectRef, Phase, Run, RunId, Status,
    Timestamp, Value,
};

use crate::error::Result;
use crate::stored::*;

/// A record of any kind. A run is never absent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    Run(Run),
    Spec(Spec),
    Notification(NotificationRow),
    Doorbell(Doorbell),
    Memo(MemoEntry),
    Step(StepRow),
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
        })
    }

    /// One record of each kind.
    pub(super) fn kinds() -> [Self; 6] {
        [
            Self::Run(Run::Active(active())),
            Self::Spec(spec()),
            Self::Notification(notification()),
            Self::Doorbell(doorbell()),
            Self::Memo(MemoEntry { revision: 6, value: Value::from("memo") }),
            Self::Step(step()),
        ]
    }
}

pub(super) fn active() -> ActiveRun {
    ActiveRun {
        revision: 3,
        incarnation: Incarnation::new(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
        step: 2,
        job: JobId::from("job-3"),
        phase: Phase::Ready,
        payload: Value::from("hello"),
        attempts: Attempts { used: 1, base: 2, lost: 3, parked: true },
    }
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
    }
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

fn phases() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Ready),
        times().prop_map(|until| Phase::BackingOff { until }),
        times().prop_map(|until| Phase::Delayed { until }),
    ]
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Succeeded), Just(Status::Failed), Just(Status::Cancelled)]
}

fn active_runs() -> impl Strategy<Value = ActiveRun> {
    (any::<u64>(), incarnations(), any::<u32>(), jobs(), phases(), values(), attempts()).prop_map(
        |(revision, incarnation, step, job, phase, payload, attempts)| ActiveRun {
            revision,
            incarnation,
            step,
            job,
            phase,
            payload,
            attempts,
        },
    )
}

fn ended_runs() -> impl Strategy<Value = EndedRun> {
    let results = (statuses(), option::of(values()), option::of(any::<String>()));
    (any::<(u64, u32, bool)>(), incarnations(), results, times(), jobs()).prop_map(
        |((revision, final_step, dead_letter), incarnation, (status, result, error), ended_at, final_job)| EndedRun {
            revision,
            incarnation,
            status,
            result,
            error,
            final_step,
            ended_at,
            final_job,
            dead_letter,
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
    let ends =
        prop_oneof![Just(RecordedEnd::Continued), Just(RecordedEnd::Delayed), statuses().prop_map(RecordedEnd::from),];
    (any::<u32>(), times(), times(), ends, option::of(values())).prop_map(
        |(attempt, started_at, ended_at, end, payload)| StepRow { attempt, started_at, ended_at, end, payload },
    )
}

fn doorbells() -> impl Strategy<Value = Doorbell> {
    let run_ids = "[A-Za-z0-9_-]{1,128}".prop_map(|id| RunId::parse(id).unwrap());
    let targets =
        prop_oneof![Just(BellTarget::Step), any::<u32>().prop_map(|redrive| BellTarget::Notification { redrive }),];
    (run_ids, incarnations(), any::<String>(), any::<u64>(), targets).prop_map(
        |(run_id, incarnation, queue_name, open, target)| Doorbell { run_id, incarnation, queue_name, open, target },
    )
}

//! The bytes of every record, in each of its variants. What a released version wrote is read for ever: these lines
//! may be added to, never changed.

use workflow_core::{ActiveRun, EndedRun, ObjectRef, Phase, Run, Status, Timestamp, Value};

use super::records::{Record, active, doorbell, ended, notification, spec, step};
use crate::stored::*;

fn check(record: Record, golden: &str) {
    let hex: String = record.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden.replace(' ', ""), "{record:?}");
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    assert_eq!(record.decode(&bytes).unwrap(), record);
}

fn object() -> Value {
    Value::Object(ObjectRef { path: "p/r/1/2".to_owned(), len: 70_000 })
}

#[test]
fn active_runs() {
    let run = |run| Record::Run(Run::Active(run));
    let until = Timestamp::from_millis(1_700_000_000_000);
    check(run(active()), "000003fe100f0e0d0c0b0a09080706050403020102056a6f622d3300000568656c6c6f01020301");
    check(
        run(ActiveRun { phase: Phase::BackingOff { until }, ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020102056a6f622d3301fd0068e5cf8b010000000568656c6c6f01020301",
    );
    check(
        run(ActiveRun { phase: Phase::Delayed { until: Timestamp::NEVER }, ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020102056a6f622d3302fdffdb1fd277e60000000568656c6c6f01020301",
    );
    check(
        run(ActiveRun { payload: object(), ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020102056a6f622d33000107702f722f312f32fc7011010001020301",
    );
}

#[test]
fn ended_runs() {
    let run = |run| Record::Run(Run::Ended(run));
    check(run(ended()), "0001fb2c010700010004646f6e6500fc70110100fd0068e5cf8b010000056a6f622d3900");
    let failed = EndedRun { status: Status::Failed, result: None, error: Some("no".to_owned()), ..ended() };
    check(
        run(EndedRun { dead_letter: true, ..failed.clone() }),
        "0001fb2c0107010001026e6ffc70110100fd0068e5cf8b010000056a6f622d3901",
    );
    check(
        run(EndedRun { status: Status::Cancelled, ..failed }),
        "0001fb2c0107020001026e6ffc70110100fd0068e5cf8b010000056a6f622d3900",
    );
    check(
        run(EndedRun { result: Some(object()), ..ended() }),
        "0001fb2c010700010107702f722f312f32fc7011010000fc70110100fd0068e5cf8b010000056a6f622d3900",
    );
}

#[test]
fn specs() {
    check(
        Record::Spec(spec()),
        "00020161013101620132050109000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1ffd0068e5cf8b010000076f626a65637473",
    );
    check(
        Record::Spec(Spec { priority: None, headers: Default::default(), ..spec() }),
        "00000500000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1ffd0068e5cf8b010000076f626a65637473",
    );
}

#[test]
fn notifications() {
    check(Record::Notification(notification()), "0004056a6f622d340500000001fbe803010101026e6f02");
    let mut first = notification();
    first.state.due = None;
    first.state.dead = false;
    check(
        Record::Notification(NotificationRow { status: Status::Succeeded, error: None, ..first.clone() }),
        "0004056a6f622d34050000000000000002",
    );
    check(
        Record::Notification(NotificationRow { status: Status::Cancelled, ..first }),
        "0004056a6f622d340500000000000201026e6f02",
    );
}

#[test]
fn doorbells() {
    check(Record::Doorbell(doorbell()), "00086f726465722d3137070e776f726b666c6f772d7374657073fd080706050403020100");
    let target = BellTarget::Notification { redrive: 300 };
    check(
        Record::Doorbell(Doorbell { target, ..doorbell() }),
        "00086f726465722d3137070e776f726b666c6f772d7374657073fd080706050403020101fb2c01",
    );
}

#[test]
fn memo_entries() {
    check(Record::Memo(MemoEntry { revision: 6, value: Value::from("memo") }), "000600046d656d6f");
    check(
        Record::Memo(MemoEntry { revision: u64::MAX, value: object() }),
        "00fdffffffffffffffff0107702f722f312f32fc70110100",
    );
}

#[test]
fn steps() {
    let row = |row| Record::Step(row);
    check(row(step()), "0002fd0068e5cf8b010000fd6468e5cf8b0100000000");
    check(
        row(StepRow { end: RecordedEnd::Delayed, payload: Some(Value::from("in")), ..step() }),
        "0002fd0068e5cf8b010000fd6468e5cf8b01000001010002696e",
    );
    check(
        row(StepRow { end: RecordedEnd::Succeeded, payload: Some(object()), ..step() }),
        "0002fd0068e5cf8b010000fd6468e5cf8b01000002010107702f722f312f32fc70110100",
    );
    check(row(StepRow { end: RecordedEnd::Failed, ..step() }), "0002fd0068e5cf8b010000fd6468e5cf8b0100000300");
    check(row(StepRow { end: RecordedEnd::Cancelled, ..step() }), "0002fd0068e5cf8b010000fd6468e5cf8b0100000400");
}

#[test]
fn objects_rows() {
    assert_eq!(encode_objects_row(), [0, 0][..]);
}

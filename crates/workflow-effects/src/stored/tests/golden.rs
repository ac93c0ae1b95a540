//! The bytes of every record, in each of its variants. What a released version wrote is read for ever: these lines
//! may be added to, never changed.

use workflow_core::{
    ActiveRun, CancelRequest, EndedRun, Incarnation, ObjectRef, Outcome, Phase, Remains, Run, RunId, Signal, SignalId,
    Slot, Status, Timestamp, Value, When,
};

use super::records::{
    Record, active, buffered, doorbell, ended, expiry, key, notification, objects, outcome_row, recorded, signal,
    signal_objects, slot, spec, step, wait,
};
use crate::staged::StagedEffects;
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
    check(
        run(active()),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3300000568656c6c6f00010203010000",
    );
    check(
        run(ActiveRun { phase: Phase::BackingOff { until }, ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3301fd0068e5cf8b010000000568656c6c6f00010203010000",
    );
    check(
        run(ActiveRun { phase: Phase::Delayed { until: Timestamp::NEVER }, ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3302fdffdb1fd277e60000000568656c6c6f00010203010000",
    );
    check(
        run(ActiveRun { payload: object(), ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d33000107702f722f312f32fc7011010000010203010000",
    );
}

#[test]
fn runs_that_wait_and_that_are_signalled() {
    let run = |run| Record::Run(Run::Active(run));
    let until = Some(Timestamp::from_millis(1_700_000_000_000));
    let keys = vec![key("k"), key("a/\0b")];
    check(
        run(ActiveRun { phase: Phase::Waiting { keys, until }, ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d330302016b04612f006201fd0068e5cf8b010000000568656c6c6f00010203010000",
    );
    check(
        run(ActiveRun { phase: Phase::Waiting { keys: vec![key("k")], until: None }, ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d330301016b00000568656c6c6f00010203010000",
    );
    check(
        run(ActiveRun { signal: Some(signal()), ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3300000568656c6c6f010704612f00620003796573010203010000",
    );
    check(
        run(ActiveRun { signal: Some(Signal { payload: object(), ..signal() }), ..active() }),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3300000568656c6c6f010704612f00620107702f722f312f32fc70110100010203010000",
    );
}

#[test]
fn runs_that_are_to_be_cancelled() {
    let run = |reason| Record::Run(Run::Active(ActiveRun { cancel: Some(CancelRequest { reason }), ..active() }));
    check(
        run(Some("no".to_owned())),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3300000568656c6c6f00010203010101026e6f00",
    );
    check(
        run(None),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3300000568656c6c6f0001020301010000",
    );
}

#[test]
fn runs_that_are_paused() {
    check(
        Record::Run(Run::Active(ActiveRun { paused: true, ..active() })),
        "000003fe100f0e0d0c0b0a09080706050403020104fd0168e5cf8b01000002056a6f622d3300000568656c6c6f00010203010001",
    );
}

#[test]
fn what_a_redrive_goes_on_from() {
    let run = |remains| Record::Run(Run::Ended(EndedRun { remains: Some(remains), ..ended() }));
    let remains = Remains { payload: Value::from("hello"), signal: None, phase: Phase::Ready };
    check(
        run(remains),
        "0001fb2c010700010004646f6e6500fc70110100fd0068e5cf8b010000056a6f622d39000401000568656c6c6f0000",
    );
    let until = Some(Timestamp::from_millis(1_700_000_000_000));
    let phase = Phase::Waiting { keys: vec![key("k")], until };
    check(
        run(Remains { payload: object(), signal: Some(signal()), phase }),
        "0001fb2c010700010004646f6e6500fc70110100fd0068e5cf8b010000056a6f622d390004010107702f722f312f32fc70110100010704612f006200037965730301016b01fd0068e5cf8b010000",
    );
}

#[test]
fn ended_runs() {
    let run = |run| Record::Run(Run::Ended(run));
    check(run(ended()), "0001fb2c010700010004646f6e6500fc70110100fd0068e5cf8b010000056a6f622d39000400");
    let failed = EndedRun { status: Status::Failed, result: None, error: Some("no".to_owned()), ..ended() };
    check(
        run(EndedRun { dead_letter: true, ..failed.clone() }),
        "0001fb2c0107010001026e6ffc70110100fd0068e5cf8b010000056a6f622d39010400",
    );
    check(
        run(EndedRun { status: Status::Cancelled, ..failed }),
        "0001fb2c0107020001026e6ffc70110100fd0068e5cf8b010000056a6f622d39000400",
    );
    check(
        run(EndedRun { result: Some(object()), ..ended() }),
        "0001fb2c010700010107702f722f312f32fc7011010000fc70110100fd0068e5cf8b010000056a6f622d39000400",
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
    check(row(step()), "0002fd0068e5cf8b010000fd6468e5cf8b01000000000000");
    check(
        row(StepRow { end: RecordedEnd::Delayed, payload: Some(Value::from("in")), ..step() }),
        "0002fd0068e5cf8b010000fd6468e5cf8b01000001010002696e0000",
    );
    check(
        row(StepRow { end: RecordedEnd::Waited, signal_key: Some("k/\0".to_owned()), ..step() }),
        "0002fd0068e5cf8b010000fd6468e5cf8b010000020001036b2f0000",
    );
    check(
        row(StepRow { end: RecordedEnd::Succeeded, payload: Some(object()), ..step() }),
        "0002fd0068e5cf8b010000fd6468e5cf8b01000003010107702f722f312f32fc701101000000",
    );
    check(
        row(StepRow { signal: Some(signal()), ..step() }),
        "0002fd0068e5cf8b010000fd6468e5cf8b010000000000010704612f00620003796573",
    );
    check(row(StepRow { end: RecordedEnd::Failed, ..step() }), "0002fd0068e5cf8b010000fd6468e5cf8b01000004000000");
    check(row(StepRow { end: RecordedEnd::Cancelled, ..step() }), "0002fd0068e5cf8b010000fd6468e5cf8b01000005000000");
}

#[test]
fn slots() {
    check(Record::Slot(slot()), "00 03 01086f726465722d31370702 00 00 00");
    let last = Some(SignalId::new(u128::MAX));
    check(
        Record::Slot(Slot { revision: 300, waiter: None, head: 4, tail: 9, last }),
        "00 fb2c01 00 04 09 01feffffffffffffffffffffffffffffffff",
    );
}

#[test]
fn buffered_signals() {
    check(Record::Signal(buffered()), "00 07 0003796573 fd0068e5cf8b010000 fd00ecf1f38b010000 00");
    check(
        Record::Signal(BufferedSignal { payload: object(), idempotency_id: Some("id".to_owned()), ..buffered() }),
        "00 07 0107702f722f312f32fc70110100 fd0068e5cf8b010000 fd00ecf1f38b010000 01026964",
    );
}

#[test]
fn expiries_of_signals() {
    check(Record::Expiry(expiry()), "00 07 04612f0062 01fb2c01 00");
    check(
        Record::Expiry(SignalExpiry { number: None, idempotency_id: Some("id".to_owned()), ..expiry() }),
        "00 07 04612f0062 00 01026964",
    );
}

#[test]
fn idempotency_ids_of_signals() {
    check(Record::Id(SignalId::new(7)), "00 07");
    check(Record::Id(SignalId::new(300)), "00 fb2c01");
}

#[test]
fn objects_rows() {
    let row = |state| Record::Objects(ObjectsRow { state, ..objects() });
    check(row(ObjectsState::Fresh), "00 fd0068e5cf8b010000 076f626a65637473 00");
    check(row(ObjectsState::Named), "00 fd0068e5cf8b010000 076f626a65637473 01");
    check(row(ObjectsState::Condemned), "00 fd0068e5cf8b010000 076f626a65637473 02");
}

#[test]
fn objects_rows_of_signals() {
    let row = |state| Record::SignalObjects(SignalObjectsRow { state, ..signal_objects() });
    check(row(SignalObjectsState::Fresh), "00 fd0068e5cf8b010000 076f626a65637473 00");
    check(
        row(SignalObjectsState::Buffered { key: key("a/\0b") }),
        "00 fd0068e5cf8b010000 076f626a65637473 01 04612f0062",
    );
    check(
        row(SignalObjectsState::Owned { run_id: RunId::parse("order-17").unwrap(), incarnation: Incarnation::new(7) }),
        "00 fd0068e5cf8b010000 076f626a65637473 02 086f726465722d3137 07",
    );
    check(row(SignalObjectsState::Condemned), "00 fd0068e5cf8b010000 076f626a65637473 03");
}

#[test]
fn outcome_rows() {
    check(Record::OutcomeRow(outcome_row()), "00 07 02 056a6f622d33 fb2c01 fd0068e5cf8b010000 00036f7574");
    check(
        Record::OutcomeRow(OutcomeRow { content: object(), ..outcome_row() }),
        "00 07 02 056a6f622d33 fb2c01 fd0068e5cf8b010000 0107702f722f312f32fc70110100",
    );
}

#[test]
fn recorded_outcomes() {
    check(Record::Outcome(recorded()), "00 00 0002696e 00 02 01610131 01620132 01 0163");
    let row = |outcome| Record::Outcome(RecordedOutcome { outcome, staged: StagedEffects::default() });
    let goes_on = |when| Outcome::Continue { payload: object(), when };
    let until = Timestamp::from_millis(1_700_000_000_000);
    check(row(goes_on(When::Now)), "00 00 0107702f722f312f32fc70110100 00 00 00");
    check(row(goes_on(When::At(until))), "00 00 0107702f722f312f32fc70110100 01fd0068e5cf8b010000 00 00");
    let keys = vec![wait("k"), wait("a/\0b")];
    check(
        row(goes_on(When::OnSignal { keys: keys.clone(), until: Some(until) })),
        "00 00 0107702f722f312f32fc70110100 02 02 016b 04612f0062 01fd0068e5cf8b010000 00 00",
    );
    check(
        row(goes_on(When::OnSignal { keys, until: None })),
        "00 00 0107702f722f312f32fc70110100 02 02 016b 04612f0062 00 00 00",
    );
    check(row(Outcome::Succeed { result: Value::from("done") }), "00 01 0004646f6e65 00 00");
    check(row(Outcome::Fail { reason: "no".to_owned() }), "00 02 026e6f 00 00");
    check(row(Outcome::Cancel { reason: "enough".to_owned() }), "00 03 06656e6f756768 00 00");
}

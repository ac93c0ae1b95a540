//! Records survive the round trip, and no bytes at all make decoding panic.

mod golden;
mod records;

use proptest::prelude::*;
use workflow_core::{ActiveRun, MAX_CORRELATION_KEY_LEN, Phase, Run, RunId, Signal, SignalId, Slot};

use super::*;
use crate::error::Error;
use records::{Record, any_record};

/// Decodes `bytes` as a record of each kind.
fn decode_as_each(bytes: &[u8]) -> Vec<Result<Record, Error>> {
    Record::kinds().iter().map(|kind| kind.decode(bytes)).collect()
}

proptest! {
    #[test]
    fn a_record_survives_the_round_trip(record in any_record()) {
        prop_assert_eq!(record.decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn distinct_records_have_distinct_bytes((a, b) in (any_record(), any_record())) {
        if std::mem::discriminant(&a) == std::mem::discriminant(&b) {
            prop_assert_eq!(a.encode() == b.encode(), a == b);
        }
    }

    #[test]
    fn any_bytes_decode_or_are_corrupt(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for result in decode_as_each(&bytes) {
            prop_assert!(matches!(result, Ok(_) | Err(Error::Corrupt { .. })), "{:?}", result);
        }
    }

    #[test]
    fn damaged_bytes_decode_or_are_corrupt(
        record in any_record(), at in any::<prop::sample::Index>(), with in any::<Vec<u8>>(), removed in 0..9_usize,
    ) {
        let mut bytes = record.encode().to_vec();
        let start = at.index(bytes.len());
        let end = (start + removed).min(bytes.len());
        bytes.splice(start..end, with);
        for result in decode_as_each(&bytes) {
            prop_assert!(matches!(result, Ok(_) | Err(Error::Corrupt { .. })), "{:?}", result);
        }
    }

    #[test]
    fn a_cut_record_and_one_with_more_behind_it_are_corrupt(
        record in any_record(), at in any::<prop::sample::Index>(), more in any::<u8>(),
    ) {
        let bytes = record.encode();
        let cut = record.decode(&bytes[..at.index(bytes.len())]);
        prop_assert!(matches!(cut, Err(Error::Corrupt { .. })), "{:?}", cut);
        let longer = record.decode(&[&bytes, &[more][..]].concat());
        prop_assert!(matches!(longer, Err(Error::Corrupt { .. })), "{:?}", longer);
    }
}

/// The message for `bytes` as a record of the kind of `record`.
fn check_corrupt(record: &Record, bytes: &[u8], expected: &str) {
    let error = record.decode(bytes).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(error.is_permanent());
}

#[test]
fn a_corrupt_record_names_what_it_is_and_what_is_wrong() {
    let [
        run,
        spec,
        notification,
        doorbell,
        memo,
        step,
        slot,
        signal,
        expiry,
        objects,
        signal_objects,
        id,
        row,
        outcome,
    ] = Record::kinds();
    let newer = "is corrupt: its bytes have another shape, perhaps that of a newer version";
    check_corrupt(&run, b"", "the record of run r is corrupt: it ends too early");
    check_corrupt(&run, b"\x01", &format!("the record of run r {newer}"));
    check_corrupt(&spec, b"\x07", &format!("the spec of run r {newer}"));
    check_corrupt(&notification, b"", "the notification of run r is corrupt: it ends too early");
    check_corrupt(&doorbell, b"\0\x01\xff", "a doorbell is corrupt: it holds a text that is none");
    check_corrupt(&memo, b"\0", "memo \"k\" of run r is corrupt: it ends too early");
    check_corrupt(&step, b"", "the history of run r is corrupt: it ends too early");
    check_corrupt(&slot, b"", "the slot of correlation key \"k/\\0\" is corrupt: it ends too early");
    check_corrupt(&signal, b"\x01", &format!("a signal for correlation key \"k/\\0\" {newer}"));
    check_corrupt(&expiry, b"", "the expiry of a signal is corrupt: it ends too early");
    check_corrupt(&objects, b"\0\0\0\x03", &format!("the objects row of run r {newer}"));
    check_corrupt(&signal_objects, b"\0\0\0", "the objects row of a signal is corrupt: it ends too early");
    check_corrupt(&id, b"", "the row of an idempotency id is corrupt: it ends too early");
    check_corrupt(&row, b"\x01", &format!("the recorded outcome of run r {newer}"));
    check_corrupt(&outcome, b"\0\x04", &format!("the recorded outcome of run r {newer}"));
    let longer = [&memo.encode(), &b"xy"[..]].concat();
    check_corrupt(&memo, &longer, "memo \"k\" of run r is corrupt: 2 bytes follow its end");
}

#[test]
fn a_length_that_lies_allocates_nothing() {
    let [_, spec, _, doorbell, memo, _, _, signal, expiry, objects, _, _, row, outcome] = Record::kinds();
    let huge = [&b"\0\xfd"[..], &u64::MAX.to_le_bytes()].concat();
    check_corrupt(&doorbell, &huge, "a doorbell is corrupt: it is too long");
    let huge = [&b"\0\x01\0\xfd"[..], &(MAX_RECORD_LEN as u64).to_le_bytes()].concat();
    check_corrupt(&memo, &huge, "memo \"k\" of run r is corrupt: it is too long");
    assert!(spec.decode(&[&b"\0\xfd"[..], &u64::MAX.to_le_bytes()].concat()).is_err());
    let huge = [&b"\0\x07\0\xfd"[..], &(MAX_RECORD_LEN as u64).to_le_bytes()].concat();
    check_corrupt(&signal, &huge, "a signal for correlation key \"k/\\0\" is corrupt: it is too long");
    let huge = [&b"\0\x07\xfd"[..], &u64::MAX.to_le_bytes()].concat();
    check_corrupt(&expiry, &huge, "the expiry of a signal is corrupt: it is too long");
    let huge = [&b"\0\0\xfd"[..], &u64::MAX.to_le_bytes()].concat();
    check_corrupt(&objects, &huge, "the objects row of run r is corrupt: it is too long");
    let huge = [&b"\0\x07\0\xfd"[..], &u64::MAX.to_le_bytes()].concat();
    check_corrupt(&row, &huge, "the recorded outcome of run r is corrupt: it is too long");
    let huge = [&b"\0\x02\xfd"[..], &u64::MAX.to_le_bytes()].concat();
    check_corrupt(&outcome, &huge, "the recorded outcome of run r is corrupt: it is too long");
}

#[test]
fn a_forged_run_id_is_refused() {
    for id in ["", "../x", "a/b", "é"] {
        let bytes = [&b"\0"[..], &[id.len() as u8], id.as_bytes(), &b"\0\0\0\0"[..]].concat();
        let error = decode_doorbell(&bytes).unwrap_err();
        assert!(error.to_string().starts_with("a doorbell is corrupt: a run id "), "{error}");
        let bytes = [&b"\0\x01\x01"[..], &[id.len() as u8], id.as_bytes(), &b"\0\0\0\0\0"[..]].concat();
        let error = decode_slot(&records::key("k"), Some(&bytes)).unwrap_err();
        assert!(error.to_string().starts_with("the slot of correlation key \"k\" is corrupt: a run id "), "{error}");
        let bytes = [&b"\0\0\0\x02"[..], &[id.len() as u8], id.as_bytes(), &b"\0"[..]].concat();
        let error = decode_signal_objects_row(&bytes).unwrap_err();
        assert!(error.to_string().starts_with("the objects row of a signal is corrupt: a run id "), "{error}");
    }
}

/// The record of a run whose signal, or first awaited key, is on a key of `len` bytes.
fn forged_run(len: usize, waits: bool) -> Vec<u8> {
    let run = records::active();
    let forged = if waits {
        let keys = vec![records::key(&"x".repeat(MAX_CORRELATION_KEY_LEN))];
        ActiveRun { phase: Phase::Waiting { keys, until: None }, ..run }
    } else {
        let key = records::key(&"x".repeat(MAX_CORRELATION_KEY_LEN));
        ActiveRun { signal: Some(Signal { key, ..records::signal() }), ..run }
    };
    let bytes = encode_run(&Run::Active(forged)).unwrap();
    let at = bytes.windows(3).position(|window| window == [0xfb, 0x00, 0x04]).unwrap();
    let key = match len {
        0 => vec![0],
        len => [&[0xfb][..], &(len as u16).to_le_bytes(), &vec![b'x'; len]].concat(),
    };
    [&bytes[..at], &key, &bytes[at + 3 + MAX_CORRELATION_KEY_LEN..]].concat()
}

#[test]
fn a_forged_correlation_key_is_refused() {
    let run_id = RunId::parse("r").unwrap();
    for waits in [true, false] {
        assert!(decode_run(&run_id, Some(&forged_run(MAX_CORRELATION_KEY_LEN, waits))).is_ok());
        for len in [0, MAX_CORRELATION_KEY_LEN + 1] {
            let error = decode_run(&run_id, Some(&forged_run(len, waits))).unwrap_err();
            let expected = "the record of run r is corrupt: a correlation key ";
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
    let error = decode_signal_expiry(b"\0\x07\0\0\0").unwrap_err();
    assert_eq!(error.to_string(), "the expiry of a signal is corrupt: a correlation key must not be empty");
    let error = decode_outcome(&run_id, b"\0\0\0\0\x02\x01\0\0\0\0").unwrap_err();
    let expected = "the recorded outcome of run r is corrupt: a correlation key must not be empty";
    assert_eq!(error.to_string(), expected);
    let error = decode_signal_objects_row(b"\0\0\0\x01\0").unwrap_err();
    assert_eq!(error.to_string(), "the objects row of a signal is corrupt: a correlation key must not be empty");
}

#[test]
fn a_slot_that_is_idle_has_no_row() {
    let key = records::key("k");
    let used = Slot::default().appended(SignalId::new(7)).without_oldest(1, SignalId::new(7));
    assert_eq!((encode_slot(&Slot::default()), encode_slot(&used)), (None, None));
    assert_eq!(decode_slot(&key, None).unwrap(), Slot::default());
}

#[test]
fn a_buffer_that_ends_before_it_begins_is_refused() {
    let error = decode_slot(&records::key("k"), Some(b"\0\x01\0\x02\x01\0")).unwrap_err();
    let expected = "the slot of correlation key \"k\" is corrupt: its buffer ends before it begins";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_run_that_is_absent_has_no_record() {
    let run_id = RunId::parse("r").unwrap();
    assert_eq!(encode_run(&Run::Absent), None);
    assert_eq!(decode_run(&run_id, None).unwrap(), Run::Absent);
}

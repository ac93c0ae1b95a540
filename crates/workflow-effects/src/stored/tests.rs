//! Records survive the round trip, and no bytes at all make decoding panic.

mod golden;
mod records;

use proptest::prelude::*;

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
    let [run, spec, notification, doorbell, memo, step] = Record::kinds();
    let newer = "is corrupt: its bytes have another shape, perhaps that of a newer version";
    check_corrupt(&run, b"", "the record of run r is corrupt: it ends too early");
    check_corrupt(&run, b"\x01", &format!("the record of run r {newer}"));
    check_corrupt(&spec, b"\x07", &format!("the spec of run r {newer}"));
    check_corrupt(&notification, b"", "the notification of run r is corrupt: it ends too early");
    check_corrupt(&doorbell, b"\0\x01\xff", "a doorbell is corrupt: it holds a text that is none");
    check_corrupt(&memo, b"\0", "memo \"k\" of run r is corrupt: it ends too early");
    check_corrupt(&step, b"", "the history of run r is corrupt: it ends too early");
    let longer = [&memo.encode(), &b"xy"[..]].concat();
    check_corrupt(&memo, &longer, "memo \"k\" of run r is corrupt: 2 bytes follow its end");
}

#[test]
fn a_length_that_lies_allocates_nothing() {
    let [_, spec, _, doorbell, memo, _] = Record::kinds();
    let huge = [&b"\0\xfd"[..], &u64::MAX.to_le_bytes()].concat();
    check_corrupt(&doorbell, &huge, "a doorbell is corrupt: it is too long");
    let huge = [&b"\0\x01\0\xfd"[..], &(MAX_RECORD_LEN as u64).to_le_bytes()].concat();
    check_corrupt(&memo, &huge, "memo \"k\" of run r is corrupt: it is too long");
    assert!(spec.decode(&[&b"\0\xfd"[..], &u64::MAX.to_le_bytes()].concat()).is_err());
}

#[test]
fn a_forged_run_id_is_refused() {
    for id in ["", "../x", "a/b", "é"] {
        let bytes = [&b"\0"[..], &[id.len() as u8], id.as_bytes(), &b"\0\0\0\0"[..]].concat();
        let error = decode_doorbell(&bytes).unwrap_err();
        assert!(error.to_string().starts_with("a doorbell is corrupt: a run id "), "{error}");
    }
}

#[test]
fn a_run_that_is_absent_has_no_record() {
    let run_id = workflow_core::RunId::parse("r").unwrap();
    assert_eq!(encode_run(&workflow_core::Run::Absent), None);
    assert_eq!(decode_run(&run_id, None).unwrap(), workflow_core::Run::Absent);
}

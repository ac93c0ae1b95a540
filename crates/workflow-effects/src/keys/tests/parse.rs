//! Every key says what it is of.

use super::*;

/// What the key of `named` is read as.
fn stored(named: Named) -> StoredKey {
    let owned = |run, of, row| StoredKey::Owned(run, Incarnation::new(of), row);
    match named {
        Named::Run(run) => StoredKey::Run(run),
        Named::Spec(run, of) => owned(run, of, OwnedRow::Spec),
        Named::Memo(run, of, scope, key) => owned(run, of, OwnedRow::Memo(scope, key)),
        Named::Notification(run, of, redrive) => owned(run, of, OwnedRow::Notification(redrive)),
        Named::Objects(run, of) => StoredKey::Objects(run, Incarnation::new(of)),
        Named::Priority(priority) => StoredKey::Priority(priority),
        Named::History(run, of, step) => owned(run, of, OwnedRow::History(step)),
        Named::SignalObjects(signal) => StoredKey::SignalObjects(SignalId::new(signal)),
        Named::Slot(key) => StoredKey::Slot(key),
        Named::Buffered(key, number) => StoredKey::BufferedSignal(key, number),
        Named::SignalId(key, id) => StoredKey::SignalId(key, id),
        Named::Expiry(millis, signal) => StoredKey::SignalExpiry(Timestamp::from_millis(millis), SignalId::new(signal)),
        Named::Outcome(run, of) => owned(run, of, OwnedRow::Outcome),
        Named::LeftJob(run, of, redrive) => owned(run, of, OwnedRow::LeftJob(redrive)),
        Named::Indexed(index, entry) => StoredKey::Indexed(index, entry),
    }
}

proptest! {
    #[test]
    fn every_key_says_what_it_is_of(name in queue_names(), x in named()) {
        let keys = KeySpace::new(&name);
        let key = x.key(&keys);
        prop_assert!(key.starts_with(&keys.prefix()));
        prop_assert_eq!(keys.parse(&key), Some(stored(x)));
    }

    #[test]
    fn a_key_of_another_queue_name_says_nothing(name in queue_names(), x in named()) {
        let parsed = KeySpace::new("q").parse(&x.key(&KeySpace::new(&name)));
        prop_assert_eq!(parsed.is_some(), name == "q");
    }

    #[test]
    fn what_is_read_back_from_a_changed_key_has_that_key(x in named(), at in any::<prop::sample::Index>(), byte: u8) {
        let keys = KeySpace::new("q");
        let mut key = x.key(&keys).to_vec();
        let at = at.index(key.len());
        key[at] = byte;
        if let Some(read) = keys.parse(&key) {
            prop_assert_eq!(key_of(&keys, &read), key);
        }
    }
}

fn key_of(keys: &KeySpace, stored: &StoredKey) -> Bytes {
    match stored {
        StoredKey::Run(run) => keys.run(run),
        StoredKey::Owned(run, of, OwnedRow::Spec) => keys.spec(run, *of),
        StoredKey::Owned(run, of, OwnedRow::Outcome) => keys.outcome(run, *of),
        StoredKey::Owned(run, of, OwnedRow::Memo(scope, key)) => keys.memo(run, *of, *scope, key),
        StoredKey::Owned(run, of, OwnedRow::Notification(redrive)) => keys.notification(run, *of, *redrive),
        StoredKey::Owned(run, of, OwnedRow::History(step)) => keys.history(run, *of, *step),
        StoredKey::Owned(run, of, OwnedRow::LeftJob(redrive)) => keys.left_job(run, *of, *redrive),
        StoredKey::Objects(run, of) => keys.objects(run, *of),
        StoredKey::SignalObjects(signal) => keys.signal_objects(*signal),
        StoredKey::Indexed(index, entry) => keys.indexed(*index, entry),
        StoredKey::Slot(key) => keys.slot(key),
        StoredKey::BufferedSignal(key, number) => keys.buffered_signal(key, *number),
        StoredKey::SignalId(key, id) => keys.signal_id(key, id),
        StoredKey::SignalExpiry(at, signal) => keys.signal_expiry(*at, *signal),
        StoredKey::Priority(priority) => keys.priority(*priority),
    }
}

#[test]
fn what_no_key_is_says_nothing() {
    let keys = KeySpace::new("q");
    let owned = |row: &str| format!("of/r/abcdefghijklmnop/{row}");
    let odd = [
        "",
        "run",
        "run/",
        "run/a.b",
        "runs/r",
        "of/r/abcdefghijklmnop",
        "listed/done/12345678r/abcdefghijklmnop",
        "listed/active/\u{7f}2345678r/abcdefghijklmnop",
        "submitted/1234",
        "header/h/",
        "signal/",
        "signal-item/\0\u{2}a",
        "signal-item/\0\u{1}a1234567",
        "signal-id/\0\0a",
        "signal-expiry/12345678",
        "priority/123",
        "priority/12345",
        "objects/r",
        "objects-signal/1",
    ];
    let odd_rows =
        ["", "specs", "spec/", "outcome/", "memo/", "memo/x/", "memo/s123", "notification/1", "history/12345"];
    for rest in odd.map(str::to_owned).into_iter().chain(odd_rows.map(owned)) {
        assert_eq!(keys.parse(format!("workflow/q/{rest}").as_bytes()), None, "{rest:?}");
    }
}

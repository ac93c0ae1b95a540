//! Keys are distinct, prefix-free and readable back.

mod parse;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Everything that a key is made from.
#[derive(Clone, Debug, PartialEq)]
enum Named {
    Run(RunId),
    Spec(RunId, u128),
    Memo(RunId, u128, MemoScope, String),
    Notification(RunId, u128, u32),
    Objects(RunId, u128),
    Priority(u32),
    History(RunId, u128, u32),
    SignalObjects(u128),
    Slot(CorrelationKey),
    Buffered(CorrelationKey, u64),
    SignalId(CorrelationKey, String),
    Expiry(u64, u128),
    Outcome(RunId, u128),
    LeftJob(RunId, u128, u32),
    Indexed(Index, IndexEntry),
}

impl Named {
    fn key(&self, keys: &KeySpace) -> Bytes {
        let of = Incarnation::new;
        match self {
            Self::Run(run) => keys.run(run),
            Self::Spec(run, incarnation) => keys.spec(run, of(*incarnation)),
            Self::Memo(run, incarnation, scope, key) => keys.memo(run, of(*incarnation), *scope, key),
            Self::Notification(run, incarnation, redrive) => keys.notification(run, of(*incarnation), *redrive),
            Self::Objects(run, incarnation) => keys.objects(run, of(*incarnation)),
            Self::Priority(priority) => keys.priority(*priority),
            Self::History(run, incarnation, step) => keys.history(run, of(*incarnation), *step),
            Self::SignalObjects(signal) => keys.signal_objects(SignalId::new(*signal)),
            Self::Slot(key) => keys.slot(key),
            Self::Buffered(key, number) => keys.buffered_signal(key, *number),
            Self::SignalId(key, id) => keys.signal_id(key, id),
            Self::Expiry(millis, signal) => keys.signal_expiry(Timestamp::from_millis(*millis), SignalId::new(*signal)),
            Self::Outcome(run, incarnation) => keys.outcome(run, of(*incarnation)),
            Self::LeftJob(run, incarnation, redrive) => keys.left_job(run, of(*incarnation), *redrive),
            Self::Indexed(index, entry) => keys.indexed(*index, entry),
        }
    }
}

fn run(id: &str) -> RunId {
    RunId::parse(id).unwrap()
}

fn correlation_key(text: &str) -> CorrelationKey {
    CorrelationKey::parse(text).unwrap()
}

/// Short ones, of which many are prefixes of others, and long ones.
fn correlation_keys() -> impl Strategy<Value = CorrelationKey> {
    let texts = prop_oneof!["[a/\0]{1,4}", "a{255,257}", "[/\0]{8,9}", ".{1,20}", "x{1023,1024}"];
    texts.prop_map(|text| correlation_key(&text))
}

fn long_numbers() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 254..258_u64, Just(0x2f2f_2f2f_2f2f_2f2f), any::<u64>()]
}

/// Times are never beyond the last one, so those are never equal by being cut.
fn times() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 254..258_u64, 0..=Timestamp::NEVER.as_millis()]
}

fn indexes() -> impl Strategy<Value = Index> {
    let ended = [Status::Succeeded, Status::Failed, Status::Cancelled].map(RunState::Ended);
    let states = [&[RunState::Active, RunState::Waiting, RunState::Paused][..], &ended].concat();
    let hashes = prop_oneof![Just([b'/'; 32]), Just([0; 32]), any::<[u8; 32]>()];
    prop_oneof![select(states).prop_map(Index::State), Just(Index::Submitted), hashes.prop_map(Index::Header)]
}

fn entries() -> impl Strategy<Value = IndexEntry> {
    let (runs, numbers) = ("[ab_-]{1,3}".prop_map(|id| run(&id)), prop_oneof![0..3_u128, Just(0x2f2f), any::<u128>()]);
    (times(), runs, numbers).prop_map(|(millis, run_id, incarnation)| IndexEntry {
        at: Timestamp::from_millis(millis),
        run_id,
        incarnation: Incarnation::new(incarnation),
    })
}

/// Few values, so that collisions would be found.
fn queue_names() -> impl Strategy<Value = String> {
    prop_oneof!["[ab./%\0]{0,4}", "[ab]{1,2}/run", "a(%2F|%25|/)b", any::<String>()]
}

fn named() -> impl Strategy<Value = Named> {
    let runs = || "[ab_-]{1,3}".prop_map(|id| run(&id));
    let incarnations = || prop_oneof![0..3_u128, Just(u128::MAX), Just(0x2f2f << 64), any::<u128>()];
    let numbers = || prop_oneof![0..3_u32, Just(0x2f2f_2f2f), any::<u32>()];
    let scopes = prop_oneof![Just(MemoScope::Run), numbers().prop_map(MemoScope::Step)];
    let texts = prop_oneof!["[a/\0rs]{0,6}", any::<String>()];
    prop_oneof![
        runs().prop_map(Named::Run),
        (runs(), incarnations()).prop_map(|(run, incarnation)| Named::Spec(run, incarnation)),
        (runs(), incarnations(), scopes, texts).prop_map(|(run, of, scope, key)| Named::Memo(run, of, scope, key)),
        (runs(), incarnations(), numbers()).prop_map(|(run, of, redrive)| Named::Notification(run, of, redrive)),
        (runs(), incarnations()).prop_map(|(run, incarnation)| Named::Objects(run, incarnation)),
        numbers().prop_map(Named::Priority),
        (runs(), incarnations(), numbers()).prop_map(|(run, of, step)| Named::History(run, of, step)),
        incarnations().prop_map(Named::SignalObjects),
        correlation_keys().prop_map(Named::Slot),
        (correlation_keys(), long_numbers()).prop_map(|(key, number)| Named::Buffered(key, number)),
        (correlation_keys(), "[a/\0]{1,12}").prop_map(|(key, id)| Named::SignalId(key, id)),
        (times(), incarnations()).prop_map(|(millis, signal)| Named::Expiry(millis, signal)),
        (runs(), incarnations()).prop_map(|(run, of)| Named::Outcome(run, of)),
        (runs(), incarnations(), numbers()).prop_map(|(run, of, redrive)| Named::LeftJob(run, of, redrive)),
        (indexes(), entries()).prop_map(|(index, entry)| Named::Indexed(index, entry)),
    ]
}

proptest! {
    #[test]
    fn distinct_names_have_distinct_keys(
        (a, b) in (queue_names(), queue_names()), (x, y) in (named(), named()),
    ) {
        let (key_of_x, key_of_y) = (x.key(&KeySpace::new(&a)), y.key(&KeySpace::new(&b)));
        prop_assert_eq!(key_of_x == key_of_y, (a, x) == (b, y));
    }

    #[test]
    fn no_key_lies_in_another_owners_range(
        (a, b) in (queue_names(), queue_names()), x in named(),
    ) {
        let (keys, others) = (KeySpace::new(&a), KeySpace::new(&b));
        let key = x.key(&keys);
        prop_assert!(is_reserved(&key));
        prop_assert!(key.starts_with(&keys.base));
        prop_assert_eq!(key.starts_with(&others.base), a == b);
        prop_assert_eq!(key.starts_with(&others.runs_prefix()), a == b && matches!(x, Named::Run(_)));
        prop_assert_eq!(key.starts_with(&others.priorities_prefix()), a == b && matches!(x, Named::Priority(_)));
        prop_assert_eq!(key.starts_with(&others.signal_expiries_prefix()), a == b && matches!(x, Named::Expiry(..)));
    }

    #[test]
    fn memos_of_one_owner_lie_outside_every_others(
        (x, y) in (named(), named()),
    ) {
        let keys = KeySpace::new("q");
        if let Named::Memo(run, incarnation, scope, _) = &x {
            let range = keys.memo(run, Incarnation::new(*incarnation), *scope, "");
            let same = matches!(&y, Named::Memo(r, i, s, _) if (r, i, s) == (run, incarnation, scope));
            prop_assert_eq!(y.key(&keys).starts_with(&range), same);
        }
    }

    #[test]
    fn the_buffer_of_a_key_lies_outside_every_others(key in correlation_keys(), y in named()) {
        let keys = KeySpace::new("q");
        let in_buffer = y.key(&keys).starts_with(&keys.buffered_signals_prefix(&key));
        prop_assert_eq!(in_buffer, matches!(&y, Named::Buffered(of, _) if *of == key));
    }

    #[test]
    fn signals_are_in_order_of_arrival_and_expiries_in_order_of_time(
        key in correlation_keys(), (a, b) in (long_numbers(), long_numbers()),
        (x, y) in ((times(), any::<u128>()), (times(), any::<u128>())),
    ) {
        let keys = KeySpace::new("q");
        prop_assert_eq!(keys.buffered_signal(&key, a).cmp(&keys.buffered_signal(&key, b)), a.cmp(&b));
        let expiry = |(millis, signal)| Named::Expiry(millis, signal).key(&keys);
        prop_assert_eq!(expiry(x).cmp(&expiry(y)), x.cmp(&y));
    }

    #[test]
    fn buffered_signals_and_expiries_are_read_back(key in correlation_keys(), number in long_numbers(), x in named()) {
        let keys = KeySpace::new("q");
        prop_assert_eq!(keys.parse_buffered_signal(&keys.buffered_signal(&key, number)), Some(number));
        let due = match &x { Named::Expiry(millis, _) => Some(Timestamp::from_millis(*millis)), _ => None };
        prop_assert_eq!(keys.parse_signal_expiry(&x.key(&keys)), due);
    }

    #[test]
    fn what_a_submission_owns_lies_in_its_range_and_nothing_else_does(x in named(), run in "[ab_-]{1,3}", of: u128) {
        let keys = KeySpace::new("q");
        let key = x.key(&keys);
        let owner = match &x {
            Named::Spec(run, of) | Named::Memo(run, of, ..) | Named::Notification(run, of, _)
            | Named::History(run, of, _) | Named::Outcome(run, of) | Named::LeftJob(run, of, _) => Some((run.clone(), Incarnation::new(*of))),
            _ => None,
        };
        let parsed = keys.parse_owned(&key);
        prop_assert_eq!(&parsed, &owner);
        let asked = (RunId::parse(run).unwrap(), Incarnation::new(of));
        for (run, of) in owner.iter().chain([&asked]) {
            let is_its = owner == Some((run.clone(), *of));
            prop_assert_eq!(key.starts_with(&keys.owned_prefix(run, *of)), is_its);
        }
    }

    #[test]
    fn marks_of_objects_are_read_back(x in named()) {
        let keys = KeySpace::new("q");
        let key = x.key(&keys);
        let run = match &x { Named::Objects(run, of) => Some((run.clone(), Incarnation::new(*of))), _ => None };
        let signal = match &x { Named::SignalObjects(id) => Some(SignalId::new(*id)), _ => None };
        prop_assert_eq!(key.starts_with(&keys.objects_prefix()), run.is_some());
        prop_assert_eq!(key.starts_with(&keys.signals_objects_prefix()), signal.is_some());
        prop_assert_eq!((keys.parse_objects(&key), keys.parse_signal_objects(&key)), (run, signal));
    }

    #[test]
    fn an_index_is_in_order_of_time_and_read_back(index in indexes(), other in indexes(), (x, y) in (entries(), entries())) {
        let keys = KeySpace::new("q");
        let (of_x, of_y) = (keys.indexed(index, &x), keys.indexed(index, &y));
        prop_assert_eq!(keys.parse_indexed(index, &of_x), Some(x.clone()));
        prop_assert_eq!(keys.parse_indexed(other, &of_x).is_some(), other == index);
        if x.at != y.at {
            prop_assert_eq!(of_x.cmp(&of_y), x.at.cmp(&y.at));
        }
        prop_assert_eq!(of_x > keys.index_from(index, y.at), x.at >= y.at);
    }

    #[test]
    fn runs_and_priorities_are_read_back(name in queue_names(), x in named()) {
        let keys = KeySpace::new(&name);
        let key = x.key(&keys);
        let is_run = match &x { Named::Run(run) => Some(run.clone()), _ => None };
        let is_priority = match x { Named::Priority(priority) => Some(priority), _ => None };
        prop_assert_eq!(keys.parse_run(&key), is_run);
        prop_assert_eq!(keys.parse_priority(&key), is_priority);
    }

    #[test]
    fn any_bytes_may_be_read_back(key in any::<Vec<u8>>()) {
        let keys = KeySpace::new("q");
        keys.parse_run(&key);
        let of_run = [&keys.runs_prefix(), key.as_slice()].concat();
        if let Some(run) = keys.parse_run(&of_run) {
            prop_assert_eq!(keys.run(&run), of_run);
        }
        let of_priority = [&keys.priorities_prefix(), key.as_slice()].concat();
        prop_assert_eq!(keys.parse_priority(&of_priority).is_some(), key.len() == 4);
        keys.parse_signal_expiry(&key);
        let of_expiry = [&keys.signal_expiries_prefix(), key.as_slice()].concat();
        prop_assert_eq!(keys.parse_signal_expiry(&of_expiry).is_some(), key.len() >= 8);
        prop_assert_eq!(keys.parse_buffered_signal(&key).is_some(), key.len() >= 8);
        keys.parse_owned(&[&keys.key(&[b"of/"]), key.as_slice()].concat());
        keys.parse_indexed(Index::Submitted, &[&keys.index_prefix(Index::Submitted), key.as_slice()].concat());
    }
}

#[test]
fn the_layout_is_pinned() {
    let keys = KeySpace::new("a/b%");
    let of = Incarnation::new(0x6162_6364_6566_6768_696a_6b6c_6d6e_6f70);
    let run = run("r");
    let check = |key: Bytes, expected: &str| assert_eq!(key, format!("workflow/a%2Fb%25/{expected}"));
    check(keys.run(&run), "run/r");
    check(keys.owned_prefix(&run, of), "of/r/abcdefghijklmnop/");
    check(keys.spec(&run, of), "of/r/abcdefghijklmnop/spec");
    check(keys.outcome(&run, of), "of/r/abcdefghijklmnop/outcome");
    check(keys.memo(&run, of, MemoScope::Run, "k/\0"), "of/r/abcdefghijklmnop/memo/r/k/\0");
    check(keys.memo(&run, of, MemoScope::Step(0x3132_3334), "k"), "of/r/abcdefghijklmnop/memo/s1234/k");
    check(keys.notification(&run, of, 0x3132_3334), "of/r/abcdefghijklmnop/notification/1234");
    check(keys.notifications_prefix(&run, of), "of/r/abcdefghijklmnop/notification/");
    let entry = IndexEntry { at: Timestamp::from_millis(0x3132_3334_3536), run_id: run.clone(), incarnation: of };
    let ended = |status| Index::State(RunState::Ended(status));
    for (index, name) in [
        (Index::State(RunState::Active), "listed/active"),
        (Index::State(RunState::Waiting), "listed/waiting"),
        (Index::State(RunState::Paused), "listed/paused"),
        (ended(Status::Succeeded), "listed/succeeded"),
        (ended(Status::Failed), "listed/failed"),
        (ended(Status::Cancelled), "listed/cancelled"),
        (Index::Submitted, "submitted"),
        (Index::Header([b'h'; 32]), "header/hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"),
    ] {
        check(keys.indexed(index, &entry), &format!("{name}/\0\x00123456r/abcdefghijklmnop"));
        check(keys.index_from(index, entry.at), &format!("{name}/\0\x00123456"));
        check(keys.index_prefix(index), &format!("{name}/"));
    }
    check(keys.objects(&run, of), "objects/r/abcdefghijklmnop");
    check(keys.priority(0x3132_3334), "priority/1234");
    check(keys.history(&run, of, 0x3132_3334), "of/r/abcdefghijklmnop/history/1234");
    check(keys.history_prefix(&run, of), "of/r/abcdefghijklmnop/history/");
    let signal = SignalId::new(of.value());
    let key = correlation_key("k/\0");
    check(keys.signal_objects(signal), "objects-signal/abcdefghijklmnop");
    check(keys.slot(&key), "signal/k/\0");
    check(keys.buffered_signal(&key, 0x3132_3334_3536_3738), "signal-item/\0\x03k/\x0012345678");
    check(keys.buffered_signals_prefix(&key), "signal-item/\0\x03k/\0");
    check(keys.signal_id(&key, "i/\0"), "signal-id/\0\x03k/\0i/\0");
    let time = Timestamp::from_millis(0x3132_3334_3536);
    check(keys.signal_expiry(time, signal), "signal-expiry/\0\x00123456abcdefghijklmnop");
    assert_eq!(keys.parse_history_step(&keys.history(&run, of, 70_000)), Some(70_000));
}

#[test]
fn a_key_that_begins_like_another_has_a_range_of_its_own() {
    let keys = KeySpace::new("q");
    for (short, long) in [("a", "a/"), ("a", "a\0"), ("a/b", "a/b/\0\0\0\0\0\0\0\u{1}"), ("\0", "\0\0")] {
        let (short, long) = (correlation_key(short), correlation_key(long));
        assert!(!keys.buffered_signal(&long, 1).starts_with(&keys.buffered_signals_prefix(&short)));
        assert!(!keys.signal_id(&long, "id").starts_with(&keys.signal_id(&short, "")));
        assert_ne!(keys.slot(&short), keys.slot(&long));
    }
}

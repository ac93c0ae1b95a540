//! Keys are distinct, prefix-free and readable back.

use proptest::prelude::*;

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
        }
    }
}

fn run(id: &str) -> RunId {
    RunId::parse(id).unwrap()
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
    }
}

#[test]
fn the_layout_is_pinned() {
    let keys = KeySpace::new("a/b%");
    let of = Incarnation::new(0x6162_6364_6566_6768_696a_6b6c_6d6e_6f70);
    let run = run("r");
    let check = |key: Bytes, expected: &str| assert_eq!(key, format!("workflow/a%2Fb%25/{expected}"));
    check(keys.run(&run), "run/r");
    check(keys.spec(&run, of), "spec/r/abcdefghijklmnop");
    check(keys.memo(&run, of, MemoScope::Run, "k/\0"), "memo/r/abcdefghijklmnop/r/k/\0");
    check(keys.memo(&run, of, MemoScope::Step(0x3132_3334), "k"), "memo/r/abcdefghijklmnop/s1234/k");
    check(keys.notification(&run, of, 0x3132_3334), "notification/r/abcdefghijklmnop/1234");
    check(keys.objects(&run, of), "objects/r/abcdefghijklmnop");
    check(keys.priority(0x3132_3334), "priority/1234");
    check(keys.history(&run, of, 0x3132_3334), "history/r/abcdefghijklmnop/1234");
    check(keys.history_prefix(&run, of), "history/r/abcdefghijklmnop/");
    assert_eq!(keys.parse_history_step(&keys.history(&run, of, 70_000)), Some(70_000));
}

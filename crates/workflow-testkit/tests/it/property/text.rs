//! Cases as text: every case is read back as it was, and what is no case is told by its line.

use std::collections::BTreeMap;
use std::time::Duration;

use workflow_testkit::ClockStep;
use workflow_testkit::property::proptest::collection::{btree_map, vec};
use workflow_testkit::property::proptest::prelude::*;
use workflow_testkit::property::proptest::test_runner::RngSeed;
use workflow_testkit::property::{Case, Operation, ParseCaseError, ParseLineError};

fn operations() -> impl Strategy<Value = Operation> {
    let (text, bytes, time) = (any::<String>, vec(any::<u8>(), 0..20), any::<Duration>);
    let headers = btree_map(text(), text(), 0..3);
    prop_oneof![
        (text(), bytes.clone(), headers).prop_map(|(run_id, input, headers)| Operation::Submit {
            run_id,
            input,
            headers
        }),
        (text(), bytes).prop_map(|(key, payload)| Operation::Signal { key, payload }),
        text().prop_map(Operation::Cancel),
        text().prop_map(Operation::Pause),
        text().prop_map(Operation::Resume),
        text().prop_map(Operation::Redrive),
        text().prop_map(Operation::Forget),
        time().prop_map(Operation::Advance),
        any::<u64>().prop_map(|after| Operation::Crash { after }),
        any::<u64>().prop_map(|after| Operation::LoseLeases { after }),
        time().prop_map(|by| Operation::SetClock(ClockStep::Forwards(by))),
        time().prop_map(|by| Operation::SetClock(ClockStep::Back(by))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(0),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_case_is_read_back_as_it_was(seed in any::<u64>(), operations in vec(operations(), 0..12)) {
        let case = Case { seed, operations };
        let text = case.to_string();
        prop_assert_eq!(text.lines().count(), 1 + case.operations.len(), "one operation a line: {}", text);
        prop_assert_eq!(text.parse(), Ok(case));
    }

    #[test]
    fn no_text_is_too_strange_to_be_refused(text in "(submit|signal|clock|[a-z\"\\\\ux{}0-9 \n])*") {
        if let Ok(case) = text.parse::<Case>() {
            prop_assert_eq!(case.to_string().parse(), Ok(case));
        }
    }
}

#[test]
fn a_case_is_written_as_people_would() {
    let headers = BTreeMap::from([("tenant".to_owned(), "acme".to_owned())]);
    let operations = vec![
        Operation::Submit { run_id: "order-17".to_owned(), input: b"{\"item\": \"ch\xc3\xa4ir\"}".to_vec(), headers },
        Operation::Signal { key: "approval/17".to_owned(), payload: b"\xff\0\n".to_vec() },
        Operation::Crash { after: 12 },
        Operation::LoseLeases { after: 0 },
        Operation::Advance(Duration::from_millis(1_500)),
        Operation::SetClock(ClockStep::Back(Duration::from_nanos(7))),
        Operation::Redrive("order-17".to_owned()),
    ];
    let expected = r#"
seed 3
submit "order-17" "{\"item\": \"chäir\"}" header "tenant" "acme"
signal "approval/17" "\xff\0\n"
crash after 12
lose leases after 0
advance 1500ms
clock back 7ns
redrive "order-17"
"#;
    assert_eq!(Case { seed: 3, operations }.to_string(), expected.trim_start());
}

fn check(text: &str, line: usize, expected: &str) {
    let error = text.parse::<Case>().unwrap_err();
    assert_eq!((error.line, error.problem.to_string().as_str()), (line, expected), "{text}");
}

#[test]
fn what_is_no_case_is_told_by_its_line() {
    check("seed x", 1, "a number is expected, not `x`");
    check("seed 1 2", 1, "nothing can follow, but `2` does");
    check("# a comment\n\n  explode", 3, "`explode` is no operation");
    check("seed 1\ncancel", 2, "a run id in quotes is missing");
    check("cancel run", 1, "a run id in quotes is expected, not `run`");
    check("cancel \"run", 1, "`\"run` is no quoted string");
    check("cancel \"run\"\"run\"", 1, "`\"run\"\"run\"` is no quoted string");
    check(r#"cancel "\q""#, 1, r#"`"\q"` is no quoted string"#);
    check(r#"cancel "\xzz""#, 1, r#"`"\xzz"` is no quoted string"#);
    check(r#"cancel "\u{d800}""#, 1, r#"`"\u{d800}"` is no quoted string"#);
    check(r#"cancel "\xff""#, 1, r#""\xff" is not UTF-8"#);
    check(r#"submit "run""#, 1, "an input in quotes is missing");
    check(r#"submit "run" "" headers "a" "b""#, 1, "`header` is expected, not `headers`");
    check(r#"submit "run" "" header "a""#, 1, "a header's value in quotes is missing");
    check("advance 5", 1, "a time such as `1500ms` is expected, not `5`");
    check("advance 5min", 1, "a time such as `1500ms` is expected, not `5min`");
    check("advance 5ms later", 1, "nothing can follow, but `later` does");
    check("crash at 3", 1, "`after` is expected, not `at`");
    check("lose all", 1, "`leases` is expected, not `all`");
    check("clock sideways 5ms", 1, "`forwards` or `back` is expected, not `sideways`");
}

#[test]
fn what_is_wrong_is_data() {
    let error = "fly".parse::<Case>();
    assert!(
        matches!(error, Err(ParseCaseError { line: 1, problem: ParseLineError::UnknownOperation(word), .. }) if word == "fly")
    );
}

//! Strategies of proptest for what workflows meet: inputs, what steps answer, faults.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use workflow_runtime::{MAX_CORRELATION_KEY_LEN, MAX_HEADER_NAME_LEN, MAX_RUN_ID_LEN, StepError, StepOutcome};

use crate::{ClockStep, Plan, PortCalls, PortFault, PortPlan, Rule, StoreCalls, StoreFault, StorePlan, When};

/// Times from none to a year, short ones as likely as long ones.
pub fn durations() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![
        Just(Duration::ZERO),
        (1..1_000_u64).prop_map(Duration::from_millis),
        (1..3_600_u64).prop_map(Duration::from_secs),
        (1..24_u64).prop_map(|hours| Duration::from_secs(hours * 3_600)),
        (1..365_u64).prop_map(|days| Duration::from_secs(days * 24 * 3_600)),
    ]
}

/// Inputs, payloads and results: none, text, bytes that are no text, and more than a run's record holds.
pub fn payloads() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop_oneof![
        2 => Just(Vec::new()),
        4 => "[a-z]{1,8}".prop_map(String::into_bytes),
        3 => vec(any::<u8>(), 1..64),
        1 => (any::<u8>(), 30_000..70_000_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

/// Ids that runs can have, the shortest and the longest among them.
pub fn run_ids() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        6 => "run-[0-9]",
        2 => "[A-Za-z0-9_-]{1,16}",
        1 => select(vec!["-", "_", "0", "--", "con", "null", "workflow"]).prop_map(str::to_owned),
        1 => "[A-Za-z0-9_-]".prop_map(|char| char.repeat(MAX_RUN_ID_LEN)),
    ]
}

/// Ids that no run can have: every call refuses them.
pub fn hostile_run_ids() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        select(vec!["", ".", "..", "../run-0", "a/b", "run 0", "run-0\0", "run-0\n", "rün", "run%2d0", "\u{202e}run"])
            .prop_map(str::to_owned),
        Just("x".repeat(MAX_RUN_ID_LEN + 1)),
        "[a-z]{0,4}[^A-Za-z0-9_-][a-z]{0,4}",
    ]
}

/// Correlation keys: plain ones, those that look alike or nest in one another, and the longest.
pub fn signal_keys() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        4 => "[a-z]{1,6}/[0-9]{1,2}",
        2 => select(vec!["a", "a/", "a/b", "a\0", "a\0b", "é", "e\u{301}", "K", "\u{212a}", "..", "\u{10ffff}"])
            .prop_map(str::to_owned),
        1 => "\\PC{1,8}",
        1 => Just("k".repeat(MAX_CORRELATION_KEY_LEN)),
    ]
}

/// Headers that a submission can have.
pub fn headers() -> impl Strategy<Value = BTreeMap<String, String>> + Clone {
    let name = prop_oneof![
        6 => "[a-z]{1,8}(-[a-z]{1,8})?",
        1 => Just("é".to_owned()),
        1 => Just("n".repeat(MAX_HEADER_NAME_LEN)),
    ];
    btree_map(name, "\\PC{0,16}", 0..4)
}

/// What a step may answer. The keys that it waits for are of `keys`.
pub fn outcomes(
    keys: impl Strategy<Value = String> + Clone,
) -> impl Strategy<Value = Result<StepOutcome, StepError>> + Clone {
    let reason = "[a-z ]{0,12}";
    prop_oneof![
        3 => payloads().prop_map(|result| Ok(StepOutcome::Succeed { result })),
        3 => payloads().prop_map(|payload| Ok(StepOutcome::continue_now(payload))),
        2 => (payloads(), durations()).prop_map(|(payload, delay)| Ok(StepOutcome::continue_after(payload, delay))),
        2 => (payloads(), keys, durations())
            .prop_map(|(payload, key, timeout)| Ok(StepOutcome::continue_on_signal(payload, key, timeout))),
        1 => reason.prop_map(|reason| Ok(StepOutcome::Fail { reason })),
        1 => reason.prop_map(|reason| Ok(StepOutcome::Cancel { reason })),
        2 => reason.prop_map(|message| Err(StepError::transient(message))),
        1 => (reason, durations()).prop_map(|(message, delay)| Err(StepError::transient(message).retry_after(delay))),
        1 => reason.prop_map(|message| Err(StepError::permanent(message))),
    ]
}

/// Schedules of one to three faults at the first so many points of a scenario, for
/// [`Explorer::replay`](crate::Explorer::replay).
///
/// ```
/// use proptest::strategy::{Strategy, ValueTree};
/// use proptest::test_runner::TestRunner;
/// use workflow_testkit::property::schedules;
///
/// let schedule = schedules(40).new_tree(&mut TestRunner::deterministic()).unwrap().current();
/// assert!(schedule.contains('@')); // such as `crash@17` or `lease@3+crash@21`
/// ```
pub fn schedules(points: u64) -> impl Strategy<Value = String> + Clone {
    let fault = (select(vec!["crash", "lease"]), 0..points.max(1)).prop_map(|(fault, at)| format!("{fault}@{at}"));
    vec(fault, 1..=3).prop_map(|faults| faults.join("+"))
}

/// Ways to set a clock wrong, by a day at most.
pub fn clock_steps() -> impl Strategy<Value = ClockStep> + Clone {
    let by = (0..24 * 3_600_000_u64).prop_map(Duration::from_millis);
    prop_oneof![by.clone().prop_map(ClockStep::Forwards), by.prop_map(ClockStep::Back)]
}

/// Which calls meet the faults of a plan.
fn whens() -> impl Strategy<Value = When> + Clone {
    prop_oneof![(1..20_u64).prop_map(When::Nth), (1..4_u64).prop_map(When::First), (0..100_u16).prop_map(When::Chance)]
}

/// Plans of up to four rules.
fn plans<C, F>(
    calls: impl Strategy<Value = C> + Clone,
    faults: impl Strategy<Value = F> + Clone,
) -> impl Strategy<Value = Plan<C, F>> + Clone
where
    C: Clone + std::fmt::Debug,
    F: Clone + std::fmt::Debug,
{
    let rule = (calls, whens(), faults).prop_map(|(calls, when, fault)| Rule { calls, when, fault });
    (any::<u64>(), vec(rule, 0..4)).prop_map(|(seed, rules)| Plan { seed, rules })
}

fn short_times() -> impl Strategy<Value = Duration> + Clone {
    (1..2_000_u64).prop_map(Duration::from_millis)
}

/// Faults of a queue port that a runtime gets over by itself: calls that are slow, fail, or lose their answers, leases
/// that are lost, jobs that come twice or in another order.
pub fn port_plans() -> impl Strategy<Value = PortPlan> + Clone {
    let calls = select(vec![
        PortCalls::Any,
        PortCalls::Get,
        PortCalls::Scan,
        PortCalls::Commit,
        PortCalls::CommitEnqueuing,
        PortCalls::Claim,
        PortCalls::PersistClaims,
        PortCalls::Extend,
        PortCalls::Settle,
    ]);
    let fault = prop_oneof![
        select(vec![PortFault::Fails, PortFault::AnswerLost, PortFault::Reordered]),
        short_times().prop_map(PortFault::Slow),
        short_times().prop_map(PortFault::LeaseLost),
        short_times().prop_map(PortFault::Duplicated),
    ];
    plans(calls, fault)
}

/// Faults of an object store that a runtime gets over by itself.
pub fn store_plans() -> impl Strategy<Value = StorePlan> + Clone {
    let calls = select(vec![StoreCalls::Any, StoreCalls::Put, StoreCalls::Get, StoreCalls::Delete, StoreCalls::List]);
    let fault =
        prop_oneof![select(vec![StoreFault::Fails, StoreFault::AnswerLost]), short_times().prop_map(StoreFault::Slow),];
    plans(calls, fault)
}

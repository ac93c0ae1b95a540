//! What can happen in a history, drawn at random. An index picks among the deliveries, attempts or steps that there are.

use proptest::prelude::*;
use proptest::sample::subsequence;
use workflow_core::FailureKind;

use super::slots::KEYS;
use crate::properties::generators::kind;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Move {
    Submit { input: u8, delay_ms: Option<u64> },
    Wait { ms: u64 },
    Deliver { forgotten: bool },
    DeliverStale { job: usize, deliveries: u32 },
    Turn { attempt: usize },
    Answer { attempt: usize, reply: Reply, inline: bool },
    Record { attempt: usize, reply: Reply },
    Fail { attempt: usize, kind: FailureKind, retry_after_ms: Option<u64> },
    HandBack { attempt: usize },
    Signal { key: usize },
    Cancel { overlooked: bool },
    GraceOver { attempt: usize },
    Pause,
    Resume { stale: bool },
    Redrive { from: Option<usize>, payload: bool, taken: bool },
    RemoveDoorbell,
    MissDoorbell { stale: usize },
    Requeue,
    ExpireLease,
    Crash,
}

impl Move {
    /// Whether somebody asks for it, at any time.
    pub(super) fn is_wish(&self) -> bool {
        match self {
            Self::Submit { .. }
            | Self::Signal { .. }
            | Self::Cancel { .. }
            | Self::Pause
            | Self::Resume { .. }
            | Self::Redrive { .. }
            | Self::RemoveDoorbell
            | Self::MissDoorbell { .. }
            | Self::Requeue => true,
            Self::Wait { .. }
            | Self::Deliver { .. }
            | Self::DeliverStale { .. }
            | Self::Turn { .. }
            | Self::Answer { .. }
            | Self::Record { .. }
            | Self::Fail { .. }
            | Self::HandBack { .. }
            | Self::GraceOver { .. }
            | Self::ExpireLease
            | Self::Crash => false,
        }
    }
}

/// What a runner answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Continue { delay_ms: Option<u64> },
    Await { keys: Vec<usize>, timeout_ms: Option<u64>, taken: bool },
    Succeed,
    GiveUp { cancels: bool },
}

pub(super) fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![17 => of_the_queue(), 20 => of_an_attempt(), 15 => of_somebody()]
}

fn of_the_queue() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => (0..40_u64).prop_map(|ms| Move::Wait { ms }),
        8 => prop::bool::weighted(0.1).prop_map(|forgotten| Move::Deliver { forgotten }),
        1 => (0..9_usize, 0..9_u32).prop_map(|(job, deliveries)| Move::DeliverStale { job, deliveries }),
        4 => Just(Move::ExpireLease),
        3 => Just(Move::Crash),
    ]
}

fn of_an_attempt() -> impl Strategy<Value = Move> {
    let attempt = 0..4_usize;
    prop_oneof![
        4 => attempt.clone().prop_map(|attempt| Move::Turn { attempt }),
        8 => (attempt.clone(), a_reply(), any::<bool>())
            .prop_map(|(attempt, reply, inline)| Move::Answer { attempt, reply, inline }),
        3 => (attempt.clone(), a_reply()).prop_map(|(attempt, reply)| Move::Record { attempt, reply }),
        2 => (attempt.clone(), kind(), a_delay())
            .prop_map(|(attempt, kind, retry_after_ms)| Move::Fail { attempt, kind, retry_after_ms }),
        2 => attempt.clone().prop_map(|attempt| Move::HandBack { attempt }),
        1 => attempt.prop_map(|attempt| Move::GraceOver { attempt }),
    ]
}

fn of_somebody() -> impl Strategy<Value = Move> {
    let redrive = (proptest::option::weighted(0.4, 0..6_usize), any::<bool>(), prop::bool::weighted(0.1));
    prop_oneof![
        1 => (0..2_u8, a_delay()).prop_map(|(input, delay_ms)| Move::Submit { input, delay_ms }),
        3 => (0..KEYS).prop_map(|key| Move::Signal { key }),
        1 => prop::bool::weighted(0.3).prop_map(|overlooked| Move::Cancel { overlooked }),
        2 => Just(Move::Pause),
        3 => prop::bool::weighted(0.5).prop_map(|stale| Move::Resume { stale }),
        4 => redrive.prop_map(|(from, payload, taken)| Move::Redrive { from, payload, taken }),
        1 => Just(Move::RemoveDoorbell),
        2 => (0..9_usize).prop_map(|stale| Move::MissDoorbell { stale }),
        1 => Just(Move::Requeue),
    ]
}

fn a_reply() -> impl Strategy<Value = Reply> {
    let keys = subsequence((0..KEYS).collect::<Vec<_>>(), 1..=KEYS).prop_shuffle();
    let timeout = proptest::option::weighted(0.7, 0..40_u64);
    prop_oneof![
        6 => a_delay().prop_map(|delay_ms| Reply::Continue { delay_ms }),
        8 => (keys, timeout, prop::bool::weighted(0.02))
            .prop_map(|(keys, timeout_ms, taken)| Reply::Await { keys, timeout_ms, taken }),
        1 => Just(Reply::Succeed),
        1 => any::<bool>().prop_map(|cancels| Reply::GiveUp { cancels }),
    ]
}

fn a_delay() -> impl Strategy<Value = Option<u64>> {
    proptest::option::weighted(0.4, 0..30_u64)
}

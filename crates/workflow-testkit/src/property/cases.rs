//! The strategy of cases: what is done, and how often.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

use super::case::Case;
use super::operation::Operation;
use super::strategies::clock_steps;

/// The farthest point at which a fault comes.
pub(super) const FARTHEST_POINT: u64 = 80;

/// What operations are drawn from.
#[derive(Clone)]
pub(super) struct Draws {
    pub(super) run_ids: BoxedStrategy<String>,
    pub(super) inputs: BoxedStrategy<Vec<u8>>,
    pub(super) headers: BoxedStrategy<BTreeMap<String, String>>,
    /// Keys and payloads of signals, if there are any.
    pub(super) signals: Option<BoxedStrategy<(String, Vec<u8>)>>,
    pub(super) len: Range<usize>,
}

impl Default for Draws {
    fn default() -> Self {
        Self {
            run_ids: "run-[0-2]".boxed(),
            inputs: "[a-c]{0,2}".prop_map(String::into_bytes).boxed(),
            headers: Just(BTreeMap::new()).boxed(),
            signals: None,
            len: 1..24,
        }
    }
}

impl Draws {
    pub(super) fn cases(&self) -> impl Strategy<Value = Case> + use<> {
        let operations = vec(self.operations(), self.len.clone());
        (any::<u16>(), operations).prop_map(|(seed, operations)| Case { seed: seed.into(), operations })
    }

    /// The simplest first: what fails is shrunk towards them.
    fn operations(&self) -> BoxedStrategy<Operation> {
        let submit = (self.run_ids.clone(), self.inputs.clone(), self.headers.clone())
            .prop_map(|(run_id, input, headers)| Operation::Submit { run_id, input, headers });
        let signal = match &self.signals {
            Some(signals) => signals.clone().prop_map(|(key, payload)| Operation::Signal { key, payload }).boxed(),
            None => submit.clone().boxed(),
        };
        let about = |operation: fn(String) -> Operation| self.run_ids.clone().prop_map(operation);
        prop_oneof![
            8 => submit,
            6 => signal,
            6 => times().prop_map(Operation::Advance),
            4 => (0..FARTHEST_POINT).prop_map(|after| Operation::Crash { after }),
            2 => (0..FARTHEST_POINT).prop_map(|after| Operation::LoseLeases { after }),
            2 => about(Operation::Cancel),
            2 => about(Operation::Pause),
            2 => about(Operation::Resume),
            3 => about(Operation::Redrive),
            2 => about(Operation::Forget),
            2 => clock_steps().prop_map(Operation::SetClock),
        ]
        .boxed()
    }
}

/// Times that pass: mostly short, seldom a day, and very seldom the usual retention.
fn times() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![
        30 => (1..3_000_u64).prop_map(Duration::from_millis),
        20 => (1..7_200_u64).prop_map(Duration::from_secs),
        4 => (2..24_u64).prop_map(|hours| Duration::from_secs(hours * 3_600)),
        1 => (7..9_u64).prop_map(|days| Duration::from_secs(days * 24 * 3_600)),
    ]
}

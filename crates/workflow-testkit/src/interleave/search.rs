//! The search for an order that fails: the orders with the fewest surprises first, then by chance.

use std::future::Future;
use std::mem::{Discriminant, discriminant};

use super::call::Call;
use super::choices::{Chooser, Taken};
use super::execution::{Execution, execute};
use super::failure::{FailedOrder, Problem};
use super::steps::{Step, numbered};
use super::{Explored, Interleaver, Turns};
use crate::Chance;
use crate::chance::mixed;

/// How many simpler orders are tried in place of one that fails.
const SIMPLER: usize = 200;

type Found<T> = Result<T, Box<FailedOrder>>;

pub(super) struct Search<'a, F> {
    interleaver: &'a Interleaver,
    scenario: &'a F,
    orders: u64,
}

/// An order that was run, and from which choice on others have yet to branch off.
struct Branching {
    taken: Vec<Taken>,
    from: usize,
}

impl<'a, F, S> Search<'a, F>
where
    F: Fn(Turns) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    pub(super) fn new(interleaver: &'a Interleaver, scenario: &'a F) -> Self {
        Self { interleaver, scenario, orders: 0 }
    }

    pub(super) fn run(mut self) -> Found<Explored> {
        let exhaustive = self.exhaust()?;
        if !exhaustive {
            self.sample()?;
        }
        Ok(Explored { orders: self.orders, exhaustive })
    }

    /// Runs every order once, in generations: each has one surprise more than the one before. `false` when there are
    /// more than were asked for.
    fn exhaust(&mut self) -> Found<bool> {
        let first = self.order(Chooser::made(Vec::new()))?;
        // A scenario that leads elsewhere is found out early.
        self.again(&first)?;
        let mut generation = vec![Branching { taken: first.taken, from: 0 }];
        while !generation.is_empty() {
            let mut next = Vec::new();
            for order in &generation {
                for (at, point) in order.taken.iter().enumerate().skip(order.from) {
                    for choice in 1..point.options {
                        if self.orders >= self.interleaver.exhaustive_up_to {
                            return Ok(false);
                        }
                        let taken = self.order(Chooser::branch(&order.taken[..=at], choice))?.taken;
                        if taken.len() > at + 1 {
                            next.push(Branching { taken, from: at + 1 });
                        }
                    }
                }
            }
            generation = next;
        }
        Ok(true)
    }

    /// Runs orders by chance.
    fn sample(&mut self) -> Found<()> {
        let seed = self.interleaver.seed;
        for number in 0..self.interleaver.samples {
            self.orders += 1;
            let drawn = self.execute(Chooser::drawn(Chance::of(mixed(seed, number, 0))));
            if drawn.result.is_err() {
                self.again(&drawn)?;
                let simplest = self.simplify(drawn);
                let mut failed = self.failed(simplest);
                failed.seed = Some(seed);
                return Err(failed);
            }
        }
        Ok(())
    }

    /// Runs one order that counts.
    fn order(&mut self, chooser: Chooser) -> Found<Execution> {
        self.orders += 1;
        let execution = self.execute(chooser);
        if execution.result.is_err() {
            self.again(&execution)?;
            return Err(self.failed(execution));
        }
        Ok(execution)
    }

    /// Runs an order once more, which has to take the same course.
    fn again(&self, first: &Execution) -> Found<()> {
        if matches!(first.result, Err(Problem::NotDeterministic(_))) {
            return Ok(());
        }
        let mut second = self.execute(Chooser::again(&first.taken));
        let Some(difference) = difference(first, &second) else { return Ok(()) };
        second.result = Err(Problem::NotDeterministic(difference));
        Err(self.failed(second))
    }

    /// Takes surprises out of an order, many at once first, for as long as it fails without them.
    fn simplify(&self, failing: Execution) -> Execution {
        let (mut simplest, mut tries) = (failing, 0);
        let mut block = simplest.taken.len();
        while block > 0 && tries < SIMPLER {
            let mut end = simplest.taken.len();
            while end > 0 && tries < SIMPLER {
                let start = end.saturating_sub(block);
                if let Some(choices) = without_surprises(&simplest.taken, start, end) {
                    tries += 1;
                    let simpler = self.execute(Chooser::tried(choices));
                    if kind(&simpler) == kind(&simplest) && surprises(&simpler) < surprises(&simplest) {
                        simplest = simpler;
                    }
                }
                end = start;
            }
            block /= 2;
        }
        simplest
    }

    fn execute(&self, chooser: Chooser) -> Execution {
        execute(self.interleaver, self.scenario, chooser)
    }

    fn failed(&self, execution: Execution) -> Box<FailedOrder> {
        let problem = execution.result.err().unwrap_or(Problem::NeverEnds);
        Box::new(FailedOrder::of(problem, &execution.taken, numbered(&execution.steps), self.orders))
    }
}

fn surprises(execution: &Execution) -> usize {
    execution.taken.iter().filter(|taken| taken.choice > 0).count()
}

/// The choices of `taken` without the surprises from `start` to `end`; nothing when there are none.
fn without_surprises(taken: &[Taken], start: usize, end: usize) -> Option<Vec<u32>> {
    let mut choices: Vec<u32> = taken.iter().map(|taken| taken.choice).collect();
    let part = choices.get_mut(start..end.min(taken.len()))?;
    let any = part.iter().any(|choice| *choice > 0);
    part.fill(0);
    any.then_some(choices)
}

/// Which problem an execution has, whatever its text.
fn kind(execution: &Execution) -> Option<Discriminant<Problem>> {
    execution.result.as_ref().err().map(discriminant)
}

/// In what a second execution of the same choices went another way than the first, if it did. How long waits take is
/// no difference: pauses may have jitter.
fn difference(first: &Execution, second: &Execution) -> Option<String> {
    let (mut before, mut now) = (calls(first), calls(second));
    loop {
        match (before.next(), now.next()) {
            (Some(before), Some(now)) if before == now => {}
            (None, None) => break,
            (before, now) => return Some(format!("first {}, then {}", told(before), told(now))),
        }
    }
    let ended = |execution: &Execution| match &execution.result {
        Ok(()) => "it passed".to_owned(),
        Err(problem) => format!("it failed ({problem})"),
    };
    (kind(first) != kind(second)).then(|| format!("first {}, then {}", ended(first), ended(second)))
}

fn calls(execution: &Execution) -> impl Iterator<Item = &Call> {
    execution.steps.iter().filter_map(|step| match step {
        Step::Went(call) => Some(call),
        Step::Passed(_) => None,
    })
}

fn told(call: Option<&Call>) -> String {
    call.map_or_else(|| "nothing".to_owned(), |call| format!("`{}: {call}`", call.actor))
}

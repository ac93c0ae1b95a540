//! Plans: which call meets which fault, as plain data.

use crate::chance::mixed;

/// Which calls meet which faults. `C` says which calls, `F` what happens to them: see [`PortPlan`](crate::PortPlan)
/// and [`StorePlan`](crate::StorePlan).
///
/// A plan is plain data. It can be printed, compared, made by a strategy of proptest, and followed again: the same
/// plan has the same calls meet the same faults. Of several rules that hold for a call, the first wins.
///
/// ```
/// use workflow_testkit::{Plan, PortCalls, PortFault, When};
///
/// let plan = Plan::of(PortCalls::Commit, When::Nth(2), PortFault::AnswerLost)
///     .and(PortCalls::Any, When::Chance(10), PortFault::Fails);
/// assert_eq!(plan.rules.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<C, F> {
    /// What [`When::Chance`] draws from.
    pub seed: u64,
    /// The rules, the most important first.
    pub rules: Vec<Rule<C, F>>,
}

/// One line of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<C, F> {
    /// The calls that the rule is about.
    pub calls: C,
    /// Which of them meet the fault.
    pub when: When,
    /// The fault.
    pub fault: F,
}

/// Which of the calls that a rule is about meet its fault. Each rule counts its own calls, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every one.
    Always,
    /// This one.
    Nth(u64),
    /// So many, from the first on.
    First(u64),
    /// One in so many: the n-th, the 2n-th and so on.
    Every(u64),
    /// So many of a thousand, drawn by the plan's seed, the rule's place in the plan and the number of the call.
    Chance(u16),
}

impl<C, F> Plan<C, F> {
    /// No faults.
    pub fn none() -> Self {
        Self { seed: 0, rules: Vec::new() }
    }

    /// One rule.
    pub fn of(calls: C, when: When, fault: F) -> Self {
        Self::none().and(calls, when, fault)
    }

    /// Faults by chance: each of `rates` is the calls, how many of a thousand of them, and the fault.
    pub fn random(seed: u64, rates: impl IntoIterator<Item = (C, u16, F)>) -> Self {
        let rules = rates.into_iter().map(|(calls, rate, fault)| Rule { calls, when: When::Chance(rate), fault });
        Self { seed, rules: rules.collect() }
    }

    /// One rule more, less important than those before.
    #[must_use]
    pub fn and(mut self, calls: C, when: When, fault: F) -> Self {
        self.rules.push(Rule { calls, when, fault });
        self
    }
}

impl<C, F> Default for Plan<C, F> {
    fn default() -> Self {
        Self::none()
    }
}

/// A plan that is being followed.
#[derive(Debug)]
pub(crate) struct Course<C, F> {
    plan: Plan<C, F>,
    /// How many calls each rule has been about.
    counted: Vec<u64>,
    met: Vec<Rule<C, F>>,
}

impl<C: Clone, F: Clone> Course<C, F> {
    pub(crate) fn new(plan: Plan<C, F>) -> Self {
        let counted = vec![0; plan.rules.len()];
        Self { plan, counted, met: Vec::new() }
    }

    /// What the next call meets, which `matches` tells the rules about it by.
    pub(crate) fn meet(&mut self, matches: impl Fn(&C) -> bool) -> Option<F> {
        let mut found = None;
        let numbered = self.plan.rules.iter().zip(&mut self.counted).zip(0..);
        for ((rule, counted), index) in numbered.filter(|((rule, _), _)| matches(&rule.calls)) {
            *counted += 1;
            if found.is_none() && rule.when.holds(*counted, || mixed(self.plan.seed, index, *counted)) {
                found = Some(Rule { when: When::Nth(*counted), ..rule.clone() });
            }
        }
        let met = found?;
        self.met.push(met.clone());
        Some(met.fault)
    }

    /// The plan that has the same calls meet the same faults, without any chance.
    pub(crate) fn met(&self) -> Plan<C, F> {
        Plan { seed: 0, rules: self.met.clone() }
    }
}

impl When {
    fn holds(self, nth: u64, chance: impl FnOnce() -> u64) -> bool {
        match self {
            Self::Always => true,
            Self::Nth(this) => nth == this,
            Self::First(count) => nth <= count,
            Self::Every(count) => nth.checked_rem(count) == Some(0),
            Self::Chance(rate) => chance() % 1_000 < u64::from(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of each of ten that meet a fault.
    fn check(when: When, expected: &[u64]) {
        let mut course = Course::new(Plan::of((), when, ()));
        let met: Vec<u64> = (1..=10).filter(|_| course.meet(|()| true).is_some()).collect();
        assert_eq!(met, expected, "{when:?}");
    }

    #[test]
    fn a_rule_counts_the_calls_it_is_about() {
        check(When::Always, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        check(When::Nth(3), &[3]);
        check(When::First(2), &[1, 2]);
        check(When::Every(4), &[4, 8]);
        check(When::Every(0), &[]);
        check(When::Chance(0), &[]);
        check(When::Chance(1_000), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn the_first_rule_that_holds_wins_and_every_rule_counts() {
        let plan = Plan::of('a', When::Nth(2), 1).and('a', When::First(3), 2).and('b', When::Always, 3);
        let mut course = Course::new(plan);
        let met: Vec<_> = "abaa".chars().map(|call| course.meet(|calls| *calls == call)).collect();
        assert_eq!(met, [Some(2), Some(3), Some(1), Some(2)]);
    }

    #[test]
    fn chance_is_the_same_for_the_same_seed_and_calls_and_can_be_followed_without_it() {
        let follow = |plan: &Plan<char, u8>, calls: &str| {
            let mut course = Course::new(plan.clone());
            let met: Vec<_> = calls.chars().map(|call| course.meet(|calls| *calls == call)).collect();
            (met, course.met())
        };
        let plan = |seed| Plan::random(seed, [('a', 300, 1), ('a', 300, 2), ('b', 500, 3)]);
        let (met, fixed) = follow(&plan(1), &"ab".repeat(50));
        assert_eq!(follow(&plan(1), &"ab".repeat(50)).0, met);
        assert_eq!(follow(&fixed, &"ab".repeat(50)), (met.clone(), fixed));
        assert_ne!(follow(&plan(2), &"ab".repeat(50)).0, met);
        // What a kind of call meets does not depend on calls of other kinds in between.
        let of_a = |met: &[Option<u8>]| met.iter().copied().filter(|met| *met != Some(3)).flatten().collect::<Vec<_>>();
        assert_eq!(of_a(&follow(&plan(1), &"a".repeat(50)).0), of_a(&met));
    }
}

//! Listings: every run that is as the filter says all the time is told of once, in its order, and none that never was.

use std::collections::BTreeSet;

use workflow_core::{Incarnation, Run, Timestamp};
use workflow_runtime::{RunFilter, RunOrder, RunState};

use super::past::Past;
use crate::simulation::answer::Listed;
use crate::simulation::invariants::Now;

/// What a call that was asked after commit `asked` is to be held against.
pub(super) struct Asked<'a> {
    pub(super) past: &'a Past,
    pub(super) asked: u64,
    pub(super) now: &'a Now<'a>,
}

/// Where a run stands in the index that a filter is looked up in: a run that leaves its place and comes to another may be
/// told of at both.
type Place = (Incarnation, Option<Timestamp>);

impl Asked<'_> {
    pub(super) fn check_listed(&self, filter: &RunFilter, order: RunOrder, listed: &[Listed]) -> Result<(), String> {
        for run in listed {
            let mut been = self.past.from(&run.run_id, self.asked);
            if !been.any(|been| {
                takes(filter, been, self.now)
                    && Listed::of_record(&run.run_id, been, self.now.store) == Some(run.clone())
            }) {
                return Err(format!("{run} is listed, and was never so"));
            }
        }
        let mut places = BTreeSet::new();
        if let Some(run) =
            listed.iter().find(|run| !places.insert((run.call, is_by_state(filter).then_some(run.since))))
        {
            return Err(format!("{run} is listed twice"));
        }
        let at = |run: &Listed| if is_by_state(filter) { run.since } else { run.submitted_at };
        let is_ordered = listed.is_sorted_by(|one, next| match order {
            RunOrder::OldestFirst => at(one) <= at(next),
            RunOrder::NewestFirst => at(one) >= at(next),
            _ => false,
        });
        if !is_ordered {
            return Err("the runs are not in order".to_owned());
        }
        let is_listed = |run_id: &str| listed.iter().any(|run| run.run_id == run_id);
        match self.certain(filter).find(|run_id| !is_listed(run_id)) {
            Some(run_id) => Err(format!("{run_id} is not listed")),
            None => Ok(()),
        }
    }

    pub(super) fn check_counted(&self, filter: &RunFilter, counted: u64) -> Result<(), String> {
        let least = self.certain(filter).count() as u64;
        let places = |run_id| self.past.from(run_id, self.asked).filter_map(|run| self.place(filter, run));
        let most = self.past.run_ids().flat_map(places).collect::<BTreeSet<Place>>().len() as u64;
        match (least..=most).contains(&counted) {
            true => Ok(()),
            false => Err(format!("there were {least} all the time, and {most} at any time")),
        }
    }

    /// The runs that the filter takes all the time, and that keep their place.
    fn certain(&self, filter: &RunFilter) -> impl Iterator<Item = &str> {
        self.past.run_ids().filter(move |run_id| {
            let mut been = self.past.from(run_id, self.asked).map(|run| self.place(filter, run));
            let first = been.next().flatten();
            first.is_some() && been.all(|place| place == first)
        })
    }

    /// The place of a run that the filter takes.
    fn place(&self, filter: &RunFilter, run: &Run) -> Option<Place> {
        let (_, since) = run.state().filter(|_| takes(filter, run, self.now))?;
        Some((run.incarnation()?, is_by_state(filter).then_some(since)))
    }
}

/// Whether the filter is looked up by the state of the runs.
fn is_by_state(filter: &RunFilter) -> bool {
    filter.state.is_some() && filter.header.is_none()
}

fn takes(filter: &RunFilter, run: &Run, now: &Now<'_>) -> bool {
    let (Some(incarnation), Some((state, since))) = (run.incarnation(), run.state()) else { return false };
    let Some(spec) = now.store.spec(incarnation) else { return false };
    let is_within = |at: Timestamp, from: Option<_>, before: Option<_>| {
        from.is_none_or(|from| Timestamp::from(from) <= at) && before.is_none_or(|before| at < Timestamp::from(before))
    };
    filter.header.as_ref().is_none_or(|(name, value)| spec.headers.get(name) == Some(value))
        && filter.state.is_none_or(|wanted| wanted == RunState::from(state))
        && is_within(since, filter.since, filter.since_before)
        && is_within(spec.submitted_at, filter.submitted, filter.submitted_before)
}

//! Jobs on their way from the queue to the runtime: some kept back, some with a lease that no renewal reaches.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use workflow_runtime::port::{Claim, ClaimedJob};

/// Our handle inside a claim.
pub(super) struct Held {
    pub(super) claim: Claim,
    /// Whether extensions reach the queue.
    pub(super) is_renewed: bool,
}

impl Held {
    pub(super) fn of(claim: &Claim) -> &Self {
        claim.handle().expect("a claim is used with the port that made it")
    }
}

/// What becomes of the jobs of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lot {
    Handed,
    KeptBack,
    /// Its lease ends, whatever the holder does.
    NotRenewed,
    /// The same, and the holder is not told.
    Unaware,
}

/// Jobs that are claimed and not handed out yet, oldest first, by queue.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Mutex<BTreeMap<String, Vec<ClaimedJob>>>);

impl Deliveries {
    /// How many jobs of `queue` are kept back.
    pub(super) fn kept_back(&self, queue: &str) -> usize {
        self.with(|kept| kept.get(queue).map_or(0, Vec::len))
    }

    /// What a claim of `queue` that found `claimed` hands out, `max` at most.
    pub(super) fn hand_out(&self, queue: &str, claimed: Vec<ClaimedJob>, max: usize, lot: Lot) -> Vec<ClaimedJob> {
        self.with(|kept| {
            let kept = kept.entry(queue.to_owned()).or_default();
            // Whose lease has ended meanwhile comes back by itself.
            kept.retain(|job| !job.lost.is_cancelled());
            let (mut now, later) = if lot == Lot::KeptBack { (Vec::new(), claimed) } else { (claimed, Vec::new()) };
            let room = max.saturating_sub(now.len()).min(kept.len());
            let mut before = kept.split_off(kept.len() - room);
            before.reverse();
            kept.extend(later);
            now = now.into_iter().map(|job| handed(job, lot)).collect();
            now.extend(before.into_iter().map(|job| handed(job, Lot::Handed)));
            now
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Vec<ClaimedJob>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn handed(job: ClaimedJob, lot: Lot) -> ClaimedJob {
    let is_renewed = !matches!(lot, Lot::NotRenewed | Lot::Unaware);
    let lost = if lot == Lot::Unaware { CancellationToken::new() } else { job.lost };
    ClaimedJob { claim: Claim::new(Held { claim: job.claim, is_renewed }), lost, ..job }
}

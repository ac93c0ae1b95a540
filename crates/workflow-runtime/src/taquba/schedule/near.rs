//! The doorbells of one queue that are due soon, and how far they are known: those beyond are in the store only.

use std::collections::BTreeSet;
use std::time::Duration;

use workflow_core::{JobId, Timestamp};

/// The store is read on so long before a doorbell may be due that is not held.
pub(in crate::taquba) const LEAD: Duration = Duration::from_secs(10);
/// So many readings fill what may be held.
const READINGS: usize = 4;

/// A doorbell and its due time, in the order in which the store keeps those of a queue.
pub(in crate::taquba) type Due = (Timestamp, JobId);

/// How far the doorbells of a queue are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::taquba) enum Horizon {
    /// Not at all.
    Start,
    /// Up to this one.
    After(Due),
    /// To the last one.
    End,
}

impl Horizon {
    fn covers(&self, doorbell: &Due) -> bool {
        match self {
            Self::Start => false,
            Self::After(last) => doorbell <= last,
            Self::End => true,
        }
    }

    /// From when on a doorbell may be due that lies beyond.
    fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Start => Some(Timestamp::from_millis(0)),
            Self::After((at, _)) => Some(*at),
            Self::End => None,
        }
    }
}

/// The doorbells of a queue that are held, at most as many as it may hold.
pub(super) struct Near {
    held: BTreeSet<Due>,
    most: usize,
    /// Every doorbell in the store up to here is held.
    horizon: Horizon,
    /// While the store is read: what has been added since the reading began is held up to here.
    reading: Option<Horizon>,
}

impl Near {
    pub(super) fn new(most: usize) -> Self {
        Self { held: BTreeSet::new(), most, horizon: Horizon::Start, reading: None }
    }

    /// Takes in a doorbell that is in the store by now; whether it did. One beyond the horizon is found there later.
    pub(super) fn add(&mut self, doorbell: Due) -> bool {
        let is_near = self.horizon.covers(&doorbell);
        // The reading that goes on may have passed its place before it was there.
        if !is_near && !self.reading.as_ref().is_some_and(|until| until.covers(&doorbell)) {
            return false;
        }
        self.held.insert(doorbell);
        self.drop_farthest();
        true
    }

    pub(super) fn remove(&mut self, doorbell: &Due) {
        self.held.remove(doorbell);
    }

    /// Takes up to `max` doorbells that are due, the longest due first.
    pub(super) fn take_due(&mut self, now: Timestamp, max: usize) -> Vec<Due> {
        let mut due = Vec::new();
        while due.len() < max && self.held.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.held.pop_first());
        }
        due
    }

    /// Begins to read the store, if it is time to: from where the doorbells are not known.
    pub(super) fn begin_reading(&mut self, now: Timestamp) -> Option<Horizon> {
        self.horizon.time().filter(|from| *from <= now.after(LEAD))?;
        // A reading that failed has let in what lies beyond.
        self.drop_beyond();
        if !self.has_room() {
            return None;
        }
        self.reading = Some(Horizon::End);
        Some(self.horizon.clone())
    }

    /// Takes in what the reading has found, all that there is up to `reached`.
    pub(super) fn end_reading(&mut self, found: impl IntoIterator<Item = Due>, reached: Horizon) {
        let Some(added_until) = self.reading.take() else { return };
        self.horizon = reached.min(added_until);
        self.held.extend(found);
        self.drop_beyond();
        self.drop_farthest();
    }

    /// Ends a reading that has found out nothing.
    pub(super) fn fail_reading(&mut self) {
        self.reading = None;
    }

    /// When to claim next: a doorbell is due, or it is time to read on.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        let due = self.held.first().map(|(at, _)| *at);
        let read_on = match &self.horizon {
            Horizon::After((at, _)) if self.reading.is_none() && self.has_room() => Some(before(*at)),
            Horizon::Start | Horizon::After(_) | Horizon::End => None,
        };
        due.into_iter().chain(read_on).min()
    }

    /// Whether a doorbell that is held is due.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.held.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Whether a doorbell may be due that is not held.
    pub(super) fn is_behind(&self, now: Timestamp) -> bool {
        self.horizon.time().is_some_and(|from| from <= now)
    }

    /// The most that one reading may find.
    pub(super) fn page(&self) -> usize {
        (self.most / READINGS).max(1)
    }

    fn has_room(&self) -> bool {
        self.held.len() + self.page() <= self.most
    }

    fn drop_beyond(&mut self) {
        while self.held.last().is_some_and(|last| !self.horizon.covers(last)) {
            self.held.pop_last();
        }
    }

    /// Holds no more than it may: the horizon comes nearer instead.
    fn drop_farthest(&mut self) {
        while self.held.len() > self.most {
            self.held.pop_last();
            let Some(last) = self.held.last().cloned() else { return };
            let nearer = Horizon::After(last);
            if let Some(until) = &mut self.reading {
                *until = nearer.clone().min(until.clone());
            }
            self.horizon = nearer.min(self.horizon.clone());
        }
    }
}

fn before(at: Timestamp) -> Timestamp {
    let lead = u64::try_from(LEAD.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_sub(lead))
}

#[cfg(test)]
mod tests;

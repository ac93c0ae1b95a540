//! Counting attempts: which delivery of a job is which attempt of a step, and which steps are suspected of killing
//! their process.

/// After this many lost deliveries that may have started, a step or hook is a suspect: suspects run one at a time.
pub const SUSPECT_AFTER: u32 = 2;

/// The counters of a step (or hook) in hand. The number of an attempt is `used + (deliveries of the job - base)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts that are over, other than those that `base` leaves to count.
    pub used: u32,
    /// Deliveries of the current job that count no more: earlier steps', and lost ones that `used` counts.
    pub base: u32,
    /// Deliveries of this step that may have started and ended without a word: killed process, expired lease.
    pub lost: u32,
    /// The delivery waits for its turn as a suspect and has started nothing. Lost while it waits, it costs no attempt.
    pub parked: bool,
}

/// What a delivery is, by the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// A later delivery of the same job has been counted already.
    Late,
    /// This attempt may start, once counters that changed are durable.
    Start(Attempts),
    /// This attempt is a suspect's: it waits for its turn, once the counters are durable.
    Park(Attempts),
    /// All attempts are used up, by deliveries that never ended.
    Exhausted,
}

impl Attempts {
    /// The number of the attempt that the delivery number `deliveries` of the current job makes, from 1. Right for a
    /// delivery that may start: that is `base + 1`, for any later one is counted up to before it starts.
    pub fn number(&self, deliveries: u32) -> u32 {
        self.used.saturating_add(deliveries.saturating_sub(self.base))
    }

    /// Whether delivery number `deliveries` was overtaken by a later one.
    pub fn is_late(&self, deliveries: u32) -> bool {
        self.base >= deliveries
    }

    /// Judges delivery number `deliveries` of the current job, with what was lost before it counted.
    pub fn claim(&self, deliveries: u32, max_attempts: u32) -> ClaimVerdict {
        if self.is_late(deliveries) {
            return ClaimVerdict::Late;
        }
        let counted = self.count_lost(deliveries);
        if counted.number(deliveries) > max_attempts {
            return ClaimVerdict::Exhausted;
        }
        if counted.lost >= SUSPECT_AFTER {
            return ClaimVerdict::Park(Self { parked: true, ..counted });
        }
        ClaimVerdict::Start(Self { parked: false, ..counted })
    }

    /// The counters with every delivery before number `deliveries` accounted for, however many there are: they cost one
    /// attempt at most.
    ///
    /// Only delivery `base + 1` starts on the counters as they are. Every later one changes them, and the runtime commits
    /// the change before it loads the payload or calls the runner. So as long as `base` stands, none of the later ones
    /// can have started: they died between their claim and that commit, by whatever else their process ran.
    fn count_lost(&self, deliveries: u32) -> Self {
        let base = deliveries.saturating_sub(1);
        if base <= self.base {
            return *self;
        }
        if self.parked {
            return Self { base, ..*self };
        }
        Self { used: self.used.saturating_add(1), base, lost: self.lost.saturating_add(1), parked: false }
    }

    /// The counters of the same step under a new job that replaces delivery number `deliveries`, which is not counted;
    /// what was lost before it is.
    pub(crate) fn replaced(&self, deliveries: u32) -> Self {
        let counted = self.count_lost(deliveries);
        counted.carried_to_new_job(counted.used)
    }

    /// The counters of the same step under a new job, with `used` attempts over.
    ///
    /// A suspect's new job is parked from the beginning: it has started nothing, and it cannot until its turn comes and
    /// the commit of that turn ends the parking. So a first delivery that dies while it waits costs no attempt, and
    /// parking it writes nothing.
    pub fn carried_to_new_job(&self, used: u32) -> Self {
        Self { used, base: 0, lost: self.lost, parked: self.lost >= SUSPECT_AFTER }
    }

    /// The counters of the next step in the same delivery.
    pub fn next_step_in(deliveries: u32) -> Self {
        Self { base: deliveries.saturating_sub(1), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(used: u32, base: u32, lost: u32, parked: bool) -> Attempts {
        Attempts { used, base, lost, parked }
    }

    fn check(attempts: Attempts, deliveries: u32, expected: ClaimVerdict) {
        assert_eq!(attempts.claim(deliveries, 5), expected);
    }

    #[test]
    fn a_first_delivery_changes_nothing() {
        check(counters(0, 0, 0, false), 1, ClaimVerdict::Start(counters(0, 0, 0, false)));
        check(counters(3, 4, 1, false), 5, ClaimVerdict::Start(counters(3, 4, 1, false)));
    }

    #[test]
    fn a_lost_delivery_is_counted_and_fenced() {
        check(counters(0, 0, 0, false), 2, ClaimVerdict::Start(counters(1, 1, 1, false)));
        assert_eq!(counters(1, 1, 1, false).number(2), 2);
        check(counters(1, 1, 1, false), 1, ClaimVerdict::Late);
    }

    #[test]
    fn deliveries_that_died_before_they_committed_their_count_cost_nothing() {
        check(counters(0, 0, 0, false), 4, ClaimVerdict::Start(counters(1, 3, 1, false)));
        check(counters(0, 0, 0, false), u32::MAX, ClaimVerdict::Start(counters(1, u32::MAX - 1, 1, false)));
        assert_eq!(counters(1, 3, 1, false).number(4), 2);
    }

    #[test]
    fn two_lost_deliveries_that_may_have_started_make_a_suspect() {
        check(counters(1, 1, 1, false), 3, ClaimVerdict::Park(counters(2, 2, 2, true)));
    }

    #[test]
    fn a_suspect_lost_in_the_queue_keeps_its_attempts() {
        let waiting = counters(2, 2, 2, true);
        check(waiting, 4, ClaimVerdict::Park(counters(2, 3, 2, true)));
        assert_eq!(counters(2, 3, 2, true).number(4), waiting.number(3));
    }

    #[test]
    fn a_replaced_delivery_counts_what_was_lost_before_it_and_not_itself() {
        assert_eq!(counters(1, 0, 0, false).replaced(1), counters(1, 0, 0, false));
        assert_eq!(counters(1, 0, 0, false).replaced(3), counters(2, 0, 1, false));
        assert_eq!(counters(1, 1, 1, false).replaced(3), counters(2, 0, 2, true));
        assert_eq!(counters(2, 2, 2, true).replaced(5), counters(2, 0, 2, true));
    }

    #[test]
    fn a_suspect_stays_parked_under_a_new_job() {
        let carried = counters(2, 2, 2, false).carried_to_new_job(3);
        assert_eq!(carried, counters(3, 0, 2, true));
        check(carried, 1, ClaimVerdict::Park(carried));
        check(carried, 3, ClaimVerdict::Park(counters(3, 2, 2, true)));
        assert_eq!(counters(2, 2, 1, false).carried_to_new_job(3), counters(3, 0, 1, false));
    }

    #[test]
    fn attempts_run_out() {
        check(counters(4, 0, 0, false), 1, ClaimVerdict::Start(counters(4, 0, 0, false)));
        check(counters(4, 0, 0, false), 2, ClaimVerdict::Exhausted);
        check(counters(5, 0, 0, false), 1, ClaimVerdict::Exhausted);
    }

    #[test]
    fn counters_saturate() {
        let full = counters(u32::MAX, 1, u32::MAX, false);
        assert_eq!(full.number(u32::MAX), u32::MAX);
        assert_eq!(full.claim(u32::MAX, 5), ClaimVerdict::Exhausted);
    }
}

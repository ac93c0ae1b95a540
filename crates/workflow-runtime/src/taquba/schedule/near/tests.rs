//! The near doorbells of one queue over a small model of what is stored.

use super::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A doorbell with a name of its own that is due at `millis`.
fn due(millis: u64) -> Due {
    (at(millis), format!("{millis:06}").as_str().into())
}

/// A queue of `stored` doorbells of which at most `most` are held, read as the adapter reads it.
struct Subject {
    near: Near,
    stored: BTreeSet<Due>,
    read: usize,
}

impl Subject {
    fn new(most: usize, stored: impl IntoIterator<Item = u64>) -> Self {
        Self { near: Near::new(most), stored: stored.into_iter().map(due).collect(), read: 0 }
    }

    /// What a reading from `from` finds.
    fn page(&mut self, from: &Horizon) -> (Vec<Due>, Horizon) {
        let mut beyond = self.stored.iter().filter(|doorbell| !from.covers(doorbell));
        let found: Vec<_> = beyond.by_ref().take(self.near.page()).cloned().collect();
        self.read += found.len();
        let reached = beyond.next().and(found.last().cloned()).map_or(Horizon::End, Horizon::After);
        (found, reached)
    }

    /// Whether it was time to read.
    fn read_on(&mut self, now: u64) -> bool {
        let Some(from) = self.near.begin_reading(at(now)) else { return false };
        let (found, reached) = self.page(&from);
        self.near.end_reading(found, reached);
        true
    }

    fn commit(&mut self, millis: u64) -> bool {
        self.stored.insert(due(millis));
        self.near.add(due(millis))
    }

    /// What rings until `until`, claimed `max` at a time at the times that the timer asks for, and when.
    fn ring_until(&mut self, until: u64, max: usize) -> Vec<Due> {
        let mut rung = Vec::new();
        let mut now = 0;
        loop {
            while self.read_on(now) {}
            let taken = self.near.take_due(at(now), max);
            assert!(self.near.held.len() <= self.near.most);
            taken.iter().for_each(|(due, _)| assert_eq!(due.as_millis(), now, "on time"));
            taken.iter().for_each(|doorbell| assert!(self.stored.remove(doorbell)));
            rung.extend(taken);
            match self.near.next_look() {
                Some(next) if next.as_millis() <= until => now = next.as_millis().max(now),
                _ => return rung,
            }
        }
    }
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

#[test]
fn all_ring_in_order_and_on_time_though_few_are_held() {
    let times = (0..1_000).map(|n| MINUTE + n * 37 % 1_000 * SECOND);
    let mut subject = Subject::new(16, times.clone());
    let mut expected: Vec<_> = times.map(due).collect();
    expected.sort();
    assert_eq!(subject.ring_until(u64::MAX, 3), expected);
    assert_eq!(subject.read, 1_000, "each is read once");
}

#[test]
fn far_doorbells_are_left_in_the_store() {
    let mut subject = Subject::new(16, (0..100_000).map(|n| MINUTE + n * SECOND));
    assert!(subject.read_on(0));
    assert!(!subject.read_on(0), "the next ones are far");
    assert_eq!(subject.read, 4);
    assert_eq!(subject.near.next_look(), Some(at(MINUTE + 3 * SECOND - 10 * SECOND)), "before the last one is due");
}

#[test]
fn an_addition_beyond_the_horizon_is_found_when_its_time_comes() {
    let mut subject = Subject::new(4, (1..=4).map(|n| n * MINUTE));
    assert!(subject.read_on(0));
    assert!(!subject.commit(3 * MINUTE + 1));
    assert_eq!(subject.near.held.len(), 1);
    let rung = subject.ring_until(u64::MAX, 9);
    assert_eq!(
        rung,
        [1, 2, 3]
            .map(|n| due(n * MINUTE))
            .into_iter()
            .chain([due(3 * MINUTE + 1), due(4 * MINUTE)])
            .collect::<Vec<_>>()
    );
}

#[test]
fn nearer_additions_push_out_the_farthest() {
    let mut subject = Subject::new(4, [10 * MINUTE]);
    assert!(subject.read_on(0));
    for millis in [9, 8, 7, 6, 5].map(|n| n * MINUTE) {
        assert!(subject.commit(millis));
    }
    assert_eq!(Vec::from_iter(subject.near.held.clone()), [5, 6, 7, 8].map(|n| due(n * MINUTE)));
    assert!(!subject.commit(9 * MINUTE - 1), "the horizon has come nearer");
    let rung = subject.ring_until(u64::MAX, 9);
    let expected = [5 * MINUTE, 6 * MINUTE, 7 * MINUTE, 8 * MINUTE, 9 * MINUTE - 1, 9 * MINUTE, 10 * MINUTE];
    assert_eq!(rung, expected.map(due));
}

#[test]
fn an_addition_behind_the_back_of_a_reading_is_held() {
    let mut subject = Subject::new(8, [MINUTE, 3 * MINUTE]);
    let from = subject.near.begin_reading(at(0)).unwrap();
    let (found, reached) = subject.page(&from);
    assert!(subject.commit(2 * MINUTE), "the page does not show it");
    subject.near.end_reading(found, reached);
    assert_eq!(subject.ring_until(u64::MAX, 9), [1, 2, 3].map(|n| due(n * MINUTE)));
}

#[test]
fn what_a_reading_finds_is_known_no_further_than_what_was_added_meanwhile() {
    let mut subject = Subject::new(2, []);
    let from = subject.near.begin_reading(at(0)).unwrap();
    let (found, reached) = subject.page(&from);
    for millis in [5, 4, 3].map(|n| n * MINUTE) {
        subject.commit(millis);
    }
    subject.near.end_reading(found, reached);
    assert_eq!(subject.ring_until(u64::MAX, 9), [3, 4, 5].map(|n| due(n * MINUTE)));
}

#[test]
fn a_reading_that_failed_is_begun_again() {
    let mut subject = Subject::new(8, [MINUTE]);
    assert!(subject.near.begin_reading(at(0)).is_some());
    subject.commit(2 * MINUTE);
    subject.near.fail_reading();
    assert!(!subject.commit(3 * MINUTE));
    assert_eq!(subject.ring_until(u64::MAX, 9), [1, 2, 3].map(|n| due(n * MINUTE)));
}

#[test]
fn doorbells_of_one_time_are_read_in_parts() {
    let mut subject = Subject::new(4, []);
    subject.stored.extend((0..100).map(|n| (at(MINUTE), format!("{n:03}").as_str().into())));
    let expected: Vec<_> = subject.stored.iter().cloned().collect();
    assert_eq!(subject.ring_until(u64::MAX, 3), expected);
}

#[test]
fn nobody_is_asked_to_look_while_the_store_is_read_or_nothing_more_can_be_held() {
    let mut subject = Subject::new(1, [5 * SECOND, 6 * SECOND]);
    assert_eq!(subject.near.next_look(), None, "nobody has looked yet");
    assert!(subject.read_on(0));
    assert_eq!(subject.near.next_look(), Some(at(5 * SECOND)), "there is no room");
    assert_eq!(subject.near.take_due(at(5 * SECOND), 9), [due(5 * SECOND)]);
    assert_eq!(subject.near.next_look(), Some(at(0)), "there is room, and it is time");
    assert!(subject.near.begin_reading(at(5 * SECOND)).is_some());
    assert_eq!(subject.near.next_look(), None);
}

#[test]
fn it_tells_whether_doorbells_may_be_due() {
    let mut subject = Subject::new(1, [5 * SECOND, 6 * SECOND]);
    assert!(subject.near.is_behind(at(0)), "nobody has looked yet");
    assert!(subject.read_on(0));
    assert!(!subject.near.is_behind(at(4 * SECOND)) && !subject.near.is_due(at(4 * SECOND)));
    assert!(subject.near.is_behind(at(5 * SECOND)) && subject.near.is_due(at(5 * SECOND)));
    assert_eq!(subject.near.take_due(at(5 * SECOND), 9).len(), 1);
    assert!(subject.near.is_behind(at(5 * SECOND)) && !subject.near.is_due(at(5 * SECOND)));
}

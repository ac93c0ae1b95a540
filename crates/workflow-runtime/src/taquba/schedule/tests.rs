//! The timer over several queues, and whom it wakes.

use futures::FutureExt;

use super::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A timer that knows all there is in the queues.
fn read(queues: &[&str]) -> Schedule {
    let schedule = Schedule::holding(100);
    for queue in queues {
        assert!(schedule.begin_reading(queue, at(0)).is_some());
        schedule.end_reading(queue, Vec::new(), Horizon::End);
    }
    schedule
}

#[test]
fn what_is_due_comes_out_in_order_and_once() {
    let schedule = read(&["q"]);
    for (due, job) in [(30, "c"), (10, "a"), (20, "b")] {
        schedule.add("q", at(due), job.into());
    }
    let queues = ["q".to_owned()];
    assert_eq!(schedule.next_look(&queues), Some(at(10)));
    assert_eq!(schedule.take_due("q", at(9), 9), []);
    assert_eq!(schedule.take_due("q", at(20), 1), [(at(10), "a".into())]);
    assert_eq!(schedule.take_due("q", at(20), 9), [(at(20), "b".into())]);
    assert_eq!(schedule.next_look(&queues), Some(at(30)));
    assert_eq!(schedule.next_look(&["other".to_owned()]), None);
}

#[test]
fn the_earliest_of_all_queues_is_waited_for() {
    let schedule = read(&["p", "q"]);
    schedule.add("p", at(20), "a".into());
    schedule.add("q", at(10), "b".into());
    assert_eq!(schedule.next_look(&["p".to_owned(), "q".to_owned()]), Some(at(10)));
}

#[test]
fn an_addition_wakes_whoever_asked_before() {
    let schedule = read(&["q"]);
    let waiting = schedule.next_change();
    schedule.add("q", at(1), "a".into());
    assert!(waiting.now_or_never().is_some());
}

#[test]
fn the_end_of_a_reading_wakes_whoever_asked_before() {
    let schedule = Schedule::holding(1);
    for fails in [false, true] {
        assert!(schedule.begin_reading("q", at(0)).is_some());
        let waiting = schedule.next_change();
        if fails {
            schedule.fail_reading("q");
        } else {
            schedule.end_reading("q", vec![(at(5), "a".into())], Horizon::After((at(5), "a".into())));
            assert_eq!(schedule.take_due("q", at(5), 9).len(), 1);
        }
        assert!(waiting.now_or_never().is_some());
    }
}

//! Single steps, called as functions.

use std::time::Duration;

use workflow_runtime::StepOutcome;
use workflow_testkit::{Outside, StepFixture};

use crate::booking::Booking;
use crate::fakes::Partner;

fn booking(outside: &Outside, rooms: usize, seats: usize) -> Booking {
    let partner = |places| Partner::new(outside.clone(), places);
    Booking { hotel: partner(rooms), airline: partner(seats), mail: partner(0) }
}

#[test]
fn a_trip_goes_from_step_to_step_until_the_traveller_is_asked() {
    let room = StepFixture::new("room").run_id("trip");
    let outside = room.outside();
    let booking = booking(&outside, 1, 1);
    let reserved = room.run_blocking(&booking);
    assert_eq!(reserved.outcome, Ok(StepOutcome::continue_now(b"seat".to_vec())));
    assert_eq!(reserved.effects.puts[&b"room/trip"[..]], "trip-room");
    let seat = room.next(&reserved);
    let ask = seat.next(&seat.run_blocking(&booking));
    let day = Duration::from_secs(24 * 3_600);
    let waits = StepOutcome::continue_on_signal(b"answered".to_vec(), "answer/trip", day);
    assert_eq!(ask.run_blocking(&booking).outcome, Ok(waits));
    assert_eq!(
        outside.done(),
        ["room reserved (trip-room)", "seat reserved (trip-seat)", "mail: is this your trip? (trip-ask)"]
    );
}

#[test]
fn what_is_reserved_is_given_back_when_no_seat_is_left() {
    let seat = StepFixture::new("seat").run_id("trip").kv("room/trip", "trip-room");
    let outside = seat.outside();
    let booking = booking(&outside, 8, 0);
    let sold_out = seat.run_blocking(&booking);
    assert_eq!(sold_out.outcome, Ok(StepOutcome::continue_now(b"give back: no seat is left".to_vec())));
    let given_back = seat.next(&sold_out).run_blocking(&booking);
    assert_eq!(given_back.outcome, Ok(StepOutcome::Cancel { reason: "no seat is left".to_owned() }));
    assert_eq!(outside.done(), ["room given back (trip-room)"]);
    assert!(given_back.effects.deletes.contains(&b"room/trip"[..]));
}

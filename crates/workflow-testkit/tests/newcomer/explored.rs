//! Whole trips, with the process dead at every point.

use workflow_runtime::{NoopTerminalHook, RunSpec, TerminalStatus};
use workflow_testkit::{Coverage, Explorer, Sim, explore};

use crate::booking::{Booking, answer_key};
use crate::fakes::Partner;

/// What the world is like, and what the traveller does.
#[derive(Clone, Copy)]
struct Trip {
    seats: usize,
    /// What the traveller answers, if anything.
    answer: Option<&'static str>,
    /// Whether the airline knows a repetition.
    airline_knows: bool,
    ends: (TerminalStatus, &'static str),
}

async fn scenario(sim: Sim, trip: Trip) {
    let booking = Booking {
        hotel: Partner::new(sim.outside(), 2),
        airline: Partner { knows_repetitions: trip.airline_knows, ..Partner::new(sim.outside(), trip.seats) },
        mail: Partner::new(sim.outside(), 0),
    };
    let runtime = sim.start(booking, NoopTerminalHook);
    let input = b"room".to_vec();
    runtime.submit(RunSpec { run_id: Some("trip".to_owned()), input, ..RunSpec::default() }).await.unwrap();
    sim.until_idle().await;
    if let Some(answer) = trip.answer {
        sim.once("answer", runtime.signal(&answer_key("trip"), answer.into())).await;
    }
    let end = runtime.wait("trip").await.unwrap();
    let text = end.error.unwrap_or_else(|| String::from_utf8(end.result.unwrap_or_default()).unwrap());
    assert_eq!((end.status, &*text), trip.ends);
}

const BOOKED: Trip =
    Trip { seats: 3, answer: Some("yes"), airline_knows: true, ends: (TerminalStatus::Succeeded, "booked") };

const TRIPS: [Trip; 4] = [
    BOOKED,
    Trip { answer: Some("no"), ends: (TerminalStatus::Cancelled, "the traveller declined"), ..BOOKED },
    Trip { answer: None, ends: (TerminalStatus::Cancelled, "the traveller did not answer"), ..BOOKED },
    Trip { seats: 0, answer: None, ends: (TerminalStatus::Cancelled, "no seat is left"), ..BOOKED },
];

#[test]
fn every_trip_ends_the_same_wherever_the_process_dies() {
    let mut coverage = Coverage::new();
    for trip in TRIPS {
        let held = explore(|sim| scenario(sim, trip));
        println!("{}: {held}", trip.ends.1);
        coverage.merge(&held.coverage);
    }
    println!("{coverage}");
}

#[test]
fn an_airline_that_knows_no_repetition_is_found() {
    let trip = Trip { airline_knows: false, ..BOOKED };
    Sim::run(1, |sim| scenario(sim, trip));
    let failed = Explorer::new().explore(|sim| scenario(sim, trip)).unwrap_err();
    println!("{failed}");
    assert_eq!(failed.problems[0], "outside: seat reserved, done 2 times instead of 1");
}

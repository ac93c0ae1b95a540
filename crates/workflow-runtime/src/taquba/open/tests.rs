//! What only the inside of `open` can show.

use std::error::Error as _;

use super::*;

#[tokio::test]
async fn the_clock_is_followed_for_as_long_as_anything_uses_the_queue() {
    let storage = open("memory:").await.unwrap();
    let port = storage.port.clone();
    assert!(port.follows_wall_clock());
    drop(storage);
    tokio::task::yield_now().await;
    assert!(port.follows_wall_clock());
}

#[test]
fn a_clock_that_is_behind_is_told_in_one_clear_error() {
    let tick = "invalid clock tick, must be monotonic. last_tick=`2`, next_tick=`1`";
    let behind = ::taquba::Error::Storage(::slatedb::Error::invalid(tick.to_owned()));
    assert!(ClockBehind::is_told_by(&behind));
    let error = failure(behind);
    assert!(!error.is_permanent() && !error.is_closed());
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains("the system's clock is behind the last write of the store"), "{cause}");
    let other = ::taquba::Error::Storage(::slatedb::Error::invalid("another".to_owned()));
    assert!(!ClockBehind::is_told_by(&other));
}

//! What a signal costs does not depend on how many came before it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use workflow_runtime::{SignalOptions, SignalOutcome};
use workflow_testkit::{FaultyPort, Plan, PortCounts};

use crate::scripted::{Scripted, World};

/// As large as a row of the default settings holds.
const LEN: usize = 32 * 1024;

/// What one call asked of the port, and which rows it changed, as how many of a kind.
#[derive(Debug, PartialEq)]
struct Cost {
    gets: u64,
    scans: u64,
    commits: u64,
    enqueues: u64,
    rows: BTreeMap<String, usize>,
}

/// The state around a call.
struct Around {
    counts: PortCounts,
    entries: Vec<(Bytes, Bytes)>,
}

fn kind(key: &Bytes) -> String {
    String::from_utf8_lossy(key).split('/').nth(2).unwrap().to_owned()
}

fn cost(before: &Around, after: &Around) -> Cost {
    let mut rows = BTreeMap::new();
    let mut old = before.entries.iter().peekable();
    for (key, value) in &after.entries {
        let was = old.next_if(|(was, _)| was == key);
        assert!(old.peek().is_none_or(|(was, _)| was > key), "a row is gone");
        if was.is_none_or(|(_, was)| was != value) {
            *rows.entry(kind(key)).or_default() += 1;
        }
    }
    Cost {
        gets: after.counts.gets - before.counts.gets,
        scans: after.counts.scans - before.counts.scans,
        commits: after.counts.commits - before.counts.commits,
        enqueues: after.counts.enqueues - before.counts.enqueues,
        rows,
    }
}

async fn check(signals: usize, id: impl Fn(usize) -> Option<String>, payload: Vec<u8>, expected: &Cost) {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX));
    let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::none());
    let runtime = world.over(Arc::new(port.clone()));
    let now = || Around { counts: port.counts(), entries: world.disk.entries() };
    for number in 0..signals {
        let before = (number == 1 || number == signals / 2 || number == signals - 1).then(now);
        let options = SignalOptions { id: id(number) };
        let sent = runtime.signal_with("k", payload.clone(), options).await.unwrap();
        assert_eq!(sent, SignalOutcome::Buffered);
        if let Some(before) = before {
            assert_eq!(cost(&before, &now()), *expected, "signal {number}");
        }
    }
    let counts = port.counts();
    assert_eq!((counts.commits, counts.scans), (signals as u64, 0));
    assert_eq!(counts.gets, expected.gets * signals as u64);
}

fn one_of_each(kinds: &[&str]) -> BTreeMap<String, usize> {
    kinds.iter().map(|kind| ((*kind).to_owned(), 1)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_ten_thousandth_buffered_signal_costs_what_the_first_does() {
    let rows = one_of_each(&["signal", "signal-item", "signal-expiry"]);
    check(10_000, |_| None, vec![7; LEN], &Cost { gets: 1, scans: 0, commits: 1, enqueues: 0, rows }).await;
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_id_costs_one_read_and_one_row_more() {
    let rows = one_of_each(&["signal", "signal-item", "signal-expiry", "signal-id"]);
    let expected = Cost { gets: 2, scans: 0, commits: 1, enqueues: 0, rows };
    check(500, |number| Some(number.to_string()), vec![7; 8], &expected).await;
}

//! Which keys have a commit in flight: what the store shows of them, a crash can still undo.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use workflow_effects::{ScanPage, ScanRange, is_reserved};

/// The keys in flight.
#[derive(Default)]
pub(super) struct Flights {
    airborne: Mutex<BTreeMap<Bytes, Vec<Flight>>>,
}

type Flight = Arc<OneFlight>;

struct OneFlight {
    state: watch::Sender<State>,
    /// Whether no other commit was in flight meanwhile on any of its keys that are the runtime's own.
    is_alone: AtomicBool,
    /// Whether others on those keys have to wait until it has landed, because it does not look at what they write.
    excludes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Airborne,
    Landed,
    /// The commit failed: whether it was applied, and is durable, is unknown.
    Crashed,
}

/// A commit in flight. Dropped without [`land`](Self::land), it has crashed.
pub(super) struct InFlight {
    flights: Arc<Flights>,
    keys: Vec<Bytes>,
    flight: Flight,
    /// Those that exclude it.
    before: Vec<Flight>,
}

/// Crashed flights: what was read may be of theirs. A durable write that began after the read dispels it.
pub(super) struct Doubt(Vec<Flight>);

impl Flights {
    /// Marks `keys` as in flight, before the commit begins. Where no other is in flight on any of them, `excludes`
    /// decides whether those that come later have to wait for this one. What an application's keys hold nobody knows
    /// or decides on, so they keep no commits apart.
    pub(super) fn take_off(self: &Arc<Self>, keys: Vec<Bytes>, excludes: impl FnOnce() -> bool) -> InFlight {
        let mut airborne = self.lock();
        let own = keys.iter().filter(|key| is_reserved(key));
        let others: Vec<_> = own.filter_map(|key| airborne.get(key)).flatten().cloned().collect();
        for other in &others {
            other.is_alone.store(false, Ordering::Relaxed);
        }
        let is_alone = others.is_empty();
        let flight = Arc::new(OneFlight {
            state: watch::Sender::new(State::Airborne),
            is_alone: is_alone.into(),
            excludes: is_alone && excludes(),
        });
        for key in &keys {
            airborne.entry(key.clone()).or_default().push(flight.clone());
        }
        drop(airborne);
        let before = others.into_iter().filter(|other| other.excludes).collect();
        InFlight { flights: self.clone(), keys, flight, before }
    }

    /// Waits until every commit in flight on `key` has ended. Call it after the read: what was read is durable then,
    /// unless there is a doubt.
    pub(super) async fn settled(&self, key: &[u8]) -> Result<(), Doubt> {
        let flights = self.lock().get(key).cloned().unwrap_or_default();
        all_landed(flights).await
    }

    /// As [`settled`](Self::settled), for all keys that a scan of `range` has read which found `page`.
    pub(super) async fn settled_in(&self, range: &ScanRange, page: &ScanPage) -> Result<(), Doubt> {
        let flights = {
            let airborne = self.lock();
            airborne
                .range(range.prefix.clone()..)
                .take_while(|(key, _)| key.starts_with(&range.prefix))
                .filter(|(key, _)| range.has_read(page, key))
                .flat_map(|(_, flights)| flights.iter().cloned())
                .collect()
        };
        all_landed(flights).await
    }

    /// Whether a commit is in flight on `key`, or has crashed there.
    pub(super) fn is_busy(&self, key: &[u8]) -> bool {
        self.lock().contains_key(key)
    }

    /// Forgets the crashes of `doubt`.
    pub(super) fn dispel(&self, doubt: &Doubt) {
        self.lock().retain(|_, flights| {
            flights.retain(|flight| !doubt.0.iter().any(|crashed| Arc::ptr_eq(crashed, flight)));
            !flights.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bytes, Vec<Flight>>> {
        self.airborne.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn all_landed(flights: Vec<Flight>) -> Result<(), Doubt> {
    let mut crashed = Vec::new();
    for flight in flights {
        let landed = {
            let mut state = flight.state.subscribe();
            state.wait_for(|state| *state != State::Airborne).await.is_ok_and(|state| *state == State::Landed)
        };
        if !landed {
            crashed.push(flight);
        }
    }
    if crashed.is_empty() { Ok(()) } else { Err(Doubt(crashed)) }
}

impl InFlight {
    /// Waits until nothing excludes the commit any more.
    pub(super) async fn cleared(&mut self) {
        // What has crashed is over as well: the commit looks for itself at what is there.
        let _ = all_landed(take(&mut self.before)).await;
    }

    /// Whether others on its keys wait until it has landed: those that are the runtime's own.
    pub(super) fn excludes(&self) -> bool {
        self.flight.excludes
    }

    /// Whether nothing else can have changed what the commit wrote of the runtime's own keys: no other was in flight
    /// on any of them.
    pub(super) fn is_alone(&self) -> bool {
        self.flight.is_alone.load(Ordering::Relaxed)
    }

    /// The commit has ended: durable, or refused without a trace.
    pub(super) fn land(self) {
        self.flight.state.send_replace(State::Landed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let crashed = self.flight.state.send_if_modified(|state| {
            let airborne = *state == State::Airborne;
            if airborne {
                *state = State::Crashed;
            }
            airborne
        });
        if crashed {
            // It stays on its keys: a read that saw the commit may come here only now.
            return;
        }
        let mut airborne = self.flights.lock();
        for key in &self.keys {
            let Some(flights) = airborne.get_mut(key) else { continue };
            flights.retain(|flight| !Arc::ptr_eq(flight, &self.flight));
            if flights.is_empty() {
                airborne.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use workflow_effects::ScanOrder::{Ascending, Descending};

    use super::*;

    fn key(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    /// Whether a read of `key` is durable now; nothing while it has to wait.
    fn settled(flights: &Flights, key: &[u8]) -> Option<bool> {
        flights.settled(key).now_or_never().map(|settled| settled.is_ok())
    }

    #[test]
    fn a_read_waits_for_the_commits_that_were_in_flight() {
        let flights = Arc::new(Flights::default());
        assert_eq!(settled(&flights, b"a"), Some(true));
        let first = flights.take_off(vec![key("a"), key("b")], || false);
        let mut waiting = Box::pin(flights.settled(b"a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        let _second = flights.take_off(vec![key("a")], || false);
        first.land();
        assert!(waiting.now_or_never().is_some_and(|settled| settled.is_ok()));
        assert_eq!(settled(&flights, b"b"), Some(true));
        assert_eq!(settled(&flights, b"a"), None);
    }

    #[test]
    fn a_scan_waits_for_its_range_only() {
        let flights = Arc::new(Flights::default());
        let _flight = flights.take_off(vec![key("p/5")], || false);
        let check = |order, prefix, after: Option<&'static str>, last: Option<&'static str>, settled: bool| {
            let range = ScanRange { after: after.map(key), order, ..ScanRange::first(key(prefix), 9) };
            let entries = last.into_iter().map(|last| (key(last), Bytes::new())).collect();
            let answer = flights.settled_in(&range, &ScanPage { entries, more: last.is_some() }).now_or_never();
            assert_eq!(answer.is_some(), settled, "{range:?} up to {last:?}");
        };
        for order in [Ascending, Descending] {
            check(order, "p/", None, None, false);
            check(order, "q/", None, None, true);
            check(order, "p/", Some("p/5"), None, true);
            check(order, "p/", None, Some("p/5"), false);
        }
        check(Ascending, "p/", Some("p/4"), Some("p/5"), false);
        check(Ascending, "p/", None, Some("p/4"), true);
        check(Ascending, "p/", Some("p/6"), None, true);
        check(Descending, "p/", Some("p/6"), Some("p/5"), false);
        check(Descending, "p/", None, Some("p/6"), true);
        check(Descending, "p/", Some("p/4"), None, true);
    }

    #[test]
    fn a_failed_commit_is_told_to_those_who_wait_and_to_those_who_come_later() {
        let flights = Arc::new(Flights::default());
        let flight = flights.take_off(vec![key("a"), key("b")], || false);
        let mut waiting = Box::pin(flights.settled(b"a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(flight);
        assert!(waiting.now_or_never().is_some_and(|settled| settled.is_err()));
        assert_eq!(settled(&flights, b"a"), Some(false));
        assert_eq!(settled(&flights, b"b"), Some(false));
        assert_eq!(settled(&flights, b"c"), Some(true));
    }

    #[test]
    fn who_comes_later_waits_for_a_commit_that_excludes_others() {
        let [a, b, c, d] = ["workflow/a", "workflow/b", "workflow/c", "workflow/d"].map(key);
        let flights = Arc::new(Flights::default());
        let sole = flights.take_off(vec![a, b.clone()], || true);
        assert!(sole.is_alone());
        let mut elsewhere = flights.take_off(vec![c], || true);
        assert!(elsewhere.cleared().now_or_never().is_some());
        let mut later = flights.take_off(vec![b.clone()], || panic!("it is not alone"));
        let mut last = flights.take_off(vec![b], || panic!("it is not alone"));
        assert!(!sole.is_alone() && !later.is_alone());
        assert!(later.cleared().now_or_never().is_none());
        sole.land();
        assert!(last.cleared().now_or_never().is_some(), "the one before it looks at what is there");
        drop(flights.take_off(vec![d.clone()], || true));
        let mut after_a_crash = flights.take_off(vec![d], || panic!("it is not alone"));
        assert!(after_a_crash.cleared().now_or_never().is_some());
    }

    #[test]
    fn an_applications_key_keeps_no_commits_apart() {
        let flights = Arc::new(Flights::default());
        let one = flights.take_off(vec![key("workflow/a"), key("app")], || true);
        let mut other = flights.take_off(vec![key("workflow/b"), key("app")], || true);
        assert!(other.cleared().now_or_never().is_some());
        assert!(one.is_alone() && one.excludes() && other.is_alone() && other.excludes());
        one.land();
        assert_eq!(settled(&flights, b"app"), None, "a read waits for both");
        other.land();
        assert_eq!(settled(&flights, b"app"), Some(true));
    }

    #[test]
    fn a_doubt_that_is_dispelled_is_forgotten_on_every_key() {
        let flights = Arc::new(Flights::default());
        drop(flights.take_off(vec![key("a"), key("b")], || false));
        drop(flights.take_off(vec![key("b")], || false));
        let doubt = flights.settled(b"a").now_or_never().and_then(Result::err).expect("it crashed");
        flights.dispel(&doubt);
        assert_eq!(settled(&flights, b"a"), Some(true));
        assert_eq!(settled(&flights, b"b"), Some(false), "another crash is doubted still");
    }
}

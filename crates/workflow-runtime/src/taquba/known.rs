//! What the keys hold that this process wrote a moment ago: the queue has one writer, so nobody reads from the store
//! what it knows. Few keys, for seconds: an answer must come from the store before long, which tells when it is lost.

use std::collections::HashMap;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use workflow_effects::{Commit, is_reserved};

/// Longer values are not worth the memory.
const VALUE_LEN: usize = 4 << 10;
/// Half of the bytes that are remembered.
const HALF: usize = 4 << 20;
/// What an entry costs beside its bytes, roughly.
const OVERHEAD: usize = 100;
/// Half of the time for which a value is remembered.
const HALF_LIFE: Duration = Duration::from_secs(2);

/// The values of the runtime's own keys as of their last commits. Applications write theirs by other ways, too.
pub(super) struct Known(Mutex<Generations>);

/// A read of the store in progress, of a key whose value is not known.
pub(super) struct Reading {
    key: Bytes,
    number: u64,
}

/// What is remembered: the old half is forgotten when the young one is full, or old.
struct Generations {
    young: HashMap<Bytes, Option<Bytes>>,
    old: HashMap<Bytes, Option<Bytes>>,
    young_bytes: usize,
    /// The reads in progress by key. Whoever changes the key meanwhile takes its read away.
    reads: HashMap<Bytes, u64>,
    last_read: u64,
    began: Instant,
    /// Whether the store is lost, so that nothing is known any more.
    is_lost: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self(Mutex::new(Generations {
            young: HashMap::new(),
            old: HashMap::new(),
            young_bytes: 0,
            reads: HashMap::new(),
            last_read: 0,
            began: Instant::now(),
            is_lost: false,
        }))
    }
}

impl Known {
    /// What `key` holds, if that is known; a key that is known to hold nothing holds `None`.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let known = self.lock();
        known.young.get(key).or_else(|| known.old.get(key)).cloned()
    }

    /// A read of `key` begins.
    pub(super) fn begin_read(&self, key: &[u8]) -> Option<Reading> {
        if !is_reserved(key) {
            return None;
        }
        let (key, mut known) = (Bytes::copy_from_slice(key), self.lock());
        known.last_read += 1;
        let number = known.last_read;
        known.reads.insert(key.clone(), number);
        Some(Reading { key, number })
    }

    /// The read has found `value`, which is remembered unless the key was changed or read again meanwhile.
    pub(super) fn end_read(&self, reading: &Reading, value: Option<&Bytes>) {
        let mut known = self.lock();
        if known.reads.get(&reading.key) == Some(&reading.number) {
            known.set(&reading.key, value);
        }
    }

    /// Remembers what `commit` has left, the last one on each of its keys.
    pub(super) fn landed(&self, commit: &Commit) {
        let mut known = self.lock();
        for (key, value) in &commit.puts {
            known.set(key, Some(value));
        }
        for key in &commit.deletes {
            known.set(key, None);
        }
    }

    /// Forgets what `keys` hold.
    pub(super) fn forget<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let mut known = self.lock();
        for key in keys {
            known.reads.remove(key);
            known.young.remove(key);
            known.old.remove(key);
        }
    }

    /// Forgets everything for ever: from now on the store answers, that it is lost.
    pub(super) fn lose(&self) {
        let mut known = self.lock();
        known.is_lost = true;
        known.young.clear();
        known.old.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.age();
        known
    }
}

impl Generations {
    fn set(&mut self, key: &Bytes, value: Option<&Bytes>) {
        self.reads.remove(key);
        self.old.remove(key);
        if self.is_lost || !is_reserved(key) || value.is_some_and(|value| value.len() > VALUE_LEN) {
            self.young.remove(key);
            return;
        }
        self.young_bytes += OVERHEAD + key.len() + value.map_or(0, Bytes::len);
        self.young.insert(key.clone(), value.cloned());
        if self.young_bytes >= HALF {
            self.turn();
        }
    }

    fn age(&mut self) {
        if self.began.elapsed() >= HALF_LIFE {
            self.turn();
        }
    }

    /// A generation ends. What began before the last half-life is forgotten, however long nobody has looked.
    fn turn(&mut self) {
        let is_overdue = self.began.elapsed() >= 2 * HALF_LIFE;
        self.old = take(&mut self.young);
        if is_overdue {
            self.old.clear();
        }
        // A read that was given up leaves its entry behind; one that goes on is not remembered.
        self.reads.clear();
        (self.young_bytes, self.began) = (0, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(puts: &[(&'static str, usize)], deletes: &[&'static str]) -> Commit {
        Commit {
            puts: puts.iter().map(|&(key, len)| (key.into(), Bytes::from(vec![b'x'; len]))).collect(),
            deletes: deletes.iter().map(|&key| key.into()).collect(),
            ..Commit::default()
        }
    }

    /// The length of what `key` is known to hold.
    fn len(known: &Known, key: &str) -> Option<Option<usize>> {
        known.get(key.as_bytes()).map(|value| value.map(|value| value.len()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_commit_of_the_runtimes_own_keys_is_known() {
        let known = Known::default();
        assert_eq!(len(&known, "workflow/a"), None);
        known.landed(&commit(&[("workflow/a", 1), ("workflow/b", 2), ("app", 3)], &[]));
        known.landed(&commit(&[("workflow/b", 4)], &["workflow/a", "gone"]));
        assert_eq!(len(&known, "workflow/a"), Some(None));
        assert_eq!(len(&known, "workflow/b"), Some(Some(4)));
        assert_eq!((len(&known, "app"), len(&known, "gone")), (None, None));
        known.landed(&commit(&[("workflow/b", VALUE_LEN + 1)], &[]));
        assert_eq!(len(&known, "workflow/b"), None, "not worth the memory, and not what it held before either");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_doubt_is_forgotten() {
        let known = Known::default();
        known.landed(&commit(&[("workflow/a", 1), ("workflow/b", 2)], &[]));
        tokio::time::advance(HALF_LIFE).await;
        known.landed(&commit(&[("workflow/c", 3)], &[]));
        known.forget([b"workflow/a".as_slice(), b"workflow/c"]);
        assert_eq!((len(&known, "workflow/a"), len(&known, "workflow/c")), (None, None));
        assert_eq!(len(&known, "workflow/b"), Some(Some(2)));
        known.lose();
        known.landed(&commit(&[("workflow/b", 1)], &[]));
        assert_eq!(len(&known, "workflow/b"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_remembered_unless_the_key_changes_meanwhile() {
        let (known, found) = (Known::default(), Bytes::from_static(b"found"));
        let read = |during: &dyn Fn()| {
            let reading = known.begin_read(b"workflow/a").unwrap();
            during();
            known.end_read(&reading, Some(&found));
        };
        read(&|| {});
        assert_eq!(len(&known, "workflow/a"), Some(Some(5)));
        read(&|| known.landed(&commit(&[], &["workflow/a"])));
        assert_eq!(len(&known, "workflow/a"), Some(None));
        read(&|| known.forget([b"workflow/a".as_slice()]));
        assert_eq!(len(&known, "workflow/a"), None);
        read(&|| known.lose());
        assert_eq!(len(&known, "workflow/a"), None);
        assert!(known.begin_read(b"app").is_none(), "others may write there");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_known_for_long() {
        let known = Known::default();
        known.landed(&commit(&[("workflow/a", 1)], &[]));
        tokio::time::advance(HALF_LIFE).await;
        assert_eq!(len(&known, "workflow/a"), Some(Some(1)));
        tokio::time::advance(HALF_LIFE).await;
        assert_eq!(len(&known, "workflow/a"), None);
        known.landed(&commit(&[("workflow/a", 1)], &[]));
        tokio::time::advance(2 * HALF_LIFE).await;
        assert_eq!(len(&known, "workflow/a"), None, "nobody looked in between");
    }

    #[tokio::test(start_paused = true)]
    async fn the_memory_is_bounded() {
        let known = Known::default();
        for number in 0..3 * HALF / VALUE_LEN {
            let value = Bytes::from(vec![b'x'; VALUE_LEN]);
            let puts = vec![(Bytes::from(format!("workflow/{number}")), value)];
            known.landed(&Commit { puts, ..Commit::default() });
        }
        assert_eq!(len(&known, "workflow/0"), None);
        let kept = known.lock();
        assert!((kept.young.len() + kept.old.len()) * VALUE_LEN <= 2 * HALF);
    }
}

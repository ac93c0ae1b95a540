//! Who waits for a key to change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// The waiters by key.
#[derive(Default)]
pub(super) struct Watchers(Mutex<BTreeMap<Bytes, Arc<Notify>>>);

/// A waiter's place; the key is forgotten with its last waiter.
pub(super) struct Watch<'a> {
    watchers: &'a Watchers,
    key: Bytes,
    changed: Option<Arc<Notify>>,
}

impl Watchers {
    /// Watches `key` from now on.
    pub(super) fn watch(&self, key: Bytes) -> Watch<'_> {
        let changed = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default().clone();
        Watch { watchers: self, key, changed: Some(changed) }
    }

    /// Wakes everyone who watches one of `keys`.
    pub(super) fn changed<'k>(&self, keys: impl IntoIterator<Item = &'k Bytes>) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.is_empty() {
            return;
        }
        for key in keys {
            if let Some(changed) = watched.get(key) {
                changed.notify_waiters();
            }
        }
    }

    /// Wakes everyone: the store has closed.
    pub(super) fn wake_all(&self) {
        for changed in self.0.lock().unwrap_or_else(PoisonError::into_inner).values() {
            changed.notify_waiters();
        }
    }
}

impl Watch<'_> {
    /// Wakes at the next change after this call, whenever it is awaited.
    pub(super) fn next_change(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.as_ref().expect("taken on drop only").notified()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut watched = self.watchers.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed = None;
        if watched.get(&self.key).is_some_and(|changed| Arc::strong_count(changed) == 1) {
            watched.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_change_wakes_every_waiter_of_its_key() {
        let watchers = Watchers::default();
        let key = Bytes::from_static(b"a");
        let (one, two) = (watchers.watch(key.clone()), watchers.watch(key.clone()));
        let other = watchers.watch(Bytes::from_static(b"b"));
        let (first, second, third) = (one.next_change(), two.next_change(), other.next_change());
        watchers.changed([&key]);
        assert!(first.now_or_never().is_some() && second.now_or_never().is_some());
        assert!(third.now_or_never().is_none());
    }

    #[test]
    fn a_key_is_forgotten_with_its_last_waiter() {
        let watchers = Watchers::default();
        let one = watchers.watch(Bytes::from_static(b"a"));
        let two = watchers.watch(Bytes::from_static(b"a"));
        drop(one);
        assert_eq!(watchers.0.lock().unwrap().len(), 1);
        drop(two);
        assert!(watchers.0.lock().unwrap().is_empty());
    }
}

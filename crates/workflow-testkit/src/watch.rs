//! A value whose changes can be waited for. Tokio's own wakes its waiters in an order drawn by chance, and a simulation
//! has to repeat itself: this one wakes them in the order in which they began to wait.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The side that changes the value. Clones share it.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// The side that waits for changes.
pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The last version that was looked at.
    seen: u64,
}

/// A look at the value, which cannot change meanwhile.
pub(crate) struct Ref<'a, T>(MutexGuard<'a, State<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

struct State<T> {
    value: T,
    version: u64,
}

impl<T> Sender<T> {
    pub(crate) fn new(value: T) -> Self {
        let state = Mutex::new(State { value, version: 0 });
        Self(Arc::new(Shared { state, changed: Notify::new() }))
    }

    pub(crate) fn borrow(&self) -> Ref<'_, T> {
        self.0.look()
    }

    /// A receiver that has seen the present value.
    pub(crate) fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: self.0.clone(), seen: self.0.lock().version }
    }

    pub(crate) fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Tells the receivers if `modify` says that it has changed the value; says the same.
    pub(crate) fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut state = self.0.lock();
        let is_modified = modify(&mut state.value);
        state.version += u64::from(is_modified);
        drop(state);
        if is_modified {
            self.0.changed.notify_waiters();
        }
        is_modified
    }
}

impl<T> Receiver<T> {
    /// Looks at the value; [`changed`](Self::changed) waits for the next.
    pub(crate) fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let state = self.shared.look();
        self.seen = state.0.version;
        state
    }

    /// Returns once there is a value that was not seen, and takes it for seen.
    pub(crate) async fn changed(&mut self) {
        loop {
            // Made before the look, it does not miss a change after it.
            let changed = self.shared.changed.notified();
            let version = self.shared.lock().version;
            if version != self.seen {
                self.seen = version;
                return;
            }
            changed.await;
        }
    }

    /// Returns once the value is as `wanted`.
    pub(crate) async fn wait_for(&mut self, wanted: impl Fn(&T) -> bool) {
        while !wanted(&self.borrow_and_update()) {
            self.changed().await;
        }
    }
}

impl<T> Shared<T> {
    fn look(&self) -> Ref<'_, T> {
        Ref(self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.borrow().fmt(f)
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn waiters_are_woken_in_the_order_in_which_they_began_to_wait() {
        let value = Sender::new(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiters: Vec<_> = (0..20)
            .map(|number| {
                let (mut changes, order) = (value.subscribe(), order.clone());
                tokio::spawn(async move {
                    changes.wait_for(|value| *value > 0).await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        value.send_modify(|value| *value = 1);
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), Vec::from_iter(0..20));
    }

    #[test]
    fn a_change_is_seen_once_and_one_that_is_none_is_not() {
        let value = Sender::new(0);
        let mut changes = value.subscribe();
        assert!(changes.changed().now_or_never().is_none());
        assert!(!value.send_if_modified(|_| false));
        assert!(changes.changed().now_or_never().is_none());
        value.send_modify(|value| *value = 5);
        assert!(changes.changed().now_or_never().is_some());
        assert!(changes.changed().now_or_never().is_none());
        assert_eq!(*changes.borrow_and_update(), 5);
        assert_eq!(format!("{value:?}"), "5");
    }
}

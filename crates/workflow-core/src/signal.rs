//! Signals: what they are called by, and what is known of one correlation key.

use std::fmt;

use crate::{Incarnation, RunId, Value};

/// The longest correlation key in bytes.
pub const MAX_CORRELATION_KEY_LEN: usize = 1_024;
/// The most keys that one wait names.
pub const MAX_WAIT_KEYS: usize = 16;

/// What a signal and the wait for it agree on: 1 to [`MAX_CORRELATION_KEY_LEN`] bytes of any text, compared byte by
/// byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorrelationKey(String);

impl CorrelationKey {
    /// Checks `key` and keeps it.
    ///
    /// # Errors
    ///
    /// [`ParseCorrelationKeyError`] when `key` is empty or too long.
    ///
    /// ```
    /// use workflow_core::CorrelationKey;
    ///
    /// assert_eq!(CorrelationKey::parse("order/17\0 approved").unwrap().as_str(), "order/17\0 approved");
    /// assert!(CorrelationKey::parse("").is_err());
    /// ```
    pub fn parse(key: impl Into<String>) -> Result<Self, ParseCorrelationKeyError> {
        let key = key.into();
        match key.len() {
            0 => Err(ParseCorrelationKeyError::Empty),
            len if len > MAX_CORRELATION_KEY_LEN => Err(ParseCorrelationKeyError::TooLong { len }),
            _ => Ok(Self(key)),
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CorrelationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not a correlation key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseCorrelationKeyError {
    /// The text is empty.
    #[error("a correlation key must not be empty")]
    Empty,
    /// The text is longer than [`MAX_CORRELATION_KEY_LEN`] bytes.
    #[error("a correlation key has at most {MAX_CORRELATION_KEY_LEN} bytes, not {len}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
}

/// Names one signal. Random, so that two signals of equal bytes are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalId(u128);

impl SignalId {
    /// The id with this value.
    pub const fn new(value: u128) -> Self {
        Self(value)
    }

    /// Its value.
    pub const fn value(self) -> u128 {
        self.0
    }
}

/// One signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Which.
    pub id: SignalId,
    /// What it was sent to.
    pub key: CorrelationKey,
    /// What it carries.
    pub payload: Value,
}

/// Who waits for a key: a step of a run that starts when the wait is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The run.
    pub run_id: RunId,
    /// The submission of it.
    pub incarnation: Incarnation,
    /// The step.
    pub step: u32,
}

/// What is kept of one correlation key: the run that waits, or the signals that do. Never both: a wait takes a signal
/// that is there, and a signal goes to a wait that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// One more in every commit that writes the slot.
    pub revision: u64,
    /// Who waits.
    pub waiter: Option<Waiter>,
    /// The number of the oldest buffered signal.
    pub head: u64,
    /// The number that the next buffered signal gets.
    pub tail: u64,
    /// The signal that was buffered last, or the number that was drawn since: to take signals away, or to enter who waits.
    /// It tells two slots of one revision apart: of those who take the same signal, and of a slot that was idle, forgotten
    /// and begun anew, perhaps by the same step of a run that was brought back.
    pub last: Option<SignalId>,
}

impl Slot {
    /// How many signals are buffered.
    pub fn buffered(&self) -> u64 {
        self.tail.saturating_sub(self.head)
    }

    /// Whether nobody waits and nothing is buffered: then there is nothing to keep.
    pub fn is_idle(&self) -> bool {
        self.waiter.is_none() && self.buffered() == 0
    }

    /// The slot once `waiter` waits. `drawn` is a number that nobody else has: whoever has read of the waiter's last wait
    /// must not take this one for it.
    #[must_use]
    pub fn registered(&self, waiter: Waiter, drawn: SignalId) -> Self {
        self.revised(|slot| {
            slot.waiter = Some(waiter);
            slot.last = Some(drawn);
        })
    }

    /// The slot once nobody waits.
    #[must_use]
    pub fn freed(&self) -> Self {
        self.revised(|slot| slot.waiter = None)
    }

    /// The slot once `signal` is buffered, under the number [`tail`](Self::tail).
    #[must_use]
    pub fn appended(&self, signal: SignalId) -> Self {
        self.revised(|slot| {
            slot.tail = slot.tail.saturating_add(1);
            slot.last = Some(signal);
        })
    }

    /// The slot without its `count` oldest signals. `drawn` is a number that nobody else has, so that no two who take
    /// them away write the same slot.
    #[must_use]
    pub fn without_oldest(&self, count: u64, drawn: SignalId) -> Self {
        self.revised(|slot| {
            slot.head = slot.head.saturating_add(count).min(slot.tail);
            slot.last = Some(drawn);
        })
    }

    fn revised(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        next.revision = next.revision.saturating_add(1);
        change(&mut next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_any_text_of_its_length() {
        for text in ["/", "\0", "ﬀ", "a\u{301}"] {
            assert_eq!(CorrelationKey::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(CorrelationKey::parse(""), Err(ParseCorrelationKeyError::Empty));
        assert!(CorrelationKey::parse("x".repeat(1_024)).is_ok());
        let long = CorrelationKey::parse("é".repeat(513));
        assert_eq!(long, Err(ParseCorrelationKeyError::TooLong { len: 1_026 }));
    }

    #[test]
    fn signals_come_and_go_in_order() {
        let slot = Slot::default().appended(SignalId::new(7)).appended(SignalId::new(8));
        assert_eq!((slot.head, slot.tail, slot.buffered(), slot.revision), (0, 2, 2, 2));
        let rest = slot.without_oldest(1, SignalId::new(9));
        assert_eq!((rest.head, rest.buffered(), rest.revision), (1, 1, 3));
        assert!(!rest.is_idle() && rest.without_oldest(9, SignalId::new(10)).is_idle());
    }

    #[test]
    fn no_two_who_take_a_signal_write_the_same_slot() {
        let slot = Slot::default().appended(SignalId::new(7)).appended(SignalId::new(8));
        assert_ne!(slot.without_oldest(1, SignalId::new(1)), slot.without_oldest(1, SignalId::new(2)));
    }

    #[test]
    fn a_slot_with_a_waiter_is_kept() {
        let waiter = Waiter { run_id: RunId::parse("run").unwrap(), incarnation: Incarnation::new(1), step: 3 };
        let slot = Slot::default().registered(waiter, SignalId::new(1));
        assert!(!slot.is_idle() && slot.freed().is_idle());
        assert_eq!(slot.freed().revision, 2);
    }

    #[test]
    fn a_wait_that_begins_again_is_another_slot() {
        let waiter = Waiter { run_id: RunId::parse("run").unwrap(), incarnation: Incarnation::new(1), step: 3 };
        let wait = |drawn| Slot::default().registered(waiter.clone(), SignalId::new(drawn));
        assert_ne!(wait(1), wait(2));
    }
}

//! A model of the slots of correlation keys: who waits, which signals do, and where each signal went.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use workflow_core::{
    CorrelationKey, Effect, Incarnation, KeyState, Phase, Reason, Run, Signal, SignalId, Transition, Value, WaitKey,
};

type Checked = Result<(), TestCaseError>;

/// The keys that there are.
pub(super) const KEYS: usize = 3;

pub(super) fn key(index: usize) -> CorrelationKey {
    CorrelationKey::parse(format!("key {index}")).expect("a short text is a key")
}

#[derive(Debug, Default)]
struct Slot {
    waiter: Option<(Incarnation, u32)>,
    buffered: VecDeque<Signal>,
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: BTreeMap<CorrelationKey, Slot>,
    sent: u128,
    received: BTreeSet<SignalId>,
    /// The signal that the attempts of each step were called with.
    seen: BTreeMap<u32, Option<SignalId>>,
}

impl Slots {
    /// A new signal, and who waits for it.
    pub(super) fn send(&mut self, key: CorrelationKey) -> (Signal, Option<(Incarnation, u32)>) {
        self.sent += 1;
        let waiter = self.slots.get(&key).and_then(|slot| slot.waiter);
        (Signal { id: SignalId::new(self.sent), key, payload: Value::from("signal") }, waiter)
    }

    pub(super) fn buffer(&mut self, signal: Signal) {
        self.slots.entry(signal.key.clone()).or_default().buffered.push_back(signal);
    }

    /// What a run that begins to wait finds.
    pub(super) fn look_up(&self, key: CorrelationKey, taken: bool) -> WaitKey {
        let buffered = self.slots.get(&key).and_then(|slot| slot.buffered.front());
        let state = match buffered {
            _ if taken => KeyState::Taken,
            Some(signal) => KeyState::Buffered(signal.clone()),
            None => KeyState::Free,
        };
        WaitKey { key, state }
    }

    /// Carries out what a transition says of the slots.
    pub(super) fn commit(&mut self, transition: &Transition) -> Checked {
        let Transition { next, effects, reason, .. } = transition;
        for effect in effects {
            match effect {
                Effect::RegisterWaiter { keys } => {
                    let Run::Active(run) = next else { return Err(TestCaseError::fail("an ended run waits")) };
                    for key in keys {
                        let slot = self.slots.entry(key.clone()).or_default();
                        prop_assert!(slot.waiter.is_none() && slot.buffered.is_empty(), "{slot:?}");
                        slot.waiter = Some((run.incarnation, run.step));
                    }
                }
                Effect::FreeWaiter { keys } => {
                    for key in keys {
                        let slot = self.slots.get_mut(key).expect("it was entered");
                        prop_assert!(slot.waiter.take().is_some(), "nobody waits");
                    }
                }
                Effect::TakeSignal { key } => {
                    let taken = self.slots.get_mut(key).and_then(|slot| slot.buffered.pop_front());
                    self.receive(taken)?;
                }
                _ => {}
            }
        }
        match (next, reason) {
            (Run::Active(run), Reason::Signalled) => self.receive(run.signal.clone()),
            (Run::Active(run), Reason::Redriven | Reason::PutBack) => {
                // The step that goes on sees what it saw before; those after it begin as if they had never been.
                self.seen.retain(|step, _| *step <= run.step);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self, signal: Option<Signal>) -> Checked {
        let signal = signal.expect("a signal was received");
        prop_assert!(self.received.insert(signal.id), "a signal was received twice");
        Ok(())
    }

    /// An attempt of the step in hand starts: it sees what every other attempt of the step saw.
    pub(super) fn started(&mut self, run: &Run) -> Checked {
        let Run::Active(run) = run else { return Err(TestCaseError::fail("a step of no active run started")) };
        let signal = run.signal.as_ref().map(|signal| signal.id);
        let seen = *self.seen.entry(run.step).or_insert(signal);
        prop_assert_eq!(seen, signal, "two attempts of step {} saw different signals", run.step);
        Ok(())
    }

    /// Whoever waits is entered at each of its keys, and nobody else at any.
    pub(super) fn check(&self, run: &Run) -> Checked {
        let waiting: BTreeMap<&CorrelationKey, (Incarnation, u32)> = match run {
            Run::Active(run) => match &run.phase {
                Phase::Waiting { keys, .. } => keys.iter().map(|key| (key, (run.incarnation, run.step))).collect(),
                Phase::Ready | Phase::BackingOff { .. } | Phase::Delayed { .. } => BTreeMap::new(),
            },
            Run::Absent | Run::Ended(_) => BTreeMap::new(),
        };
        let entered = self.slots.iter().filter_map(|(key, slot)| slot.waiter.map(|waiter| (key, waiter)));
        prop_assert_eq!(entered.collect::<BTreeMap<_, _>>(), waiting);
        Ok(())
    }

    /// The signals that wait, and those that were received, are all that were sent.
    pub(super) fn check_none_lost(&self) -> Checked {
        let buffered = self.slots.values().map(|slot| slot.buffered.len()).sum::<usize>();
        prop_assert_eq!((buffered + self.received.len()) as u128, self.sent, "a signal was lost");
        Ok(())
    }
}

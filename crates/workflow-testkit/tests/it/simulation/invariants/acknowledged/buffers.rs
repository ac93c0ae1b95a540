//! The buffers of the correlation keys: what was in each from which commit to which, and what users are told of them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use workflow_core::{SignalId, Timestamp};

use crate::simulation::answer::KeptSignal;

/// Everything that was ever buffered.
#[derive(Default)]
pub(super) struct Buffers {
    /// By correlation key, in the order in which it came.
    kept: BTreeMap<String, Vec<Kept>>,
    known: BTreeSet<SignalId>,
    /// What has left a buffer, and went to no run.
    lost: BTreeSet<SignalId>,
}

/// A signal in a buffer.
struct Kept {
    id: SignalId,
    shown: KeptSignal,
    /// Its object was gone before anybody looked: with which payload it is shown is not known.
    is_without_payload: bool,
    /// The commit that buffered it, and the one that took it out.
    from: u64,
    until: Option<(u64, Gone)>,
}

/// What became of a signal that left its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// A run has it.
    Received,
    /// Its time was over.
    Over,
    /// Somebody has thrown it away.
    Thrown,
}

/// A signal that a commit has buffered.
pub(super) struct Arrival {
    pub(super) id: SignalId,
    pub(super) payload: Option<Bytes>,
    pub(super) sent_at: Timestamp,
    pub(super) idempotency_id: Option<String>,
}

impl Buffers {
    /// Commit `number` has buffered a signal.
    pub(super) fn arrive(&mut self, key: &str, arrival: Arrival, number: u64) {
        let Arrival { id, payload, sent_at, idempotency_id } = arrival;
        let shown =
            KeptSignal { payload: payload.as_deref().unwrap_or_default().to_vec(), sent_at, id: idempotency_id };
        let is_without_payload = payload.is_none();
        self.known.insert(id);
        let kept = Kept { id, shown, is_without_payload, from: number, until: None };
        self.kept.entry(key.to_owned()).or_default().push(kept);
    }

    /// Commit `number` has taken a signal out.
    pub(super) fn leave(&mut self, key: &str, signal: SignalId, gone: Gone, number: u64) {
        if gone != Gone::Received {
            self.lost.insert(signal);
        }
        let kept = self.kept.get_mut(key).and_then(|kept| kept.iter_mut().rfind(|kept| kept.id == signal));
        if let Some(kept) = kept {
            kept.until = Some((number, gone));
        }
    }

    /// Whether the signal was ever in a buffer.
    pub(super) fn has_known(&self, signal: SignalId) -> bool {
        self.known.contains(&signal)
    }

    /// Whether the signal has left its buffer, and went to no run.
    pub(super) fn has_lost(&self, signal: SignalId) -> bool {
        self.lost.contains(&signal)
    }

    /// A call that was asked after commit `asked` is shown what is buffered: in its order, each signal once that was
    /// there all the time, and none that was not there at all.
    pub(super) fn check_shown(&self, key: &str, shown: &[KeptSignal], asked: u64) -> Result<(), String> {
        let mut there = self.since(key, asked);
        for signal in shown {
            loop {
                match there.next() {
                    Some(kept) if kept.is(signal) => break,
                    Some(kept) if kept.is_there_since(asked) => {
                        return Err(format!("{} is buffered, and is not shown before {signal}", kept.shown));
                    }
                    Some(_) => {}
                    None => return Err(format!("{signal} is shown, and is not buffered, or not there")),
                }
            }
        }
        match there.find(|kept| kept.is_there_since(asked)) {
            Some(kept) => Err(format!("{} is buffered, and is not shown", kept.shown)),
            None => Ok(()),
        }
    }

    /// A call that was asked after commit `asked` has thrown away what was buffered then. It counts what it took: `alone`,
    /// everything that went to no run before its time.
    pub(super) fn check_cleared(&self, key: &str, cleared: u64, asked: u64, alone: bool) -> Result<(), String> {
        if let Some(kept) = self.since(key, asked).find(|kept| kept.is_there_since(asked)) {
            return Err(format!("{} is still buffered", kept.shown));
        }
        let gone = |wanted: fn(Gone) -> bool| {
            let gone = self.since(key, asked).filter_map(|kept| kept.until);
            gone.filter(|(_, gone)| wanted(*gone)).count() as u64
        };
        // What is over may go by either.
        let (least, most) = (gone(|gone| gone == Gone::Thrown), gone(|gone| gone != Gone::Received));
        match cleared {
            more if more > most => Err(format!("only {most} have gone to nobody")),
            fewer if alone && fewer < least => Err(format!("{least} were thrown away")),
            _ => Ok(()),
        }
    }

    /// What was in the buffer after commit `asked`, or came later.
    fn since(&self, key: &str, asked: u64) -> impl Iterator<Item = &Kept> {
        let kept = self.kept.get(key).map_or(&[][..], Vec::as_slice);
        kept.iter().filter(move |kept| kept.until.is_none_or(|(until, _)| until > asked))
    }
}

impl Kept {
    fn is(&self, shown: &KeptSignal) -> bool {
        let is_payload = self.is_without_payload || self.shown.payload == shown.payload;
        is_payload && (self.shown.sent_at, &self.shown.id) == (shown.sent_at, &shown.id)
    }

    fn is_there_since(&self, asked: u64) -> bool {
        self.from <= asked && self.until.is_none()
    }
}

//! Sending signals: to the run that waits, or to the buffer.

mod clear;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tracing::{debug, info};
use workflow_core::{CorrelationKey, Event, Reason, Signal, SignalId, Signalled, Timestamp, Value, Waiter};
use workflow_effects::{
    BufferedSignal as StoredSignal, Commit, CommitError, ObjectOwner, Read, SignalExpiry, SignalObjectsState,
    StagedEffects, encode_buffered_signal, encode_signal_expiry, encode_signal_id,
};

use super::WorkflowRuntime;
use crate::engine::Engine;
use crate::lower::{lower, write_slot};
use crate::signals::{GatheredSlot, parse_correlation_key, shown_key};
use crate::views::BufferedSignal;
use crate::{Error, Result, StepRunner, TerminalHook};

/// The longest idempotency id in bytes.
pub const MAX_SIGNAL_ID_LEN: usize = 256;

/// What came of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignalOutcome {
    /// A run waited for it; its next step starts with it.
    Delivered,
    /// Nobody waits for it yet. It is kept, in order of arrival, for whoever does next.
    Buffered,
    /// A signal with its idempotency id was taken before. This one counts for nothing.
    Duplicate,
}

/// How a signal is sent; write `..SignalOptions::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalOptions {
    /// 1 to 256 bytes by which a repetition is known: of the signals of a key that carry the same id, one counts. It is
    /// remembered for [`signal_ttl`](crate::Settings::signal_ttl).
    pub id: Option<String>,
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Sends a signal to whoever waits for `correlation_key`, now or later. Once this has returned the signal is seen,
    /// whatever happens: by the run that waits, or else by the next that does.
    ///
    /// It needs no running loop. A call that fails may have sent the signal: use [`signal_with`](Self::signal_with) an
    /// id where twice is too often.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidCorrelationKey`]; a permanent error when the payload is larger than
    /// [`max_value_size`](crate::Settings::max_value_size); [`Error::SignalBufferFull`]; a transient error when the
    /// store cannot answer.
    pub async fn signal(&self, correlation_key: &str, payload: Vec<u8>) -> Result<SignalOutcome> {
        self.signal_with(correlation_key, payload, SignalOptions::default()).await
    }

    /// Sends a signal as `options` say.
    ///
    /// # Errors
    ///
    /// As [`signal`](Self::signal), and [`Error::InvalidOption`] when the id is empty or too long.
    pub async fn signal_with(
        &self,
        correlation_key: &str,
        payload: Vec<u8>,
        options: SignalOptions,
    ) -> Result<SignalOutcome> {
        let engine = self.engine.clone();
        let key = parse_correlation_key(correlation_key)?;
        if options.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_SIGNAL_ID_LEN) {
            let problem = format!("an id has 1 to {MAX_SIGNAL_ID_LEN} bytes");
            return Err(Error::InvalidOption { option: "id", problem });
        }
        if payload.len() as u64 > engine.settings.max_value_size {
            return Err(Error::Effects(workflow_effects::Error::ValueTooLarge {
                what: format!("the signal for correlation key {:?}", shown_key(key.as_str())),
                len: payload.len() as u64,
                max: engine.settings.max_value_size,
            }));
        }
        let (id, began) = (engine.drawn(), engine.clock.now());
        let sending = Sending { id, key, payload: payload.into(), idempotency_id: options.id, began };
        tokio::spawn(async move { sending.send(&engine).await }).await.unwrap_or(Err(Error::Interrupted))
    }

    /// Throws away the signals that are buffered for `correlation_key`, and says how many there were. Whoever waits
    /// goes on waiting; signals that come meanwhile may stay.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidCorrelationKey`]; a transient error when the store cannot answer: some may be gone then.
    pub async fn clear_signal(&self, correlation_key: &str) -> Result<u64> {
        let engine = self.engine.clone();
        let key = parse_correlation_key(correlation_key)?;
        tokio::spawn(async move { clear::clear(&engine, &key).await }).await.unwrap_or(Err(Error::Interrupted))
    }

    /// The signals that are buffered for `correlation_key`, oldest first. Large payloads are fetched one by one.
    ///
    /// An item is an error when the key is invalid, a signal does not decode, or the store cannot answer.
    pub fn buffered_signals(
        &self,
        correlation_key: &str,
    ) -> impl Stream<Item = Result<BufferedSignal>> + Send + use<R, H> {
        match parse_correlation_key(correlation_key) {
            Ok(key) => self.engine.reads.clone().buffered_signals(key).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        }
    }
}

/// A signal that passed every check.
struct Sending {
    id: SignalId,
    key: CorrelationKey,
    payload: Bytes,
    idempotency_id: Option<String>,
    began: Timestamp,
}

/// How far one try got.
enum Try {
    Done(SignalOutcome),
    /// A signal with the same idempotency id was taken: this one by a try in doubt, or another.
    Taken {
        by_this: bool,
    },
    /// Its object cannot be named, perhaps because it was given up meanwhile. No commit was handed over.
    Unnamed(Error),
    /// The commit was refused: read again and decide again.
    Again,
    /// The commit was refused, and may have been applied before, with this outcome: what it names has to stay.
    InDoubt(SignalOutcome),
    /// An earlier try is in doubt, and its idempotency id would be forgotten by now.
    Forgotten,
}

impl Sending {
    /// Gathers, decides and commits, again for as long as others get in between.
    async fn send<R, H>(&self, engine: &Engine<R, H>) -> Result<SignalOutcome> {
        let mut payload = None;
        let mut turn = None;
        let mut doubt = None;
        loop {
            match self.try_to_send(engine, &mut payload, doubt.is_some()).await {
                Ok(Try::Done(outcome)) => return Ok(outcome),
                Ok(Try::Taken { by_this: true }) => return Ok(doubt.unwrap_or(SignalOutcome::Duplicate)),
                Ok(Try::Taken { by_this: false }) => {
                    discard(engine, &payload).await;
                    return Ok(SignalOutcome::Duplicate);
                }
                Ok(Try::Unnamed(error)) => {
                    // Its row may be gone already, and then nothing else tells of the object.
                    if doubt.is_none() {
                        discard(engine, &payload).await;
                    }
                    return Err(error);
                }
                Ok(Try::Again) => {}
                Ok(Try::InDoubt(outcome)) if self.idempotency_id.is_some() => doubt = Some(outcome),
                // Nothing tells whether it was sent, and sending it again may be once too often.
                Ok(Try::InDoubt(_) | Try::Forgotten) => {
                    return Err(Error::Queue("the outcome of a signal's commit is unknown".into()));
                }
                Err(error) => {
                    // A transient error may hide a commit that was applied, unless it comes before one.
                    let is_before = matches!(error, Error::SignalBufferFull { .. });
                    if (is_before || error.is_permanent()) && doubt.is_none() {
                        discard(engine, &payload).await;
                    }
                    return Err(error);
                }
            }
            if turn.is_none() {
                turn = Some(engine.turns.take(engine.reads.keys.slot(&self.key)).await);
            }
        }
    }

    async fn try_to_send<R, H>(
        &self,
        engine: &Engine<R, H>,
        payload: &mut Option<Value>,
        in_doubt: bool,
    ) -> Result<Try> {
        if let Some(row) = self.taken(engine).await? {
            return Ok(Try::Taken { by_this: row == encode_signal_id(self.id) });
        }
        if in_doubt && self.began.after(engine.settings.signal_ttl) <= engine.clock.now() {
            return Ok(Try::Forgotten);
        }
        let gathered = engine.reads.slot(&self.key, Read::Latest).await?;
        if gathered.slot.waiter.is_none() && gathered.slot.buffered() >= engine.settings.signal_limit {
            let limit = engine.settings.signal_limit;
            return Err(Error::SignalBufferFull { key: shown_key(self.key.as_str()), limit });
        }
        let payload = match payload {
            Some(payload) => payload.clone(),
            None => {
                let stored = engine.reads.objects.put(&ObjectOwner::Signal(self.id), self.payload.clone()).await?;
                payload.insert(stored).clone()
            }
        };
        if let Some(waiter) = &gathered.slot.waiter
            && let Some(tried) = self.deliver(engine, waiter, payload.clone()).await?
        {
            return Ok(tried);
        }
        self.buffer(engine, &gathered, payload).await
    }

    /// The row that says that a signal with this idempotency id was taken.
    async fn taken<R, H>(&self, engine: &Engine<R, H>) -> Result<Option<Bytes>> {
        let Some(id) = &self.idempotency_id else { return Ok(None) };
        let reads = &engine.reads;
        Ok(reads.kv.get(&reads.keys.signal_id(&self.key, id), Read::Durable).await?)
    }

    /// Ends the wait of `waiter` with the signal; `None` when it does not wait.
    async fn deliver<R, H>(&self, engine: &Engine<R, H>, waiter: &Waiter, payload: Value) -> Result<Option<Try>> {
        let (run_id, incarnation) = (&waiter.run_id, waiter.incarnation);
        let gathered = engine.reads.gather(run_id, Read::Latest).await?;
        let now = engine.clock.now();
        let event = Event::Signalled(Signalled {
            signal: Signal { id: self.id, key: self.key.clone(), payload: payload.clone() },
            incarnation,
            step: waiter.step,
            now,
            next_job: engine.next_job(),
        });
        let slots = engine.reads.slots(run_id, &gathered.run, &event).await?;
        let transition = engine.decider.decide(&gathered.run, event);
        if transition.reason != Reason::Signalled {
            return Ok(None);
        }
        let Some(spec) = engine.reads.spec(run_id, incarnation).await? else { return Ok(Some(Try::Again)) };
        let owned = SignalObjectsState::Owned { run_id: run_id.clone(), incarnation };
        let naming = match engine.reads.objects.name_signal(self.id, &payload, owned).await {
            Ok(naming) => naming,
            Err(error) => return Ok(Some(Try::Unnamed(error.into()))),
        };
        let staged = StagedEffects::default();
        let lowering = engine.lowering(run_id, &gathered, &spec, &staged, &slots);
        let mut commit = lower(&lowering, &transition);
        naming.add_to(&mut commit);
        self.remember(engine, &mut commit, now, None);
        let tried = self.commit(engine, commit, SignalOutcome::Delivered).await?;
        if matches!(tried, Try::Done(_)) {
            info!(%run_id, payload_len = self.payload.len(), "signal delivered");
            engine.clean_up(run_id, &gathered.run, &transition, Vec::new());
        }
        Ok(Some(tried))
    }

    /// Appends the signal to the buffer of its key.
    async fn buffer<R, H>(&self, engine: &Engine<R, H>, gathered: &GatheredSlot, payload: Value) -> Result<Try> {
        let keys = &engine.reads.keys;
        let buffered = SignalObjectsState::Buffered { key: self.key.clone() };
        let naming = match engine.reads.objects.name_signal(self.id, &payload, buffered).await {
            Ok(naming) => naming,
            Err(error) => return Ok(Try::Unnamed(error.into())),
        };
        let now = engine.clock.now();
        let number = gathered.slot.tail;
        // A waiter that does not wait any more is forgotten.
        let next = gathered.slot.freed().appended(self.id);
        let mut commit = Commit::default();
        naming.add_to(&mut commit);
        write_slot(&mut commit, keys.slot(&self.key), gathered, &next);
        let stored = StoredSignal {
            id: self.id,
            payload,
            sent_at: now,
            expires_at: now.after(engine.settings.signal_ttl),
            idempotency_id: self.idempotency_id.clone(),
        };
        commit.puts.push((keys.buffered_signal(&self.key, number), encode_buffered_signal(&stored)));
        self.remember(engine, &mut commit, now, Some(number));
        let tried = self.commit(engine, commit, SignalOutcome::Buffered).await?;
        if matches!(tried, Try::Done(_)) {
            debug!(payload_len = self.payload.len(), number, "signal buffered");
        }
        Ok(tried)
    }

    /// Adds what has to be remembered of the signal for a while, and the row that says for how long.
    fn remember<R, H>(&self, engine: &Engine<R, H>, commit: &mut Commit, now: Timestamp, number: Option<u64>) {
        let keys = &engine.reads.keys;
        if let Some(id) = &self.idempotency_id {
            let row = keys.signal_id(&self.key, id);
            commit.expect.push((row.clone(), None));
            commit.puts.push((row, encode_signal_id(self.id)));
        }
        if number.is_some() || self.idempotency_id.is_some() {
            let expiry = SignalExpiry {
                signal: self.id,
                key: self.key.clone(),
                number,
                idempotency_id: self.idempotency_id.clone(),
            };
            let at = now.after(engine.settings.signal_ttl);
            commit.puts.push((keys.signal_expiry(at, self.id), encode_signal_expiry(&expiry)));
        }
    }

    async fn commit<R, H>(&self, engine: &Engine<R, H>, commit: Commit, outcome: SignalOutcome) -> Result<Try> {
        // A run that takes the signal from the buffer leaves nothing of it behind but its idempotency id, for a while.
        match engine.committer.commit_once(commit).await {
            Ok(()) => Ok(Try::Done(outcome)),
            Err(CommitError::Conflict) => Ok(Try::Again),
            Err(CommitError::Overtaken) => Ok(Try::InDoubt(outcome)),
            Err(CommitError::Invalid(error) | CommitError::Failed(error)) => Err(error.into()),
        }
    }
}

/// Deletes the object of a payload that nothing names.
async fn discard<R, H>(engine: &Engine<R, H>, payload: &Option<Value>) {
    if let Some(payload) = payload {
        engine.reads.objects.discard(payload).await;
    }
}

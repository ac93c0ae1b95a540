//! The memo of a step or of a run: reads, fenced writes, and computations that run once.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use workflow_core::{Incarnation, RunId, Value};
use workflow_effects::{
    Commit, CommitError, Committer, KeySpace, KvStore, MemoEntry, MemoScope, MemoryKv, ObjectOwner, ObjectValues, Read,
    Seal, decode_memo_entry, encode_memo_entry,
};

use crate::codec;
use crate::error::{Error, Result};
use crate::spawn::Spawn;

/// The longest memo key in bytes. The empty key is one too.
pub const MAX_MEMO_KEY_LEN: usize = 1024;

/// What a [`Memo`] is made of: the attempt that it belongs to, and where its entries are kept.
pub struct MemoContext {
    /// Commits the entries.
    pub committer: Committer,
    /// Keeps large values.
    pub objects: Arc<ObjectValues>,
    /// The keys of the entries.
    pub keys: KeySpace,
    /// The run.
    pub run_id: RunId,
    /// Which submission of it.
    pub incarnation: Incarnation,
    /// Whose memo it is.
    pub scope: MemoScope,
    /// The revision of the run's record that the attempt started from. A newer attempt has a higher one.
    pub revision: u64,
    /// Set when the attempt ends. Counts the puts in flight.
    pub seal: Seal,
    /// Runs the puts.
    pub spawn: Spawn,
}

/// Remembers what a step, or a run, has computed.
///
/// Keys are texts of at most [`MAX_MEMO_KEY_LEN`] bytes, taken as they are; each memo has keys of its own. Clones share
/// the entries. Values go up to the runtime's largest value size.
///
/// Storing is fenced: a value replaces one of the same attempt or of an older one, never that of a newer attempt
/// ([`Error::Late`]), and once its attempt has ended the memo only reads ([`Error::Sealed`]).
#[derive(Clone)]
pub struct Memo {
    context: Arc<MemoContext>,
}

/// What became of a value that was to be stored.
enum Stored {
    /// It is stored, in the place of this one.
    InPlaceOf(Option<Value>),
    /// Another put came first. No entry names the value: one that did has been replaced.
    Overtaken,
    /// It is refused, and no entry names it.
    Refused(Error),
    /// It may be stored.
    Unknown(Error),
}

impl Memo {
    /// The memo of an attempt.
    pub fn new(context: MemoContext) -> Self {
        Self { context: Arc::new(context) }
    }

    /// A memo outside any runtime, in memory and empty, for tests of step runners.
    pub fn detached() -> Self {
        let kv: Arc<dyn KvStore> = Arc::new(MemoryKv::new());
        Self::new(MemoContext {
            objects: Arc::new(ObjectValues::detached(kv.clone())),
            committer: Committer::new(kv),
            keys: KeySpace::new("detached"),
            run_id: RunId::parse("detached").expect("plain letters are a run id"),
            incarnation: Incarnation::new(0),
            scope: MemoScope::Run,
            revision: 0,
            seal: Seal::new(),
            spawn: Spawn::inline(),
        })
    }

    /// The value stored under `key`, durable. Dropping the future has no effect.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTooLong`], or [`Error::Effects`] when the stores cannot answer or the entry is corrupt.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let mut read = self.read(key, Read::Durable).await?;
        while let Some((bytes, entry)) = read {
            match self.context.objects.get(&entry.value).await {
                Ok(value) => return Ok(Some(value.into())),
                // A rival put may have replaced the entry and deleted its object since it was read.
                Err(error @ workflow_effects::Error::Corrupt { .. }) => {
                    read = self.read(key, Read::Durable).await?;
                    if read.as_ref().is_some_and(|(now, _)| *now == bytes) {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Stores `value` under `key`, in the place of an earlier value of this attempt or of an older one. The value is
    /// durable when this returns.
    ///
    /// Dropping the future abandons the answer, never the put, which may then come after a later one of the same key.
    /// Outside a runtime, dropping it leaves the old value or the new one, whole.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTooLong`], [`Error::Late`], [`Error::Sealed`], or [`Error::Effects`] when the value is too large,
    /// the stores cannot take it, or the present entry is corrupt. After a transient error the value may have been
    /// stored.
    pub async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        check_key(key)?;
        self.check_seal(key)?;
        let answer = Arc::new(Mutex::new(None));
        let (memo, key, bytes, told) = (self.clone(), key.to_owned(), Bytes::copy_from_slice(value), answer.clone());
        let put = async move {
            let ended = memo.put_whole(&key, bytes).await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        };
        self.context.spawn.run(Box::pin(put)).await;
        let ended = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        ended.unwrap_or_else(|| Err(workflow_effects::Error::Unavailable("the put was interrupted".into()).into()))
    }

    /// The value stored under `key`; otherwise what `compute` gives, which is stored. An error of `compute` stores
    /// nothing.
    ///
    /// Values are stored as JSON. The first time too, the answer is what the stored JSON reads as, so that a step
    /// sees the same value on every attempt. Dropping the future drops `compute`; it may still store its value.
    ///
    /// The type of the error comes from `compute`. A block that does not fail says it with its value: in a step,
    /// `async { Ok::<_, StepError>(7) }`.
    ///
    /// # Errors
    ///
    /// Those of `compute`, [`Error::Encode`] and [`Error::Decode`] for a value that JSON does not hold or that is of
    /// another type, and those of [`Memo::get`] and [`Memo::put`].
    pub async fn memoized<T, E>(&self, key: &str, compute: impl Future<Output = Result<T, E>> + Send) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned + Send,
        E: From<Error>,
    {
        if let Some(stored) = self.get(key).await? {
            return Ok(codec::decode(key, &stored)?);
        }
        // Work that could not be stored is not begun.
        self.check_seal(key)?;
        let stored = codec::encode(key, &compute.await?)?;
        let value = codec::decode(key, &stored)?;
        self.put(key, &stored).await?;
        Ok(value)
    }

    /// [`Memo::memoized`] under a key that is made from the content of `input`: `content:` and the SHA-256 of its
    /// JSON. Inputs of the same JSON share an entry, whatever their types and whatever is computed: put what tells
    /// computations apart into the input.
    ///
    /// Maps in `input` must serialize in a stable order: a `BTreeMap` does, a `HashMap` does not, and gives another
    /// key each time.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] for an input that JSON does not hold, and those of [`Memo::memoized`].
    pub async fn memoized_by_content<K, T, E>(
        &self,
        input: &K,
        compute: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E>
    where
        K: Serialize + ?Sized,
        T: Serialize + DeserializeOwned + Send,
        E: From<Error>,
    {
        let key = codec::content_key(input)?;
        self.memoized(&key, compute).await
    }

    /// Puts object and entry. In flight until it returns, unless the attempt has ended before.
    async fn put_whole(&self, key: &str, bytes: Bytes) -> Result<()> {
        let MemoContext { objects, run_id, incarnation, revision, seal, .. } = &*self.context;
        let Some(_in_flight) = seal.enter() else { return Err(sealed(key)) };
        let owner = ObjectOwner::Run { run_id: run_id.clone(), incarnation: *incarnation };
        loop {
            let value = objects.put(&owner, bytes.clone()).await?;
            match self.store(key, &MemoEntry { revision: *revision, value: value.clone() }).await {
                Stored::InPlaceOf(superseded) => {
                    if let Some(superseded) = superseded {
                        objects.discard(&superseded).await;
                    }
                    return Ok(());
                }
                Stored::Overtaken => objects.discard(&value).await,
                Stored::Refused(error) => {
                    objects.discard(&value).await;
                    return Err(error);
                }
                Stored::Unknown(error) => return Err(error),
            }
        }
    }

    /// Makes `ours` the entry of `key`, unless the entry is a newer attempt's.
    async fn store(&self, key: &str, ours: &MemoEntry) -> Stored {
        let next = encode_memo_entry(ours);
        let found = match self.read_replaceable(key, ours.revision, &next).await {
            Ok(found) => found,
            Err(error) => return Stored::Refused(error),
        };
        if found.as_ref().is_some_and(|(bytes, _)| *bytes == next) {
            return Stored::InPlaceOf(None);
        }
        let (expected, superseded) = found.map(|(bytes, entry)| (bytes, entry.value)).unzip();
        let entry_key = self.entry_key(key);
        let commit =
            Commit { expect: vec![(entry_key.clone(), expected)], puts: vec![(entry_key, next)], ..Commit::default() };
        // Nothing waits between this and the moment that the port has the commit.
        if let Err(error) = self.check_seal(key) {
            return Stored::Refused(error);
        }
        match self.context.committer.commit(commit).await {
            Ok(()) => Stored::InPlaceOf(superseded),
            Err(CommitError::Conflict | CommitError::Overtaken) => Stored::Overtaken,
            Err(CommitError::Invalid(error)) => Stored::Refused(error.into()),
            Err(CommitError::Failed(error)) => Stored::Unknown(error.into()),
        }
    }

    /// The present entry, unless it is a newer attempt's. An entry that is `next` already is durable: it is not
    /// written again, because no two commits put equal bytes at a compared key.
    async fn read_replaceable(&self, key: &str, revision: u64, next: &Bytes) -> Result<Option<(Bytes, MemoEntry)>> {
        let mut found = self.read(key, Read::Latest).await?;
        if found.as_ref().is_some_and(|(bytes, _)| bytes == next) {
            found = self.read(key, Read::Durable).await?;
        }
        match found {
            Some((_, entry)) if entry.revision > revision => Err(Error::Late { key: key.to_owned() }),
            found => Ok(found),
        }
    }

    /// The entry of `key`, and its bytes.
    async fn read(&self, key: &str, read: Read) -> Result<Option<(Bytes, MemoEntry)>> {
        check_key(key)?;
        let Some(bytes) = self.context.committer.kv().get(&self.entry_key(key), read).await? else {
            return Ok(None);
        };
        let entry = decode_memo_entry(&self.context.run_id, key, &bytes)?;
        Ok(Some((bytes, entry)))
    }

    fn entry_key(&self, key: &str) -> Bytes {
        let MemoContext { keys, run_id, incarnation, scope, .. } = &*self.context;
        keys.memo(run_id, *incarnation, *scope, key)
    }

    fn check_seal(&self, key: &str) -> Result<()> {
        if self.context.seal.is_sealed() { Err(sealed(key)) } else { Ok(()) }
    }
}

fn sealed(key: &str) -> Error {
    Error::Sealed { key: key.to_owned() }
}

fn check_key(key: &str) -> Result<()> {
    if key.len() > MAX_MEMO_KEY_LEN {
        return Err(Error::KeyTooLong { len: key.len() });
    }
    Ok(())
}

/// Whose memo it is, never its values.
impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo")
            .field("run_id", &self.context.run_id)
            .field("incarnation", &self.context.incarnation)
            .field("scope", &self.context.scope)
            .field("revision", &self.context.revision)
            .field("sealed", &self.context.seal.is_sealed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

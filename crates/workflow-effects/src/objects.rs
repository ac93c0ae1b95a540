//! Values that are too large for the key-value store become objects.
//!
//! An object is written before the commit that names it, under a path of its own, and never overwritten: whoever can
//! read the commit can read the object. A durable `objects/…` row precedes the first object of a run, so that what a
//! crash leaves unnamed is found again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use workflow_core::{Incarnation, ObjectRef, RunId, SignalId, Value};

use crate::committer::{CommitError, Committer};
use crate::error::{Error, Result};
use crate::keys::KeySpace;
use crate::port::{Commit, KvStore, Read};
use crate::stored::encode_objects_row;

/// The largest inline limit: longer values are objects, whatever [`ObjectConfig::inline_limit`] says.
pub const MAX_INLINE_LIMIT: usize = 64 * 1024;

/// The limits of detached values.
const DETACHED_INLINE_LIMIT: usize = 32 * 1024;
const DETACHED_MAX_VALUE_SIZE: u64 = 64 * 1024 * 1024;

/// How often a fresh path is drawn, and a row looked for, before the store counts as unavailable.
const ATTEMPTS: usize = 4;

/// What [`ObjectValues`] is made of.
pub struct ObjectConfig {
    /// Where the `objects/…` rows are kept.
    pub kv: Arc<dyn KvStore>,
    /// Where the objects are kept.
    pub store: Arc<dyn ObjectStore>,
    /// The keys of the rows.
    pub keys: KeySpace,
    /// What the paths of new objects begin with.
    pub prefix: String,
    /// Values of at most this many bytes stay in the key-value store. At most [`MAX_INLINE_LIMIT`] counts.
    pub inline_limit: usize,
    /// Values of more bytes are refused.
    pub max_value_size: u64,
    /// Draws a number that was never drawn before, in any process: the last part of an object's path.
    pub fresh: Box<dyn Fn() -> u128 + Send + Sync>,
}

/// Keeps values: small ones as they are, large ones as objects.
///
/// A run whose values are all small costs neither a request to the object store nor a row.
pub struct ObjectValues {
    config: ObjectConfig,
    committer: Committer,
}

/// What an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectOwner {
    /// A run.
    Run {
        /// Its id.
        run_id: RunId,
        /// Which submission of it.
        incarnation: Incarnation,
    },
    /// A signal.
    Signal(SignalId),
}

impl ObjectOwner {
    /// The key of the row that tells of the owner's objects.
    fn row(&self, keys: &KeySpace) -> Bytes {
        match self {
            Self::Run { run_id, incarnation } => keys.objects(run_id, *incarnation),
            Self::Signal(id) => keys.signal_objects(*id),
        }
    }

    /// The folder of the owner's objects.
    fn folder(&self) -> String {
        match self {
            Self::Run { run_id, incarnation } => format!("{run_id}/{incarnation}"),
            // No run is called so: a run id holds no dot.
            Self::Signal(id) => format!("signals./{:032x}", id.value()),
        }
    }
}

impl fmt::Display for ObjectOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { run_id, .. } => write!(f, "run {run_id}"),
            Self::Signal(_) => f.write_str("a signal"),
        }
    }
}

impl ObjectValues {
    /// Values kept as `config` says.
    pub fn new(mut config: ObjectConfig) -> Self {
        config.inline_limit = config.inline_limit.min(MAX_INLINE_LIMIT);
        Self { committer: Committer::new(config.kv.clone()), config }
    }

    /// Values outside any runtime: rows in `kv`, objects in memory, the usual limits.
    pub fn detached(kv: Arc<dyn KvStore>) -> Self {
        let drawn = AtomicU64::new(0);
        Self::new(ObjectConfig {
            kv,
            store: Arc::new(InMemory::new()),
            keys: KeySpace::new("detached"),
            prefix: String::new(),
            inline_limit: DETACHED_INLINE_LIMIT,
            max_value_size: DETACHED_MAX_VALUE_SIZE,
            fresh: Box::new(move || u128::from(drawn.fetch_add(1, Ordering::Relaxed))),
        })
    }

    /// Makes a value of `bytes` that a commit may name: an object is durable when this returns.
    ///
    /// Whoever does not commit the value then [discards](Self::discard) it. Dropping the future may leave an object
    /// that nothing names; it goes when the run does.
    ///
    /// # Errors
    ///
    /// [`Error::ValueTooLarge`] above the limit, [`Error::Store`], [`Error::Unavailable`] and [`Error::Closed`] when
    /// the stores cannot take it.
    pub async fn put(&self, owner: &ObjectOwner, bytes: Bytes) -> Result<Value> {
        let len = bytes.len() as u64;
        if len > self.config.max_value_size {
            return Err(Error::ValueTooLarge { what: owner.to_string(), len, max: self.config.max_value_size });
        }
        if bytes.len() <= self.config.inline_limit {
            return Ok(Value::Inline(bytes));
        }
        self.ensure_row(owner).await?;
        let path = self.write(owner, bytes).await?;
        Ok(Value::Object(ObjectRef { path: path.into(), len }))
    }

    /// The bytes of `value`. Dropping the future has no effect.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the object is missing or of another length, [`Error::Store`] when the store cannot
    /// give it.
    pub async fn get(&self, value: &Value) -> Result<Bytes> {
        let object = match value {
            Value::Inline(bytes) => return Ok(bytes.clone()),
            Value::Object(object) => object,
        };
        let path = parse_path(object)?;
        let found = match self.config.store.get(&path).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Err(corrupt(object, "it is missing")),
            Err(error) => return Err(Error::Store(error)),
        };
        check_len(object, found.meta.size)?;
        let bytes = found.bytes().await.map_err(Error::Store)?;
        check_len(object, bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Deletes the object of a value that no commit names (any more). Best effort: what remains goes when the run
    /// does. An inline value costs nothing.
    pub async fn discard(&self, value: &Value) {
        let path = value.object().map(parse_path);
        if let Some(Ok(path)) = path {
            // The caller has done its work; there is nothing to do about a failure here.
            let _ = self.config.store.delete(&path).await;
        }
    }

    /// Returns once the owner's row is durable.
    async fn ensure_row(&self, owner: &ObjectOwner) -> Result<()> {
        let key = owner.row(&self.config.keys);
        for _ in 0..ATTEMPTS {
            if self.config.kv.get(&key, Read::Durable).await?.is_some() {
                return Ok(());
            }
            let commit = Commit {
                expect: vec![(key.clone(), None)],
                puts: vec![(key.clone(), encode_objects_row())],
                ..Commit::default()
            };
            match self.committer.commit(commit).await {
                Ok(()) => return Ok(()),
                // Somebody else wrote it, perhaps not durably yet.
                Err(CommitError::Conflict | CommitError::Overtaken) => {}
                Err(CommitError::Invalid(error) | CommitError::Failed(error)) => return Err(error),
            }
        }
        let problem = format!("the objects row of {owner} comes and goes");
        Err(Error::Unavailable(problem.into()))
    }

    /// Writes an object under a path that nothing has.
    async fn write(&self, owner: &ObjectOwner, bytes: Bytes) -> Result<Path> {
        let folder = owner.folder();
        let mut taken = None;
        for _ in 0..ATTEMPTS {
            let fresh = (self.config.fresh)();
            let path = Path::from(format!("{}/{folder}/{fresh:032x}", self.config.prefix));
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.config.store.put_opts(&path, bytes.clone().into(), options).await {
                Ok(_) => return Ok(path),
                // A store's own retry finds what its first try wrote: that object is abandoned.
                Err(error @ object_store::Error::AlreadyExists { .. }) => taken = Some(error),
                Err(error) => return Err(Error::Store(error)),
            }
        }
        Err(taken.map_or_else(|| Error::Unavailable("no path was drawn".into()), Error::Store))
    }
}

fn parse_path(object: &ObjectRef) -> Result<Path> {
    Path::parse(&object.path).map_err(|_| corrupt(object, "its path is none"))
}

fn check_len(object: &ObjectRef, found: u64) -> Result<()> {
    if found == object.len {
        return Ok(());
    }
    Err(corrupt(object, &format!("it has {found} bytes and should have {}", object.len)))
}

fn corrupt(object: &ObjectRef, detail: &str) -> Error {
    Error::corrupt(format!("object {}", object.path), detail)
}

/// The limits; stores say nothing of themselves.
impl fmt::Debug for ObjectValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectValues")
            .field("prefix", &self.config.prefix)
            .field("inline_limit", &self.config.inline_limit)
            .field("max_value_size", &self.config.max_value_size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

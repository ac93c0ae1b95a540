//! Values that are too large for the key-value store become objects.
//!
//! An object is written before the commit that names it, under a path of its own, and never overwritten: whoever can
//! read the commit can read the object. A durable `objects/…` row precedes the first object of a run or signal, so that
//! what a crash leaves unnamed is found again.

mod delete;
mod owner;
mod rows;

mod check;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use workflow_core::{ObjectRef, Timestamp, Value};

pub use self::owner::ObjectOwner;
pub use self::rows::Naming;
use crate::committer::Committer;
use crate::error::{Error, Result};
use crate::keys::KeySpace;
use crate::port::KvStore;

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
    /// What the paths of new objects begin with, but for an owner that has objects elsewhere already.
    pub prefix: String,
    /// Values of at most this many bytes stay in the key-value store. At most [`MAX_INLINE_LIMIT`] counts.
    pub inline_limit: usize,
    /// Values of more bytes are refused.
    pub max_value_size: u64,
    /// Draws a number that was never drawn before, in any process: the last part of an object's path.
    pub fresh: Box<dyn Fn() -> u128 + Send + Sync>,
    /// Tells the time, for the rows.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// Keeps values: small ones as they are, large ones as objects.
///
/// A run whose values are all small costs neither a request to the object store nor a row.
pub struct ObjectValues {
    config: ObjectConfig,
    committer: Committer,
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
            now: Box::new(|| Timestamp::from_millis(0)),
        })
    }

    /// Makes a value of `bytes` that a commit may name: an object is durable when this returns.
    ///
    /// The first commit that names an object of its owner needs the [`Naming`] that [`name_input`](Self::name_input)
    /// or [`name_signal`](Self::name_signal) gives. Whoever does not commit the value [discards](Self::discard) it.
    /// Dropping the future may leave an object that nothing names; the owner's row tells of it.
    ///
    /// # Errors
    ///
    /// [`Error::ValueTooLarge`] above the limit, [`Error::Store`], [`Error::Unavailable`] and [`Error::Closed`] when
    /// the stores cannot take it; [`Error::Unavailable`] also while the owner's objects are being removed.
    pub async fn put(&self, owner: &ObjectOwner, bytes: Bytes) -> Result<Value> {
        let len = bytes.len() as u64;
        if len > self.config.max_value_size {
            return Err(Error::ValueTooLarge { what: owner.to_string(), len, max: self.config.max_value_size });
        }
        if bytes.len() <= self.config.inline_limit {
            return Ok(Value::Inline(bytes));
        }
        let prefix = self.ensure_row(owner).await?;
        let path = self.write(&owner.folder(&prefix), bytes).await?;
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

    /// Writes an object into `folder` under a name that nothing has.
    async fn write(&self, folder: &Path, bytes: Bytes) -> Result<Path> {
        let mut taken = None;
        for _ in 0..ATTEMPTS {
            let fresh = (self.config.fresh)();
            let path = folder.clone().join(format!("{fresh:032x}"));
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

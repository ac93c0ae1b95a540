//! Deleting objects: one by one as they are let go, and all that an owner has.

use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStoreExt};
use workflow_core::Value;

use super::owner::signal_at;
use super::{ObjectOwner, ObjectValues, parse_path};
use crate::error::{Error, Result};

impl ObjectValues {
    /// Deletes the object of a value that no commit names (any more). Best effort. What remains of a run's objects goes
    /// when the run does. A signal has one payload: with its object go all that its folder holds, and then its row; a
    /// row that stays tells what is left. An inline value costs nothing.
    pub async fn discard(&self, value: &Value) {
        let path = value.object().map(parse_path);
        if let Some(Ok(path)) = path {
            // The caller has done its work; there is nothing to do about a failure here.
            let _ = self.discard_at(&path).await;
        }
    }

    /// Deletes every object of `owner` under `prefix`, the one that its row names, and nothing else; the row stays.
    /// Nobody may write objects of the owner meanwhile. May be repeated.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when one of them may be left.
    pub async fn delete_all(&self, owner: &ObjectOwner, prefix: &str) -> Result<()> {
        self.empty(&owner.folder(prefix)).await
    }

    async fn discard_at(&self, path: &Path) -> Result<()> {
        match self.config.store.delete(path).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(Error::Store(error)),
        }
        if let Some((id, folder)) = signal_at(path) {
            // A write that was tried again may have left another object.
            self.empty(&folder).await?;
            self.delete_row(&ObjectOwner::Signal(id)).await;
        }
        Ok(())
    }

    async fn empty(&self, folder: &Path) -> Result<()> {
        let store = &self.config.store;
        let listed: Vec<_> = store.list(Some(folder)).try_collect().await.map_err(Error::Store)?;
        let inside = listed.into_iter().map(|object| object.location).filter(|path| path.prefix_matches(folder));
        let paths = stream::iter(inside.map(Ok).collect::<Vec<_>>());
        let mut deletions = store.delete_stream(paths.boxed());
        let mut failed = None;
        while let Some(deleted) = deletions.next().await {
            match deleted {
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), |error| Err(Error::Store(error)))
    }
}

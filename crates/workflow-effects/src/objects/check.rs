//! Asking whether an object is there.

use object_store::ObjectStoreExt;
use workflow_core::Value;

use super::{ObjectValues, check_len, corrupt, parse_path};
use crate::error::{Error, Result};

impl ObjectValues {
    /// Whether [`get`](Self::get) would give the bytes of `value`, as far as that is told without reading them: one
    /// request for an object, none for an inline value. Dropping the future has no effect.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn check(&self, value: &Value) -> Result<()> {
        let Some(object) = value.object() else { return Ok(()) };
        match self.config.store.head(&parse_path(object)?).await {
            Ok(found) => check_len(object, found.size),
            Err(object_store::Error::NotFound { .. }) => Err(corrupt(object, "it is missing")),
            Err(error) => Err(Error::Store(error)),
        }
    }
}

//! The rows that precede objects, and what the commit that is the first to name an object has to do about them.
//!
//! Whoever removes objects that nothing names condemns their row first. The commit that is the first to name one
//! expects the row as it was written: of the two, one is refused.

use bytes::Bytes;
use workflow_core::{Incarnation, RunId, SignalId, Value};

use super::{ATTEMPTS, ObjectOwner, ObjectValues};
use crate::committer::CommitError;
use crate::error::{Error, Result};
use crate::port::{Commit, Read};
use crate::stored::{
    ObjectsRow, ObjectsState, SignalObjectsRow, SignalObjectsState, decode_objects_row, decode_signal_objects_row,
    encode_objects_row, encode_signal_objects_row,
};

/// What the commit that is the first to name an object changes besides: the row of the owner's objects, which it
/// expects as it was written before them. Nothing where the value is no object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Naming(Option<Change>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    key: Bytes,
    expected: Bytes,
    next: Bytes,
}

impl Naming {
    /// Adds the change to `commit`.
    pub fn add_to(self, commit: &mut Commit) {
        if let Some(Change { key, expected, next }) = self.0 {
            commit.expect.push((key.clone(), Some(expected)));
            commit.puts.push((key, next));
        }
    }
}

/// What a row says to whoever is about to write an object.
struct Told {
    prefix: String,
    is_condemned: bool,
}

impl ObjectValues {
    /// What the submission of a run changes besides, whose input is `input`. No other commit of a run needs this: the
    /// record names the run from then on.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] when the object has been given up meanwhile, or a submission has named it already; those
    /// of [`KvStore::get`](crate::KvStore::get); [`Error::Corrupt`].
    pub async fn name_input(&self, run_id: &RunId, incarnation: Incarnation, input: &Value) -> Result<Naming> {
        let owner = ObjectOwner::Run { run_id: run_id.clone(), incarnation };
        let Some((key, expected)) = self.first_row(&owner, input).await? else { return Ok(Naming::default()) };
        let row = decode_objects_row(run_id, &expected)?;
        if row.state != ObjectsState::Fresh {
            return Err(not_fresh(&owner));
        }
        let next = encode_objects_row(&ObjectsRow { state: ObjectsState::Named, ..row });
        Ok(Naming(Some(Change { key, expected, next })))
    }

    /// What the commit changes besides that buffers a signal or lets it reach a run, as `state` says.
    ///
    /// # Errors
    ///
    /// As [`ObjectValues::name_input`].
    pub async fn name_signal(&self, id: SignalId, payload: &Value, state: SignalObjectsState) -> Result<Naming> {
        let owner = ObjectOwner::Signal(id);
        let Some((key, expected)) = self.first_row(&owner, payload).await? else { return Ok(Naming::default()) };
        let row = decode_signal_objects_row(&expected)?;
        if row.state != SignalObjectsState::Fresh {
            return Err(not_fresh(&owner));
        }
        let next = encode_signal_objects_row(&SignalObjectsRow { state, ..row });
        Ok(Naming(Some(Change { key, expected, next })))
    }

    /// The row of `owner`, for a commit on it; nothing when `value` is no object.
    async fn first_row(&self, owner: &ObjectOwner, value: &Value) -> Result<Option<(Bytes, Bytes)>> {
        if value.object().is_none() {
            return Ok(None);
        }
        let key = owner.row(&self.config.keys);
        let row = self.config.kv.get(&key, Read::Latest).await?.ok_or_else(|| not_fresh(owner))?;
        Ok(Some((key, row)))
    }

    /// Returns once the owner's row is durable, with the prefix of the paths of its objects: the row's, so that all of
    /// them are found by it, whatever the prefix is by now.
    pub(super) async fn ensure_row(&self, owner: &ObjectOwner) -> Result<String> {
        let key = owner.row(&self.config.keys);
        for _ in 0..ATTEMPTS {
            if let Some(row) = self.config.kv.get(&key, Read::Durable).await? {
                let Told { prefix, is_condemned } = told(owner, &row)?;
                return if is_condemned { Err(condemned(owner)) } else { Ok(prefix) };
            }
            let commit = Commit {
                expect: vec![(key.clone(), None)],
                puts: vec![(key.clone(), self.fresh_row(owner))],
                ..Commit::default()
            };
            match self.committer.commit(commit).await {
                Ok(()) => return Ok(self.config.prefix.clone()),
                // Somebody else wrote it, perhaps not durably yet.
                Err(CommitError::Conflict | CommitError::Overtaken) => {}
                Err(CommitError::Invalid(error) | CommitError::Failed(error)) => return Err(error),
            }
        }
        let problem = format!("the objects row of {owner} comes and goes");
        Err(Error::Unavailable(problem.into()))
    }

    /// The row that precedes the first object.
    fn fresh_row(&self, owner: &ObjectOwner) -> Bytes {
        let (since, prefix) = ((self.config.now)(), self.config.prefix.clone());
        match owner {
            ObjectOwner::Run { .. } => encode_objects_row(&ObjectsRow { since, prefix, state: ObjectsState::Fresh }),
            ObjectOwner::Signal(_) => {
                encode_signal_objects_row(&SignalObjectsRow { since, prefix, state: SignalObjectsState::Fresh })
            }
        }
    }

    /// Deletes the row of `owner`, which has no object any more. One that stays is found like one that a crash leaves.
    pub(super) async fn delete_row(&self, owner: &ObjectOwner) {
        let key = owner.row(&self.config.keys);
        if let Ok(Some(row)) = self.config.kv.get(&key, Read::Latest).await {
            let commit = Commit { expect: vec![(key.clone(), Some(row))], deletes: vec![key], ..Commit::default() };
            let _ = self.committer.commit(commit).await;
        }
    }
}

fn told(owner: &ObjectOwner, row: &[u8]) -> Result<Told> {
    Ok(match owner {
        ObjectOwner::Run { run_id, .. } => {
            let ObjectsRow { prefix, state, .. } = decode_objects_row(run_id, row)?;
            Told { prefix, is_condemned: state == ObjectsState::Condemned }
        }
        ObjectOwner::Signal(_) => {
            let SignalObjectsRow { prefix, state, .. } = decode_signal_objects_row(row)?;
            Told { prefix, is_condemned: state == SignalObjectsState::Condemned }
        }
    })
}

/// Nobody writes objects while they are removed.
fn condemned(owner: &ObjectOwner) -> Error {
    Error::Unavailable(format!("the objects of {owner} are being removed").into())
}

fn not_fresh(owner: &ObjectOwner) -> Error {
    Error::Unavailable(format!("the object of {owner} was given up, or is named already").into())
}

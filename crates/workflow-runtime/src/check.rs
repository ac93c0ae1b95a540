//! Checking a whole store: whether what must hold of it holds, as far as its rows, its jobs and its objects tell.

mod found;
mod objects;
mod owned;
mod places;
mod reading;
mod run;
mod signals;
mod slots;

use std::fmt;

use bytes::Bytes;
use workflow_effects::key_text;

pub(crate) use self::reading::Store;
use crate::Result;

/// Something in a store that must not be there, or is not there and must be; see
/// [`WorkflowRuntime::check`](crate::WorkflowRuntime::check). Its text takes one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Violation {
    /// What is broken by it.
    pub kind: ViolationKind,
    /// The run that it is of, if it is of one.
    pub run_id: Option<String>,
    /// The keys that it shows at. Of many, the first.
    pub keys: Vec<Bytes>,
    /// What is wrong.
    pub detail: String,
}

/// What is broken in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// Something is gone that a call has acknowledged.
    Lost,
    /// The hook is owed the end of a run, and nobody will call it.
    Untold,
    /// A run goes on, and nothing will make it.
    Stuck,
    /// Something is left over that nobody will remove.
    Orphan,
    /// Something does not read.
    Corrupt,
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "lost",
            Self::Untold => "untold",
            Self::Stuck => "stuck",
            Self::Orphan => "orphan",
            Self::Corrupt => "corrupt",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind)?;
        if let Some(run_id) = &self.run_id {
            write!(f, "run `{run_id}`: ")?;
        }
        f.write_str(&self.detail)?;
        for (key, before) in self.keys.iter().zip([" at "].into_iter().chain(std::iter::repeat(", "))) {
            write!(f, "{before}{}", key_text(key))?;
        }
        Ok(())
    }
}

/// What two readings of `store` find alike. What a reading finds wrong only because others change the store meanwhile,
/// the other does not find with the same numbers: details name what tells it from its like.
pub(crate) async fn check(store: &Store) -> Result<Vec<Violation>> {
    let first = reading::read(store).await?;
    if first.is_empty() {
        return Ok(Vec::new());
    }
    let second = reading::read(store).await?;
    Ok(first.intersection(&second).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_told_in_one_line() {
        let (kind, detail) = (ViolationKind::Stuck, "its doorbell is gone".to_owned());
        let keys = vec![Bytes::from_static(b"workflow/q/run/r"), Bytes::from_static(b"a\nb")];
        let violation = Violation { kind, run_id: Some("r".to_owned()), keys, detail };
        let expected = "stuck: run `r`: its doorbell is gone at \"workflow/q/run/r\", \"a\\nb\"";
        assert_eq!(violation.to_string(), expected);
        let violation = Violation { run_id: None, keys: Vec::new(), ..violation };
        assert_eq!(violation.to_string(), "stuck: its doorbell is gone");
    }
}

//! A submission: what a user fills in, and the checks it passes before anything is written.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use workflow_effects::{EffectsHandle, StagedEffects};

use crate::{Error, Result, RunOutcome};

/// At most so many headers.
pub const MAX_HEADERS: usize = 64;
/// The longest header name in bytes.
pub const MAX_HEADER_NAME_LEN: usize = 128;
/// The longest header value in bytes.
pub const MAX_HEADER_VALUE_LEN: usize = 8 * 1024;
/// All header names and values together, in bytes.
pub const MAX_HEADERS_LEN: usize = 32 * 1024;
/// Header names that begin so are reserved.
pub const RESERVED_HEADER_PREFIX: &str = "workflow.";

/// What to run. Fields may be added: write `..Default::default()`.
#[derive(Clone, Default)]
pub struct RunSpec {
    /// The id; a fresh ULID when absent. One run per id: the same id with the same input is answered as a duplicate.
    pub run_id: Option<String>,
    /// The payload of the first step.
    pub input: Vec<u8>,
    /// Handed to every step and to the hook.
    pub headers: HashMap<String, String>,
    /// Lower runs first; 1,000 when absent.
    pub priority: Option<u32>,
    /// How often each step may be attempted; the runtime's setting when absent.
    pub max_attempts_per_step: Option<u32>,
    /// The first step starts at or after this time.
    pub run_at: Option<SystemTime>,
    /// Application KV that is written in the transaction that makes the run, and dropped on a duplicate. Same limits
    /// as a step's effects.
    pub kv_writes: HashMap<Vec<u8>, Vec<u8>>,
}

/// Lengths and header names, never the user's bytes.
impl fmt::Debug for RunSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut header_names: Vec<_> = self.headers.keys().collect();
        header_names.sort();
        f.debug_struct("RunSpec")
            .field("run_id", &self.run_id)
            .field("input_len", &self.input.len())
            .field("header_names", &header_names)
            .field("priority", &self.priority)
            .field("max_attempts_per_step", &self.max_attempts_per_step)
            .field("run_at", &self.run_at)
            .field("kv_writes", &self.kv_writes.len())
            .finish()
    }
}

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubmitOutcome {
    /// The run's id.
    pub run_id: String,
    /// `false` for a duplicate.
    pub newly_submitted: bool,
    /// The run's current queue job, or the one that ended it.
    pub job_id: String,
    /// How the run ended, if it has.
    pub end: Option<RunOutcome>,
}

/// The KV writes of a submission, checked.
pub(crate) fn checked_kv_writes(writes: HashMap<Vec<u8>, Vec<u8>>) -> Result<StagedEffects> {
    let (staged, seal) = EffectsHandle::sealable();
    for (key, value) in writes {
        staged.put(key, value)?;
    }
    Ok(seal.take())
}

/// What tells a header in the index of runs by header: NUL, which no name holds, parts its name and its value.
pub(crate) fn header_hash(name: &str, value: &str) -> [u8; 32] {
    Sha256::new().chain_update(name).chain_update([0]).chain_update(value).finalize().into()
}

/// The headers of a submission, checked and in order.
pub(crate) fn checked_headers(headers: HashMap<String, String>) -> Result<BTreeMap<String, String>> {
    let headers: BTreeMap<_, _> = headers.into_iter().collect();
    for (name, value) in &headers {
        let problem = header_problem(name, value);
        if let Some(problem) = problem {
            return Err(invalid_header(name, problem));
        }
    }
    let total: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let last = headers.keys().next_back().map_or("", String::as_str);
    if headers.len() > MAX_HEADERS {
        return Err(invalid_header(last, format!("a run has at most {MAX_HEADERS} headers")));
    }
    if total > MAX_HEADERS_LEN {
        return Err(invalid_header(last, format!("all headers together have at most {MAX_HEADERS_LEN} bytes")));
    }
    Ok(headers)
}

fn header_problem(name: &str, value: &str) -> Option<String> {
    if name.is_empty() || name.len() > MAX_HEADER_NAME_LEN {
        return Some(format!("a name has 1 to {MAX_HEADER_NAME_LEN} bytes"));
    }
    if value.len() > MAX_HEADER_VALUE_LEN {
        return Some(format!("a value has at most {MAX_HEADER_VALUE_LEN} bytes"));
    }
    if name.contains('\0') || value.contains('\0') {
        return Some("NUL is not allowed".to_owned());
    }
    if name.starts_with(RESERVED_HEADER_PREFIX) {
        return Some(format!("names beginning with `{RESERVED_HEADER_PREFIX}` are reserved"));
    }
    None
}

fn invalid_header(name: &str, problem: String) -> Error {
    let name: String = name.chars().take(MAX_HEADER_NAME_LEN).collect();
    Error::InvalidHeader { name: name.escape_debug().to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: impl IntoIterator<Item = (String, String)>, accepted: bool) {
        let headers: HashMap<_, _> = headers.into_iter().collect();
        let answer = checked_headers(headers);
        assert_eq!(answer.is_ok(), accepted, "{answer:?}");
        if let Err(error) = answer {
            assert!(matches!(error, Error::InvalidHeader { .. }) && error.is_permanent());
        }
    }

    fn many(count: usize, value_len: usize) -> impl Iterator<Item = (String, String)> {
        (0..count).map(move |i| (format!("h{i:03}"), "v".repeat(value_len)))
    }

    #[test]
    fn headers_have_limits() {
        check(many(64, 1), true);
        check(many(65, 1), false);
        check([("n".repeat(128), String::new())], true);
        check([("n".repeat(129), String::new())], false);
        check([(String::new(), String::new())], false);
        check([("n".to_owned(), "v".repeat(8 * 1024))], true);
        check([("n".to_owned(), "v".repeat(8 * 1024 + 1))], false);
        check(many(4, 8 * 1024 - 4), true);
        check(many(4, 8 * 1024 - 3), false);
        check([("a\0b".to_owned(), String::new())], false);
        check([("a".to_owned(), "\0".to_owned())], false);
        check([("workflow.x".to_owned(), String::new())], false);
        check([("workflow".to_owned(), String::new())], true);
    }

    #[test]
    fn kv_writes_have_the_limits_of_effects() {
        let reserved = HashMap::from([(b"workflow/x".to_vec(), Vec::new())]);
        assert!(checked_kv_writes(reserved).is_err());
        let large = HashMap::from([(b"k".to_vec(), vec![0; 256 * 1024 + 1])]);
        assert!(checked_kv_writes(large).is_err());
    }
}

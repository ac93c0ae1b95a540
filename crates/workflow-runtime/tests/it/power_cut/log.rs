//! What the processes of a case were told, in the order in which they were told it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use workflow_runtime::RunOutcome;

/// One thing that somebody outside the runtime has seen, so that no crash may undo it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    /// A process started: of the earlier ones nothing is left but the store.
    Started,
    /// A submission was answered.
    Submitted { run: &'static str, newly: bool },
    /// A submission with another input was refused.
    Mismatch { run: &'static str },
    /// The runner was called.
    Step { run: String, step: u32 },
    /// A memo was stored or read.
    Memo { key: String, value: String },
    /// Application data was read.
    Kv { key: String, value: Option<String> },
    /// Somebody who waited was told the end.
    Ended(RunOutcome),
    /// The hook was told the end.
    Hook(RunOutcome),
}

/// The log of a case. It outlives the processes that write it.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Told>>>);

impl Log {
    pub(super) fn process_starts(&self) {
        self.tell(Told::Started);
    }

    pub(super) fn tell(&self, told: Told) {
        self.0.lock().unwrap().push(told);
    }

    pub(super) fn told(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for told in self.told() {
            let line: String = format!("{told:?}").chars().take(200).collect();
            writeln!(text, "  {line}").unwrap();
        }
        text
    }
}

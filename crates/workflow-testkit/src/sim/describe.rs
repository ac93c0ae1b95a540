//! Commits in words, as far as they say something of a run or of the application.

use std::fmt;

use workflow_core::{Phase, Run, RunId, Status};
use workflow_effects::{KeySpace, MemoScope, OwnedRow, StoredKey, decode_run, is_reserved};
use workflow_runtime::port::Commit;

use super::Sim;
use super::log::Event;

/// The most keys of the application that are told of one commit.
const MAX_KEYS: usize = 3;

/// What a commit says, once it is applied.
#[derive(Clone, Debug)]
pub(super) struct Said {
    run_id: Option<String>,
    text: String,
}

impl Said {
    pub(super) fn committed(self) -> Event {
        Event::Committed(self.run_id, self.text)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What each of `commits` says.
pub(super) fn commit_events(sim: &Sim, commits: &[Commit]) -> Vec<Vec<Said>> {
    let spaces: Vec<KeySpace> = sim.queue_names().iter().map(|name| KeySpace::new(name)).collect();
    commits.iter().map(|commit| said_by(&spaces, commit)).collect()
}

fn said_by(spaces: &[KeySpace], commit: &Commit) -> Vec<Said> {
    let mut said = Vec::new();
    for (key, value) in &commit.puts {
        if let Some((run_id, run)) = spaces.iter().find_map(|keys| record(keys, key, value)) {
            said.push(Said { text: format!("{run_id} {}", run_text(&run)), run_id: Some(run_id.to_string()) });
        } else if let Some((run_id, memo)) = spaces.iter().find_map(|keys| memo(keys, key)) {
            said.push(Said { text: format!("{run_id} memo {memo}"), run_id: Some(run_id.to_string()) });
        }
    }
    let application =
        commit.puts.iter().map(|(key, _)| ("put", key)).chain(commit.deletes.iter().map(|key| ("delete", key)));
    let mut keys: Vec<String> = application
        .filter(|(_, key)| !is_reserved(key))
        .map(|(verb, key)| format!("{verb} {}", String::from_utf8_lossy(key).escape_debug()))
        .collect();
    if keys.len() > MAX_KEYS {
        keys.truncate(MAX_KEYS);
        keys.push("…".to_owned());
    }
    match (said.first_mut(), keys.is_empty()) {
        (_, true) => {}
        (Some(first), false) => first.text = format!("{}, {}", first.text, keys.join(", ")),
        (None, false) => said.push(Said { text: keys.join(", "), run_id: None }),
    }
    said
}

fn record(keys: &KeySpace, key: &[u8], value: &[u8]) -> Option<(RunId, Run)> {
    let run_id = keys.parse_run(key)?;
    let run = decode_run(&run_id, Some(value)).ok()?;
    Some((run_id, run))
}

fn memo(keys: &KeySpace, key: &[u8]) -> Option<(RunId, String)> {
    let Some(StoredKey::Owned(run_id, _, OwnedRow::Memo(scope, memo))) = keys.parse(key) else { return None };
    let scope = match scope {
        MemoScope::Run => "of the run ".to_owned(),
        MemoScope::Step(_) => String::new(),
    };
    Some((run_id, format!("{scope}{memo:?}")))
}

fn run_text(run: &Run) -> String {
    let run = match run {
        Run::Absent => return "is gone".to_owned(),
        Run::Ended(run) => {
            let status = match run.status {
                Status::Succeeded => "succeeded",
                Status::Failed => "failed",
                Status::Cancelled => "cancelled",
            };
            let why = run.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            return format!("ends, {status}{why}");
        }
        Run::Active(run) => run,
    };
    let step = run.step;
    let paused = if run.paused { ", paused" } else { "" };
    let cancelled = if run.cancel.is_some() { ", to be cancelled" } else { "" };
    let used = match run.attempts.used {
        0 => String::new(),
        used => format!(", {used} attempts used"),
    };
    let phase = match &run.phase {
        Phase::Ready => format!("goes on with step {step}"),
        Phase::BackingOff { .. } => format!("tries step {step} again later"),
        Phase::Delayed { .. } => format!("goes on with step {step} later"),
        Phase::Waiting { keys, .. } => {
            let keys: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
            format!("waits for {} before step {step}", keys.join(" or "))
        }
    };
    format!("{phase}{used}{paused}{cancelled}")
}

/// A key as people read it: of the runtime's own, the run and what of it.
pub(super) fn key_text(sim: &Sim, key: &[u8]) -> String {
    for name in sim.queue_names() {
        let keys = KeySpace::new(&name);
        if let Some(run_id) = keys.parse_run(key) {
            return format!("the record of {run_id}");
        }
        if let Some((run_id, memo)) = memo(&keys, key) {
            return format!("{run_id} memo {memo}");
        }
        if let Some((run_id, _)) = keys.parse_owned(key) {
            return format!("a row of {run_id}");
        }
    }
    if is_reserved(key) { "a row".to_owned() } else { String::from_utf8_lossy(key).escape_debug().to_string() }
}

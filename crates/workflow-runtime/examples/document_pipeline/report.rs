//! What an ingest or a forget tells while it works, and the totals at its end: lines, a bar, or JSON.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;

use crate::bar::Bar;
use crate::state::Ending;

/// What became of a job.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) path: String,
    /// Whether an earlier process had begun it.
    pub(crate) resumed: bool,
    /// None where there was nothing to do.
    pub(crate) ending: Option<Ending>,
}

/// How and how much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) json: bool,
    /// Whether every step, and every file that needed none, has a line of its own.
    pub(crate) verbose: bool,
}

/// Tells what happens, and counts it. Shared by all steps.
pub(crate) struct Report {
    style: Style,
    here: PathBuf,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    totals: Totals,
    steps: u64,
    /// On a terminal only.
    bar: Option<Bar>,
}

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    files: u64,
    indexed: u64,
    unchanged: u64,
    skipped: u64,
    forgotten: u64,
    failed: u64,
    resumed: u64,
    words: u64,
    parts_computed: u64,
    parts_reused: u64,
}

/// One line of progress.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Step { step: u32, stage: &'a str, path: &'a str },
    Reused { path: &'a str },
    Indexed { path: &'a str, parts: usize, words: u64, links: u64, resumed: bool },
    Unchanged { path: &'a str },
    Skipped { path: &'a str, reason: &'a str },
    Forgotten { path: &'a str },
    Failed { path: &'a str, reason: &'a str },
    Totals { totals: &'a Totals, left: usize, seconds: f64 },
}

impl Report {
    pub(crate) fn new(style: Style) -> Self {
        let bar = (!style.json && io::stdout().is_terminal()).then(Bar::default);
        let state = Mutex::new(State { totals: Totals::default(), steps: 0, bar });
        Self { style, here: current_directory(), started: Instant::now(), state }
    }

    /// So many jobs are to be done.
    pub(crate) fn begin(&self, jobs: usize) {
        self.update(|state| {
            state.totals.files = jobs as u64;
            None
        });
    }

    /// A step has done its work; its outcome commits next.
    pub(crate) fn step_done(&self, step: u32, stage: &str, path: &str) {
        self.update(|state| {
            state.steps += 1;
            self.style.verbose.then_some(Event::Step { step, stage, path })
        });
    }

    /// Steps that have done their work so far.
    pub(crate) fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// The findings of a part were computed, or an attempt that did not reach its end had left them in the memo.
    pub(crate) fn part_done(&self, path: &str, computed: bool) {
        self.update(|state| {
            let totals = &mut state.totals;
            *(if computed { &mut totals.parts_computed } else { &mut totals.parts_reused }) += 1;
            (!computed && self.is_plain(state)).then_some(Event::Reused { path })
        });
    }

    /// A path could not even be tried.
    pub(crate) fn failed(&self, path: &str, reason: &str) {
        let ending = Some(Ending::Failed { reason: reason.to_owned() });
        self.update(|state| {
            state.totals.files += 1;
            None
        });
        self.job_done(Change { path: path.to_owned(), resumed: false, ending });
    }

    pub(crate) fn job_done(&self, change: Change) {
        let Change { path, resumed, ending } = &change;
        self.update(|state| {
            let plain = self.is_plain(state);
            let totals = &mut state.totals;
            totals.resumed += u64::from(*resumed);
            match ending {
                None => {
                    totals.unchanged += 1;
                    self.style.verbose.then_some(Event::Unchanged { path })
                }
                Some(Ending::Indexed { parts, words, links }) => {
                    totals.indexed += 1;
                    totals.words += words;
                    let (parts, words, links, resumed) = (*parts, *words, *links, *resumed);
                    plain.then_some(Event::Indexed { path, parts, words, links, resumed })
                }
                Some(Ending::Skipped { reason }) => {
                    totals.skipped += 1;
                    plain.then_some(Event::Skipped { path, reason })
                }
                Some(Ending::Forgotten) => {
                    totals.forgotten += 1;
                    plain.then_some(Event::Forgotten { path })
                }
                Some(Ending::Failed { reason }) => {
                    totals.failed += 1;
                    Some(Event::Failed { path, reason })
                }
            }
        });
    }

    pub(crate) fn failures(&self) -> u64 {
        self.lock().totals.failed
    }

    /// Prints the totals; `left` jobs were not done.
    pub(crate) fn end(&self, left: usize) {
        self.update(|state| {
            state.bar = None;
            None
        });
        let totals = self.lock().totals.clone();
        let seconds = self.started.elapsed().as_secs_f64();
        self.update(|_| Some(Event::Totals { totals: &totals, left, seconds }));
    }

    /// A line in place of the bar, for people only.
    pub(crate) fn note(&self, line: &str) {
        let mut state = self.lock();
        if let Some(bar) = &mut state.bar {
            bar.clear();
        }
        eprintln!("{line}");
    }

    /// Whether every file has a line of its own: where no bar tells how far the work is.
    fn is_plain(&self, state: &State) -> bool {
        state.bar.is_none() || self.style.verbose
    }

    fn update<'a>(&self, change: impl FnOnce(&mut State) -> Option<Event<'a>>) {
        let mut state = self.lock();
        if let Some(event) = change(&mut state) {
            if let Some(bar) = &mut state.bar {
                bar.clear();
            }
            say(&self.text(&event));
        }
        let State { totals, bar, .. } = &mut *state;
        if let Some(bar) = bar {
            bar.draw(totals.done(), totals.files, totals.failed);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn text(&self, event: &Event<'_>) -> String {
        if self.style.json {
            return serde_json::to_string(event).unwrap_or_default();
        }
        let short = |path| shown(&self.here, path);
        match event {
            Event::Step { step, stage, path } => format!("step {step} {stage} {}", short(path)),
            Event::Reused { path } => format!("reused a part of {}", short(path)),
            Event::Indexed { path, parts, words, links, resumed } => {
                let how = if *resumed { "resumed" } else { "done" };
                format!("{how} {}: {parts} parts, {words} words, {links} links", short(path))
            }
            Event::Unchanged { path } => format!("unchanged {}", short(path)),
            Event::Skipped { path, reason } => format!("skipped {}: {reason}", short(path)),
            Event::Forgotten { path } => format!("forgotten {}", short(path)),
            Event::Failed { path, reason } => format!("failed {}: {reason}", short(path)),
            Event::Totals { totals, left, seconds } => totals.table(*left, *seconds),
        }
    }
}

impl Totals {
    fn done(&self) -> u64 {
        self.indexed + self.unchanged + self.skipped + self.forgotten + self.failed
    }

    fn table(&self, left: usize, seconds: f64) -> String {
        let lines = [
            ("files", self.files),
            ("  indexed", self.indexed),
            ("  unchanged", self.unchanged),
            ("  skipped", self.skipped),
            ("  forgotten", self.forgotten),
            ("  failed", self.failed),
            ("  left", left as u64),
            ("runs resumed", self.resumed),
            ("words", self.words),
            ("parts computed", self.parts_computed),
            ("parts reused", self.parts_reused),
        ];
        let mut table: Vec<_> = lines.iter().map(|(name, value)| format!("{name:<16}{value:>10}")).collect();
        table.push(format!("{:<16}{seconds:>10.1}", "seconds"));
        table.join("\n")
    }
}

/// Prints one line and flushes it: who reads along, or kills the process, sees it at once.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    // A reader that has gone away is no reason to stop the work.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The canonical current directory, against which paths are shown.
pub(crate) fn current_directory() -> PathBuf {
    std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default()
}

/// `path` as seen from `here` when it lies below, and in full otherwise.
pub(crate) fn shown<'a>(here: &Path, path: &'a str) -> &'a str {
    Path::new(path).strip_prefix(here).ok().and_then(Path::to_str).filter(|below| !below.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::shown;

    #[test]
    fn a_path_is_shown_as_seen_from_here() {
        let here = Path::new("/home/me");
        assert_eq!(shown(here, "/home/me/src/lib.rs"), "src/lib.rs");
        assert_eq!(shown(here, "/home/melody/a.txt"), "/home/melody/a.txt");
        assert_eq!(shown(here, "/home/me"), "/home/me");
    }
}

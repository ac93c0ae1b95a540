//! What an ingest or a forget tells while it works: lines, a bar, or JSON, and the totals at its end.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;

use crate::bar::Bar;
use crate::print::{current_directory, plain, say, shown};
use crate::state::Ending;
use crate::totals::{Change, Totals};
use crate::work::Job;

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
    Failed { path: &'a str, reason: &'a str, earlier: bool },
    Totals { totals: &'a Totals, left: u64, seconds: f64 },
}

impl Report {
    pub(crate) fn new(style: Style) -> Self {
        let bar = (!style.json && io::stdout().is_terminal()).then(Bar::default);
        let state = Mutex::new(State { totals: Totals::default(), steps: 0, bar });
        Self { style, here: current_directory(), started: Instant::now(), state }
    }

    /// These jobs are to be done.
    pub(crate) fn begin(&self, jobs: &[Job]) {
        self.update(|state| {
            state.totals.add_jobs(jobs);
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
            state.totals.count_part(computed);
            (!computed && self.is_plain(state)).then_some(Event::Reused { path })
        });
    }

    /// A path could not even be tried.
    pub(crate) fn failed(&self, path: &str, reason: &str) {
        self.update(|state| {
            state.totals.add_failure();
            Some(Event::Failed { path, reason, earlier: false })
        });
    }

    pub(crate) fn job_done(&self, change: &Change) {
        self.update(|state| {
            state.totals.count(change);
            let Change { path, is_earlier, resumed, ending } = change;
            let (is_told, event) = match ending {
                None => (self.style.verbose, Event::Unchanged { path }),
                Some(Ending::Indexed { parts, words, links }) => {
                    let (parts, words, links, resumed) = (*parts, *words, *links, *resumed);
                    (self.is_plain(state), Event::Indexed { path, parts, words, links, resumed })
                }
                Some(Ending::Skipped { reason }) => (self.is_plain(state), Event::Skipped { path, reason }),
                Some(Ending::Forgotten) => (self.is_plain(state), Event::Forgotten { path }),
                Some(Ending::Failed { reason }) => (true, Event::Failed { path, reason, earlier: *is_earlier }),
            };
            is_told.then_some(event)
        });
    }

    /// Prints the totals, and gives them.
    pub(crate) fn end(&self) -> Totals {
        self.update(|state| {
            state.bar = None;
            None
        });
        let totals = self.lock().totals.clone();
        let seconds = self.started.elapsed().as_secs_f64();
        self.update(|_| Some(Event::Totals { totals: &totals, left: totals.left(), seconds }));
        totals
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
            bar.draw(totals.progress());
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
            Event::Skipped { path, reason } => format!("skipped {}: {}", short(path), plain(reason)),
            Event::Forgotten { path } => format!("forgotten {}", short(path)),
            Event::Failed { path, reason, earlier } => {
                let whose = if *earlier { " (from an earlier command)" } else { "" };
                format!("failed {}: {}{whose}", short(path), plain(reason))
            }
            Event::Totals { totals, seconds, .. } => totals.table(*seconds),
        }
    }
}

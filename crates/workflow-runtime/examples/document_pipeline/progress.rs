//! The lines that tell how far the work is, and the counters of memoized sections.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::state::Summary;

/// Prints progress, and counts what the steps of this process did. Shared by all of them.
pub(crate) struct Progress {
    here: PathBuf,
    /// Whether every step has a line of its own.
    verbose: bool,
    computed: AtomicU64,
    reused: AtomicU64,
}

impl Progress {
    pub(crate) fn new(verbose: bool) -> Self {
        Self { here: current_directory(), verbose, computed: AtomicU64::new(0), reused: AtomicU64::new(0) }
    }

    /// A step has done its work; its outcome commits next.
    pub(crate) fn step_done(&self, step_number: u32, path: &str) {
        if self.verbose {
            say(&format!("step {step_number} {}", shown(&self.here, path)));
        }
    }

    pub(crate) fn run_succeeded(&self, summary: &Summary) {
        let Summary { path, sections, words, links } = summary;
        say(&format!("done {}: {sections} sections, {words} words, {links} links", shown(&self.here, path)));
    }

    pub(crate) fn run_failed(&self, path: &str, reason: &str) {
        say(&format!("failed {}: {reason}", shown(&self.here, path)));
    }

    pub(crate) fn skipped(&self, path: &Path, reason: &str) {
        let path = path.to_string_lossy();
        say(&format!("skipped {}: {reason}", shown(&self.here, &path)));
    }

    /// Of a batch of sections, so many were computed, and so many came from the memo of an attempt
    /// that did not reach its end.
    pub(crate) fn sections_done(&self, path: &str, computed: u64, reused: u64) {
        self.computed.fetch_add(computed, Ordering::Relaxed);
        self.reused.fetch_add(reused, Ordering::Relaxed);
        if reused > 0 {
            say(&format!("reused {}: {reused} sections", shown(&self.here, path)));
        }
    }

    pub(crate) fn sections_computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    pub(crate) fn sections_reused(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
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

//! Lines on standard output, and how a path stands in those that people read.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

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

/// `path` as seen from `here` when it lies below, and in full otherwise; [`plain`] in any case.
pub(crate) fn shown(here: &Path, path: &str) -> String {
    let below = Path::new(path).strip_prefix(here).ok().and_then(Path::to_str).filter(|below| !below.is_empty());
    plain(below.unwrap_or(path))
}

/// `text` on one line, with nothing in it that a terminal obeys: file names hold what anybody likes.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Whether `c` breaks a line, or changes the direction of what follows, without being seen itself.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{plain, shown};

    #[test]
    fn a_path_is_shown_as_seen_from_here() {
        let here = Path::new("/home/me");
        assert_eq!(shown(here, "/home/me/src/lib.rs"), "src/lib.rs");
        assert_eq!(shown(here, "/home/melody/a.txt"), "/home/melody/a.txt");
        assert_eq!(shown(here, "/home/me"), "/home/me");
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_all_else_stays() {
        assert_eq!(plain("a\nb\t\u{1b}[2Jc\u{9b}d"), r"a\nb\t\u{1b}[2Jc\u{9b}d");
        assert_eq!(plain("gpj\u{202e}txt"), r"gpj\u{202e}txt");
        assert_eq!(plain("Größe e\u{301} 東 🦀 \\ '"), "Größe e\u{301} 東 🦀 \\ '");
        assert_eq!(shown(Path::new("/a"), "/a/b\r"), r"b\r");
    }
}

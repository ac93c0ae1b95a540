//! The progress bar of a terminal: one line that is drawn again and again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::totals::Progress;

const WIDTH: u64 = 24;
const REDRAWN_EVERY: Duration = Duration::from_millis(100);
/// The rate is that of the last seconds: what was quick to see as unchanged says nothing about the rest.
const RATED_OVER: Duration = Duration::from_secs(10);
/// Goes to the start of the line, and empties it.
const CLEAR: &str = "\r\x1b[K";
/// What does not fit into the line is cut off: in a second line, nothing would ever clear the first one.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// How far the work was, and when.
#[derive(Default)]
pub(crate) struct Bar {
    samples: VecDeque<(Instant, u64)>,
}

impl Bar {
    /// Draws the bar if it was not drawn just now.
    pub(crate) fn draw(&mut self, progress: Progress) {
        if let Some(line) = self.next_line(Instant::now(), progress) {
            print(&frame(&line));
        }
    }

    /// Makes room for another line.
    pub(crate) fn clear(&mut self) {
        print(CLEAR);
    }

    /// What to draw at the time `now`, if anything.
    fn next_line(&mut self, now: Instant, progress: Progress) -> Option<String> {
        let is_early = self.samples.back().is_some_and(|(drawn, _)| now - *drawn < REDRAWN_EVERY);
        if is_early && progress.done < progress.all {
            return None;
        }
        while self.samples.front().is_some_and(|(drawn, _)| now - *drawn > RATED_OVER) {
            self.samples.pop_front();
        }
        self.samples.push_back((now, progress.done));
        Some(line(progress, self.rate()))
    }

    /// Jobs per second.
    fn rate(&self) -> f64 {
        let (Some((first, before)), Some((last, done))) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let seconds = (*last - *first).as_secs_f64();
        if seconds > 0.0 { (done - before) as f64 / seconds } else { 0.0 }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(progress: Progress, rate: f64) -> String {
    let Progress { done, all, failed } = progress;
    let filled = (done * WIDTH).checked_div(all).unwrap_or(0).min(WIDTH) as usize;
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(WIDTH as usize - filled));
    let mut line = format!("[{bar}] {done}/{all} files");
    if rate > 0.0 {
        line += &format!(", {rate:.0}/s, {} left", time((all.saturating_sub(done)) as f64 / rate));
    }
    if failed > 0 {
        line += &format!(", {failed} failed");
    }
    line
}

/// What a terminal is sent to show `line` in place of the one before.
fn frame(line: &str) -> String {
    format!("{CLEAR}{NO_WRAP}{line}{WRAP}")
}

fn time(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Bar, Progress, frame, line, time};

    fn progress(done: u64, all: u64, failed: u64) -> Progress {
        Progress { done, all, failed }
    }

    #[test]
    fn the_line_tells_how_far_how_fast_and_how_long() {
        assert_eq!(line(progress(0, 8, 0), 0.0), "[........................] 0/8 files");
        assert_eq!(line(progress(2, 8, 1), 2.0), "[######..................] 2/8 files, 2/s, 3 s left, 1 failed");
        assert_eq!(line(progress(0, 0, 0), 0.0), "[........................] 0/0 files");
    }

    #[test]
    fn a_time_is_told_in_its_two_largest_units() {
        let told = [0.2, 59.0, 61.0, 7300.0].map(time);
        assert_eq!(told, ["1 s", "59 s", "1 min 1 s", "2 h 1 min"]);
    }

    #[test]
    fn a_bar_is_drawn_now_and_then_and_at_the_end() {
        let (mut bar, start) = (Bar::default(), Instant::now());
        let mut drawn = |ms, done| bar.next_line(start + Duration::from_millis(ms), progress(done, 8, 0));
        assert_eq!(drawn(0, 0).unwrap(), "[........................] 0/8 files");
        assert_eq!(drawn(99, 1), None);
        assert_eq!(drawn(1_000, 2).unwrap(), "[######..................] 2/8 files, 2/s, 3 s left");
        assert!(drawn(1_001, 8).is_some());
        // What is longer ago than the rate looks back counts no more.
        assert_eq!(drawn(11_500, 8).unwrap(), "[########################] 8/8 files");
    }

    #[test]
    fn a_bar_stays_in_its_line_on_every_terminal() {
        assert_eq!(frame("1/2"), "\r\x1b[K\x1b[?7l1/2\x1b[?7h");
    }
}

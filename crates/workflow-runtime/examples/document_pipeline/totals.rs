//! What a command did, counted: what it was asked for, and apart from that the runs that earlier commands had left.

use serde::Serialize;

use crate::state::Ending;
use crate::work::Job;

/// What became of a job.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) path: String,
    /// Whether only an earlier command had asked for it.
    pub(crate) is_earlier: bool,
    /// Whether an earlier process had begun its run.
    pub(crate) resumed: bool,
    /// None where there was nothing to do.
    pub(crate) ending: Option<Ending>,
}

/// `files` is the sum of all that may become of one, those that are left included.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    files: u64,
    indexed: u64,
    unchanged: u64,
    skipped: u64,
    forgotten: u64,
    pub(crate) failed: u64,
    earlier: Earlier,
    resumed: u64,
    words: u64,
    parts_computed: u64,
    parts_reused: u64,
}

/// Runs that earlier commands had left, of files that this one did not ask for.
#[derive(Clone, Debug, Default, Serialize)]
struct Earlier {
    runs: u64,
    done: u64,
    failed: u64,
}

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) done: u64,
    pub(crate) all: u64,
    pub(crate) failed: u64,
}

impl Totals {
    /// These are to be done.
    pub(crate) fn add_jobs(&mut self, jobs: &[Job]) {
        let earlier = jobs.iter().filter(|job| matches!(job, Job::Finish(_))).count();
        self.earlier.runs += earlier as u64;
        self.files += (jobs.len() - earlier) as u64;
    }

    /// A path could not even be tried.
    pub(crate) fn add_failure(&mut self) {
        self.files += 1;
        self.failed += 1;
    }

    /// A job was done.
    pub(crate) fn count(&mut self, change: &Change) {
        self.resumed += u64::from(change.resumed);
        if let Some(Ending::Indexed { words, .. }) = change.ending {
            self.words += words;
        }
        let counter = match change.ending {
            Some(Ending::Failed { .. }) if change.is_earlier => &mut self.earlier.failed,
            _ if change.is_earlier => &mut self.earlier.done,
            None => &mut self.unchanged,
            Some(Ending::Indexed { .. }) => &mut self.indexed,
            Some(Ending::Skipped { .. }) => &mut self.skipped,
            Some(Ending::Forgotten) => &mut self.forgotten,
            Some(Ending::Failed { .. }) => &mut self.failed,
        };
        *counter += 1;
    }

    /// The findings of a part were computed, or the memo of its run had them.
    pub(crate) fn count_part(&mut self, computed: bool) {
        *(if computed { &mut self.parts_computed } else { &mut self.parts_reused }) += 1;
    }

    /// Files that were not come to.
    pub(crate) fn left(&self) -> u64 {
        self.files.saturating_sub(self.done())
    }

    /// Of all jobs, whoever asked for them.
    pub(crate) fn progress(&self) -> Progress {
        let Earlier { runs, done, failed } = self.earlier;
        Progress { done: self.done() + done + failed, all: self.files + runs, failed: self.failed + failed }
    }

    /// A line for each number.
    pub(crate) fn table(&self, seconds: f64) -> String {
        let mut lines = vec![
            ("files", self.files),
            ("  indexed", self.indexed),
            ("  unchanged", self.unchanged),
            ("  skipped", self.skipped),
            ("  forgotten", self.forgotten),
            ("  failed", self.failed),
            ("  left", self.left()),
        ];
        let Earlier { runs, done, failed } = self.earlier;
        if runs > 0 {
            lines.extend([
                ("from earlier commands", runs),
                ("  done", done),
                ("  failed", failed),
                ("  left", runs.saturating_sub(done + failed)),
            ]);
        }
        lines.extend([
            ("runs resumed", self.resumed),
            ("words", self.words),
            ("parts computed", self.parts_computed),
            ("parts reused", self.parts_reused),
        ]);
        let mut table: Vec<_> = lines.iter().map(|(name, value)| format!("{name:<21}{value:>10}")).collect();
        table.push(format!("{:<21}{seconds:>10.1}", "seconds"));
        table.join("\n")
    }

    fn done(&self) -> u64 {
        self.indexed + self.unchanged + self.skipped + self.forgotten + self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Progress, Totals};
    use crate::state::Ending;
    use crate::work::Job;

    fn change(is_earlier: bool, ending: Option<Ending>) -> Change {
        Change { path: "/a".into(), is_earlier, resumed: is_earlier, ending }
    }

    fn failed() -> Option<Ending> {
        Some(Ending::Failed { reason: "unreadable".into() })
    }

    #[test]
    fn every_file_is_counted_once_also_one_that_could_not_be_tried() {
        let mut totals = Totals::default();
        totals.add_failure();
        totals.add_jobs(&["/a", "/b", "/c", "/d", "/e", "/f"].map(|path| Job::Index(path.into())));
        let indexed = Ending::Indexed { parts: 1, words: 7, links: 0 };
        let skipped = Ending::Skipped { reason: "no text".into() };
        for ending in [None, failed(), Some(indexed), Some(skipped), Some(Ending::Forgotten)] {
            totals.count(&change(false, ending));
        }
        assert_eq!((totals.files, totals.failed, totals.words, totals.left()), (7, 2, 7, 1));
        assert_eq!(totals.progress(), Progress { done: 6, all: 7, failed: 2 });
        assert!(!totals.table(0.0).contains("from earlier commands"));
    }

    #[test]
    fn runs_of_earlier_commands_are_counted_apart() {
        let mut totals = Totals::default();
        totals.add_jobs(&[Job::Finish("/a".into()), Job::Forget("/b".into()), Job::Finish("/c".into())]);
        totals.count(&change(true, failed()));
        assert_eq!((totals.files, totals.failed, totals.left(), totals.resumed), (1, 0, 1, 1));
        assert_eq!(totals.progress(), Progress { done: 1, all: 3, failed: 1 });
        let table = totals.table(0.0);
        let lines: Vec<_> = table.lines().skip(7).take(4).collect();
        assert_eq!(
            lines,
            [
                "from earlier commands         2",
                "  done                        0",
                "  failed                      1",
                "  left                        1"
            ]
        );
    }
}

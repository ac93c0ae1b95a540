//! What became of the mutants, as a table.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::trial::Verdict;

/// What one test says of one mutant.
pub(crate) struct Row {
    pub(crate) mutant: String,
    pub(crate) test: String,
    pub(crate) verdict: Verdict,
    /// From the patch to the verdict.
    pub(crate) took: Duration,
}

/// What all tests say.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// The mutants that one of their tests, or more, did not notice.
    pub(crate) fn survivors(&self) -> BTreeSet<&str> {
        let unnoticed = self.rows.iter().filter(|row| !row.verdict.notices());
        unnoticed.map(|row| row.mutant.as_str()).collect()
    }

    fn mutants(&self) -> BTreeSet<&str> {
        self.rows.iter().map(|row| row.mutant.as_str()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: fn(&Row) -> usize| self.rows.iter().map(column).max().unwrap_or_default();
        let (mutants, tests) = (width(|row| row.mutant.len()), width(|row| row.test.len()));
        for Row { mutant, test, verdict, took } in &self.rows {
            let (mark, seconds) = (if verdict.notices() { " " } else { "!" }, took.as_secs_f64());
            writeln!(f, "{mark} {mutant:mutants$}  {test:tests$}  {:14}  {seconds:6.1} s", verdict.to_string())?;
        }
        let (all, survivors) = (self.mutants().len(), self.survivors().len());
        write!(f, "{all} mutants, {} noticed, {survivors} not", all - survivors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mutant: &str, test: &str, verdict: Verdict) -> Row {
        Row { mutant: mutant.to_owned(), test: test.to_owned(), verdict, took: Duration::from_millis(1_250) }
    }

    #[test]
    fn whatever_one_test_does_not_notice_survives() {
        let verdicts =
            [Verdict::Failed, Verdict::Hung, Verdict::Passed, Verdict::Unsaid, Verdict::NotFound, Verdict::NotBuilt];
        let mut rows: Vec<_> = verdicts.into_iter().map(|verdict| row(&format!("{verdict:?}"), "a", verdict)).collect();
        rows.push(row("Failed", "b", Verdict::Passed));
        let report = Report { rows };
        assert_eq!(
            report.survivors().into_iter().collect::<Vec<_>>(),
            ["Failed", "NotBuilt", "NotFound", "Passed", "Unsaid"]
        );
    }

    #[test]
    fn the_table_has_columns_and_a_sum() {
        let rows = vec![row("short", "p/it a::b", Verdict::Failed), row("longer", "p/it a", Verdict::Passed)];
        let expected = "  short   p/it a::b  fails              1.2 s\n\
                        ! longer  p/it a     passes             1.2 s\n\
                        2 mutants, 1 noticed, 1 not";
        assert_eq!(Report { rows }.to_string(), expected);
    }
}

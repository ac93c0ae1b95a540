//! A case: a seed and what is done, as a small text that people read and write.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::line::{Line, ParseLineError};
use super::operation::Operation;

/// What is done to a deployment, one after another. It prints as a text, one operation a line, and is read back from it.
///
/// Blank lines, and what begins with `#`, count for nothing.
///
/// ```
/// use workflow_testkit::property::{Case, Operation};
///
/// let text = r#"
/// ## The process dies while the order is carried out.
/// seed 7
/// submit "order-17" "a chair"
/// crash after 12
/// advance 1000ms
/// "#;
/// let case: Case = text.parse()?;
/// assert_eq!((case.seed, case.operations.len()), (7, 3));
/// assert_eq!(case.operations[1], Operation::Crash { after: 12 });
/// assert_eq!(case.to_string().parse(), Ok(case));
///
/// let error = "seed 7\nsubmit order-17".parse::<Case>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2: a run id in quotes is expected, not `order-17`");
/// # Ok::<_, workflow_testkit::property::ParseCaseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// What ids and chance follow from; 0 where a text does not say.
    pub seed: u64,
    /// What is done.
    pub operations: Vec<Operation>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        self.operations.iter().try_for_each(|operation| writeln!(f, "{operation}"))
    }
}

/// Why a text is no [`Case`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseCaseError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: ParseLineError,
}

impl std::error::Error for ParseCaseError {}

impl fmt::Display for ParseCaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl FromStr for Case {
    type Err = ParseCaseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut case = Self::default();
        let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
            case.read_line(line).map_err(|problem| ParseCaseError { line: number, problem })?;
        }
        Ok(case)
    }
}

impl Case {
    fn read_line(&mut self, line: &str) -> Result<(), ParseLineError> {
        let mut words = Line::new(line);
        if words.word() == "seed" {
            self.seed = words.number()?;
            return words.end();
        }
        self.operations.push(line.parse()?);
        Ok(())
    }

    /// Reads the case that a file holds.
    ///
    /// # Errors
    ///
    /// When the file does not read, or is no case.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ReadCaseError> {
        let text = std::fs::read_to_string(path).map_err(ReadCaseError::File)?;
        text.parse().map_err(ReadCaseError::Case)
    }

    /// Writes a file that holds the case, and makes the directories that it is to be in.
    ///
    /// # Errors
    ///
    /// When the file system does not take it.
    pub fn write(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        let path = path.as_ref();
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(path, self.to_string())
    }
}

/// Why a file gives no [`Case`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadCaseError {
    /// It does not read.
    File(std::io::Error),
    /// It holds something else.
    Case(ParseCaseError),
}

impl std::error::Error for ReadCaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Case(error) => Some(error),
        }
    }
}

impl fmt::Display for ReadCaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(_) => "the file does not read",
            Self::Case(_) => "the file holds no case",
        })
    }
}

//! What is done to a workflow and its world, one at a time, and how each is written on a line.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::line::{Line, ParseLineError, quoted, time_text};
use crate::ClockStep;

/// One thing that is done to a deployment.
///
/// It prints as a line, and is read back from one. Bytes and strings stand in quotes, with Rust's escapes.
///
/// ```
/// use workflow_testkit::property::Operation;
///
/// let signal = Operation::Signal { key: "approval/17".to_owned(), payload: b"\xff yes".to_vec() };
/// assert_eq!(signal.to_string(), r#"signal "approval/17" "\xff yes""#);
/// assert_eq!(signal.to_string().parse(), Ok(signal));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// `submit "run" "input" header "name" "value"`: a run is submitted. Headers are optional.
    Submit {
        /// The run's id.
        run_id: String,
        /// Its input.
        input: Vec<u8>,
        /// Its headers.
        headers: BTreeMap<String, String>,
    },
    /// `signal "key" "payload"`: a signal is sent, under an id of its own, so that it counts once.
    Signal {
        /// The correlation key.
        key: String,
        /// What it carries.
        payload: Vec<u8>,
    },
    /// `cancel "run"`
    Cancel(String),
    /// `pause "run"`
    Pause(String),
    /// `resume "run"`
    Resume(String),
    /// `redrive "run"`
    Redrive(String),
    /// `forget "run"`
    Forget(String),
    /// `advance 1500ms`: time passes. What is no whole milliseconds is told in `ns`.
    Advance(Duration),
    /// `crash after 12`: the process dies after so many points from here, whatever is done then, and another one starts.
    /// What a point is tells the [`Explorer`](crate::Explorer). A fault that has not come yet gives way to the next.
    Crash {
        /// How many points are passed before.
        after: u64,
    },
    /// `lose leases after 3`: all leases end, in the same way.
    LoseLeases {
        /// How many points are passed before.
        after: u64,
    },
    /// `clock forwards 1500ms`, `clock back 1500ms`: the clock is set wrong, or right again.
    SetClock(ClockStep),
}

impl Operation {
    /// The point at which a fault comes.
    pub(super) fn point(&mut self) -> Option<&mut u64> {
        match self {
            Self::Crash { after } | Self::LoseLeases { after } => Some(after),
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit { run_id, input, headers } => {
                write!(f, "submit {} {}", quoted(run_id), quoted(input))?;
                headers.iter().try_for_each(|(name, value)| write!(f, " header {} {}", quoted(name), quoted(value)))
            }
            Self::Signal { key, payload } => write!(f, "signal {} {}", quoted(key), quoted(payload)),
            Self::Cancel(run_id) => write!(f, "cancel {}", quoted(run_id)),
            Self::Pause(run_id) => write!(f, "pause {}", quoted(run_id)),
            Self::Resume(run_id) => write!(f, "resume {}", quoted(run_id)),
            Self::Redrive(run_id) => write!(f, "redrive {}", quoted(run_id)),
            Self::Forget(run_id) => write!(f, "forget {}", quoted(run_id)),
            Self::Advance(duration) => write!(f, "advance {}", time_text(*duration)),
            Self::Crash { after } => write!(f, "crash after {after}"),
            Self::LoseLeases { after } => write!(f, "lose leases after {after}"),
            Self::SetClock(ClockStep::Forwards(by)) => write!(f, "clock forwards {}", time_text(*by)),
            Self::SetClock(ClockStep::Back(by)) => write!(f, "clock back {}", time_text(*by)),
        }
    }
}

impl FromStr for Operation {
    type Err = ParseLineError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut line = Line::new(line);
        let operation = match line.word() {
            "submit" => submit(&mut line)?,
            "signal" => Self::Signal { key: line.string("a correlation key")?, payload: line.bytes("a payload")? },
            "cancel" => Self::Cancel(line.string("a run id")?),
            "pause" => Self::Pause(line.string("a run id")?),
            "resume" => Self::Resume(line.string("a run id")?),
            "redrive" => Self::Redrive(line.string("a run id")?),
            "forget" => Self::Forget(line.string("a run id")?),
            "advance" => Self::Advance(line.duration()?),
            "crash" => {
                line.expect("after")?;
                Self::Crash { after: line.number()? }
            }
            "lose" => {
                line.expect("leases")?;
                line.expect("after")?;
                Self::LoseLeases { after: line.number()? }
            }
            "clock" => match line.word() {
                "forwards" => Self::SetClock(ClockStep::Forwards(line.duration()?)),
                "back" => Self::SetClock(ClockStep::Back(line.duration()?)),
                other => return Err(ParseLineError::expected("`forwards` or `back`", other)),
            },
            other => return Err(ParseLineError::UnknownOperation(other.to_owned())),
        };
        line.end()?;
        Ok(operation)
    }
}

fn submit(line: &mut Line<'_>) -> Result<Operation, ParseLineError> {
    let (run_id, input) = (line.string("a run id")?, line.bytes("an input")?);
    let mut headers = BTreeMap::new();
    while !line.is_empty() {
        line.expect("header")?;
        headers.insert(line.string("a header's name")?, line.string("a header's value")?);
    }
    Ok(Operation::Submit { run_id, input, headers })
}

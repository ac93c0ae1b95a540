//! What the choices are among: calls of a port, and the points that a scenario sets.

use std::fmt;
use std::sync::Arc;

use workflow_runtime::port::{ClaimedJob, Commit, Error, JobState, Rejected, ScanPage, Settlement};

/// The most keys of a commit that are told.
const MAX_KEYS: usize = 4;

/// A call that stops and waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The actor that calls, or, for a task that the actor's runtime has started, the name of the port.
    pub actor: Arc<str>,
    /// Which task of that name calls; the first one to do so is 1.
    pub task: usize,
    /// What is called.
    pub operation: Operation,
    /// Whether it is about to begin or about to return.
    pub moment: Moment,
    /// What the call is about: keys as `kind/run` where they are the runtime's, a queue, the name of a point.
    pub subject: String,
    /// What the answer says. Empty before there is one.
    pub answer: String,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Reads a key.
    Get,
    /// Reads a range.
    Scan,
    /// Commits.
    Commit,
    /// Claims jobs.
    Claim,
    /// Makes claims durable.
    PersistClaims,
    /// Settles a claim.
    Settle,
    /// Asks where a job is.
    JobState,
    /// Asks whether an operator has put a job back.
    IsRequeued,
    /// Lists dead jobs.
    DeadJobs,
    /// Waits until a key has changed; only its answer stops.
    WaitForChange,
    /// A stop that the scenario has set.
    Point,
}

/// Where in a call it has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before it reaches the queue.
    Asked,
    /// Before its answer returns.
    Answered,
}

impl Call {
    /// Whether the call only reads.
    pub fn is_read(&self) -> bool {
        match self.operation {
            Operation::Get
            | Operation::Scan
            | Operation::JobState
            | Operation::IsRequeued
            | Operation::DeadJobs
            | Operation::WaitForChange => true,
            Operation::Commit | Operation::Claim | Operation::PersistClaims | Operation::Settle | Operation::Point => {
                false
            }
        }
    }

    /// The same call with its answer.
    pub(super) fn answered(mut self, answer: String) -> Self {
        (self.moment, self.answer) = (Moment::Answered, answer);
        self
    }

    /// Whether this is the answer of `asked`.
    pub(super) fn answers(&self, asked: &Self) -> bool {
        let same_call = (&self.actor, self.task, self.operation, &self.subject)
            == (&asked.actor, asked.task, asked.operation, &asked.subject);
        same_call && asked.moment == Moment::Asked && self.moment == Moment::Answered
    }
}

/// The call without its actor.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.task > 1 {
            write!(f, "({}) ", self.task)?;
        }
        let verb = match self.operation {
            Operation::Get => "get ",
            Operation::Scan => "scan ",
            Operation::Commit => "commit ",
            Operation::Claim => "claim ",
            Operation::PersistClaims => "persist claims",
            Operation::Settle => "settle ",
            Operation::JobState => "state of ",
            Operation::IsRequeued => "is requeued ",
            Operation::DeadJobs => "dead jobs of ",
            Operation::WaitForChange => "wait for ",
            Operation::Point => "",
        };
        write!(f, "{verb}{}", self.subject)?;
        match self.moment {
            Moment::Asked => Ok(()),
            Moment::Answered => write!(f, " -> {}", self.answer),
        }
    }
}

/// A key as people read it: of the runtime's own, the kind and the run.
pub(super) fn key_text(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    let mut parts = text.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("workflow"), Some(_queue), Some(kind), Some(run)) => format!("{kind}/{run}"),
        _ => text.escape_debug().to_string(),
    }
}

/// What commits write, and the queues they ring.
pub(super) fn commits_text(commits: &[Commit]) -> String {
    let texts: Vec<String> = commits.iter().map(commit_text).collect();
    texts.join(" | ")
}

fn commit_text(commit: &Commit) -> String {
    let puts = commit.puts.iter().map(|(key, _)| key_text(key));
    let deletes = commit.deletes.iter().map(|key| format!("-{}", key_text(key)));
    let mut words: Vec<String> = puts.chain(deletes).collect();
    if words.len() > MAX_KEYS {
        words.truncate(MAX_KEYS);
        words.push("…".to_owned());
    }
    words.extend(commit.enqueues.iter().map(|job| format!("+job of {}", job.queue)));
    words.join(", ")
}

pub(super) fn committed_text(answers: &[Result<(), Rejected>]) -> String {
    let texts: Vec<&str> = answers
        .iter()
        .map(|answer| match answer {
            Ok(()) => "applied",
            Err(Rejected::Conflict) => "conflict",
            Err(Rejected::Invalid(_)) => "invalid",
            Err(Rejected::Unknown(_)) => "unknown",
        })
        .collect();
    texts.join(" | ")
}

pub(super) fn value_text<T: AsRef<[u8]>>(value: Option<&T>) -> String {
    match value {
        Some(value) => format!("{} bytes", value.as_ref().len()),
        None => "absent".to_owned(),
    }
}

pub(super) fn page_text(page: &ScanPage) -> String {
    format!("{} entries", page.entries.len())
}

pub(super) fn claimed_text(jobs: &[ClaimedJob]) -> String {
    if jobs.is_empty() {
        return "nothing".to_owned();
    }
    let texts: Vec<String> = jobs.iter().map(|job| format!("{}, delivery {}", job.job, job.deliveries)).collect();
    texts.join(" | ")
}

pub(super) fn settlement_text(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Ack(_) => "as done",
        Settlement::Dead(..) => "as dead",
        Settlement::Drop(_) => "as dropped",
    }
}

pub(super) fn state_text(state: Option<JobState>) -> &'static str {
    match state {
        None => "absent",
        Some(JobState::Waiting) => "waiting",
        Some(JobState::Claimed) => "claimed",
        Some(JobState::Dead) => "dead",
    }
}

/// An answer, or the class of its error: the text of an error may differ from run to run.
pub(super) fn answer_text<T>(answer: &Result<T, Error>, text: impl FnOnce(&T) -> String) -> String {
    match answer {
        Ok(answer) => text(answer),
        Err(error) if error.is_closed() => "closed".to_owned(),
        Err(_) => "an error".to_owned(),
    }
}

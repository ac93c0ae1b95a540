//! Which events have met which phases of runs: what of the state machine a suite of tests has exercised.

mod mark;

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs, io};

use workflow_runtime::{Decision, EventKind, PhaseKind};

/// Which kinds of event have met runs in which phases, and what was decided.
///
/// [`Sim::run`](crate::Sim::run) and [`Held`](crate::Held) bring one along; [`merge`](Self::merge) makes one of many. It
/// prints as a table, and marks the page on which the project keeps all decisions.
///
/// ```
/// use workflow_runtime::{EventKind, NoopTerminalHook, PhaseKind, RunSpec, Step, StepError, StepOutcome, StepRunner};
/// use workflow_testkit::{Coverage, Sim, explore};
///
/// struct Greeter;
///
/// impl StepRunner for Greeter {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         Ok(StepOutcome::Succeed { result: step.payload.clone() })
///     }
/// }
///
/// async fn greeting(sim: Sim) {
///     let runtime = sim.start(Greeter, NoopTerminalHook);
///     runtime.submit(RunSpec { run_id: Some("greeting".to_owned()), ..RunSpec::default() }).await.unwrap();
///     runtime.wait("greeting").await.unwrap();
/// }
///
/// let mut coverage = Coverage::new();
/// coverage.merge(&Sim::run(7, greeting));
/// assert_eq!(coverage.count(EventKind::Claimed, PhaseKind::Ready), 1);
/// assert_eq!(coverage.count(EventKind::Submitted, PhaseKind::Succeeded), 0);
///
/// // A process that dies leaves the submission to the next, which may find the run ended.
/// coverage.merge(&explore(greeting).coverage);
/// assert!(coverage.count(EventKind::Submitted, PhaseKind::Succeeded) > 0);
/// assert!(coverage.missing().contains(&(EventKind::Signalled, PhaseKind::WaitingWithoutEnd)));
/// println!("{coverage}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    met: BTreeMap<Decision, u64>,
}

impl Coverage {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { met: BTreeMap::new() }
    }

    /// Counts a decision, for runtimes that a test [builds](workflow_runtime::WorkflowRuntimeBuilder::on_decision) itself.
    pub fn add(&mut self, decision: Decision) {
        *self.met.entry(decision).or_default() += 1;
    }

    /// Counts what `other` has counted as well.
    pub fn merge(&mut self, other: &Self) {
        for (decision, count) in &other.met {
            *self.met.entry(*decision).or_default() += count;
        }
    }

    /// Every decision, and how often it was made.
    pub fn decisions(&self) -> impl Iterator<Item = (Decision, u64)> {
        self.met.iter().map(|(decision, count)| (*decision, *count))
    }

    /// How often such an event has met a run in this phase.
    pub fn count(&self, event: EventKind, phase: PhaseKind) -> u64 {
        let of_pair = |decision: &Decision| decision.event == event && decision.phase == phase;
        self.met.iter().filter(|(decision, _)| of_pair(decision)).map(|(_, count)| count).sum()
    }

    /// The pairs that were never met, those aside in which the event is always
    /// [left over](EventKind::is_left_over) from something settled.
    pub fn missing(&self) -> Vec<(EventKind, PhaseKind)> {
        pairs().filter(|(event, phase)| self.count(*event, *phase) == 0).collect()
    }

    /// `page`, the text of the project's `docs/state-machine.md`, with a mark at every phase in which the event of the
    /// section was decided for the reason of the row. Where several phases go by one name, the mark says how many.
    pub fn mark(&self, page: &str) -> String {
        mark::page(self, page)
    }

    /// Writes the table into the file at `path`, below folders that need not be there.
    ///
    /// # Errors
    ///
    /// When the file system refuses.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, self.to_string())
    }

    /// Whether such an event was decided in this phase for this reason.
    fn has_met(&self, event: EventKind, phase: PhaseKind, reason: &str) -> bool {
        self.met.keys().any(|met| met.event == event && met.phase == phase && met.reason == reason)
    }

    /// How many pairs were met, in words.
    fn summary(&self) -> String {
        let all = pairs().count();
        format!("{} of {all} pairs of event and phase were exercised", all - self.missing().len())
    }
}

/// The pairs in which an event may be more than left over.
fn pairs() -> impl Iterator<Item = (EventKind, PhaseKind)> {
    let all = EventKind::ALL.into_iter().flat_map(|event| PhaseKind::ALL.map(|phase| (event, phase)));
    all.filter(|(event, phase)| !event.is_left_over(*phase))
}

/// A table in Markdown: how often each pair was met, a dash where it was not, nothing where it need not be.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = PhaseKind::ALL.iter().map(|phase| phase.name().len()).max().unwrap_or_default();
        writeln!(f, "{}.\n", self.summary())?;
        write!(f, "| {:longest$} |", "phase")?;
        EventKind::ALL.iter().try_for_each(|event| write!(f, " {event} |"))?;
        write!(f, "\n| {} |", "-".repeat(longest))?;
        EventKind::ALL.iter().try_for_each(|event| write!(f, " {}: |", "-".repeat(event.name().len() - 1)))?;
        for phase in PhaseKind::ALL {
            write!(f, "\n| {phase:longest$} |")?;
            for event in EventKind::ALL {
                let cell = match self.count(event, phase) {
                    0 if event.is_left_over(phase) => String::new(),
                    0 => "–".to_owned(),
                    count => count.to_string(),
                };
                write!(f, " {cell:>width$} |", width = event.name().len())?;
            }
        }
        writeln!(f)
    }
}

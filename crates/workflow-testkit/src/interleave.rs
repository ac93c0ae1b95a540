//! Runs a few calls in every order of their port calls: exhaustively where that is possible, by seed beyond.

mod call;
mod choices;
mod execution;
mod failure;
mod port;
mod schedule;
mod search;
mod steps;
mod turns;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use self::call::{Call, Moment, Operation};
use self::choices::{Chooser, parse};
use self::execution::execute;
pub(crate) use self::execution::panic_message;
pub use self::failure::{FailedOrder, Problem};
use self::search::Search;
use self::steps::numbered;
pub use self::turns::{Actor, Turns};

/// Which calls are let through without being a choice.
type Passes = Arc<dyn Fn(&Call) -> bool + Send + Sync>;

/// Runs a scenario once for each order in which its actors' port calls can happen.
///
/// A scenario is an async function of a [`Turns`]. It makes its world over ports of that handle, names its
/// [actors](Turns::actor), lets them [race](Turns::race), and asserts what must hold whatever came first. It is run
/// from the start for every order, each time on a paused async runtime of its own.
///
/// # What an order is
///
/// During a race every call of a port stops twice: before it reaches the queue, and before its answer returns, so that
/// *applied and not yet answered* is a state that others meet. The scenario sets further stops with [`Turns::point`].
/// Once everything has stopped or waits, one stopped call goes on; which one is the choice. While a call waits inside
/// the queue, for instance to become durable, that time passes is a choice as well; otherwise time passes when nothing
/// is stopped.
///
/// Orders come with the fewest surprises first: by how often another actor cuts in than the one that could go on. So
/// the first order that fails is a shortest one. Beyond [`exhaustive_up_to`](Self::exhaustive_up_to) orders,
/// [`samples`](Self::samples) more are drawn by the seed, and one of them that fails is made simpler before it is told.
///
/// # What a scenario has to keep to
///
/// The same choices must lead to the same calls: take ids from [`Turns::ids`], time from the queue, and use no threads.
/// One that does otherwise is reported. Before and after its races calls take their course without choices.
///
/// # Example
///
/// Two actors read a counter and write it one higher. Nobody expects anything, so one of the two updates may be lost:
///
/// ```
/// use std::sync::Arc;
///
/// use workflow_runtime::QueuePort;
/// use workflow_runtime::port::{Commit, Read};
/// use workflow_testkit::{Interleaver, MemoryDisk, Turns};
///
/// async fn increment(port: Arc<dyn QueuePort>) {
///     let counter = port.get(b"counter", Read::Latest).await.unwrap().map_or(0, |value| value[0]);
///     let next = vec![counter + 1].into();
///     port.commit(vec![Commit { puts: vec![("counter".into(), next)], ..Commit::default() }]).await;
/// }
///
/// async fn scenario(turns: Turns) {
///     let disk = MemoryDisk::default();
///     let queue = Arc::new(disk.open());
///     turns.actor("one", increment(turns.port("one", queue.clone())));
///     turns.actor("other", increment(turns.port("other", queue)));
///     turns.race().await;
///     assert_eq!(disk.entries()[0].1, vec![2], "an update is lost");
/// }
///
/// let failed = Interleaver::new().explore(scenario).unwrap_err();
/// // One's read has reached the queue, and its answer is not back, when the other reads and writes.
/// assert_eq!(failed.steps[..2], ["one: get counter", "other: get counter -> absent; commit counter"]);
/// assert!(Interleaver::new().replay(&failed.choices, scenario).is_err());
/// ```
#[derive(Clone)]
pub struct Interleaver {
    exhaustive_up_to: u64,
    samples: u64,
    seed: u64,
    delays: u32,
    most_steps: usize,
    longest: Duration,
    passes: Passes,
}

/// What was explored, and found right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// How many orders were run.
    pub orders: u64,
    /// Whether they are all there are.
    pub exhaustive: bool,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = if self.exhaustive { "all there are" } else { "there are more" };
        write!(f, "{} orders, {extent}", self.orders)
    }
}

impl fmt::Debug for Interleaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interleaver")
            .field("exhaustive_up_to", &self.exhaustive_up_to)
            .field("samples", &self.samples)
            .field("seed", &self.seed)
            .field("delays", &self.delays)
            .field("most_steps", &self.most_steps)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

impl Default for Interleaver {
    fn default() -> Self {
        Self {
            exhaustive_up_to: 10_000,
            samples: 1_000,
            seed: 0,
            delays: 0,
            most_steps: 5_000,
            longest: Duration::from_secs(3600),
            passes: Arc::new(|_| false),
        }
    }
}

impl Interleaver {
    /// Ten thousand orders, and if there are more, a thousand drawn by seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs up to `orders` in order of their surprises. If there are no more, all are run.
    #[must_use]
    pub fn exhaustive_up_to(mut self, orders: u64) -> Self {
        self.exhaustive_up_to = orders;
        self
    }

    /// Runs so many orders by chance when there are too many to run them all.
    #[must_use]
    pub fn samples(mut self, orders: u64) -> Self {
        self.samples = orders;
        self
    }

    /// What chance goes by. One seed draws the same orders every time.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Lets time pass up to `delays` times in an order although a call could go on: until another stops or is answered
    /// because a wait is over, be it a pause, a timeout or a lease. None unless asked for.
    #[must_use]
    pub fn delays(mut self, delays: u32) -> Self {
        self.delays = delays;
        self
    }

    /// Lets the calls that `passes` names through without making them a choice. That is sound for calls whose place in
    /// the order changes nothing that the scenario asserts, and saves orders by the power of their number.
    ///
    /// ```
    /// # use workflow_testkit::{Interleaver, Moment};
    /// // The answer of a read returns at once.
    /// let interleaver = Interleaver::new().pass(|call| call.is_read() && call.moment == Moment::Answered);
    /// ```
    #[must_use]
    pub fn pass(mut self, passes: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.passes = Arc::new(passes);
        self
    }

    /// An order of more than so many steps has failed. 5,000 unless told otherwise.
    #[must_use]
    pub fn most_steps(mut self, steps: usize) -> Self {
        self.most_steps = steps;
        self
    }

    /// A scenario that has not ended after so much virtual time has failed. An hour unless told otherwise.
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Runs the orders of `scenario`, up to the first that fails.
    ///
    /// # Errors
    ///
    /// The order that failed.
    ///
    /// # Panics
    ///
    /// In an async context: it starts async runtimes of its own.
    pub fn explore<F, S>(&self, scenario: F) -> Result<Explored, Box<FailedOrder>>
    where
        F: Fn(Turns) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        Search::new(self, &scenario).run()
    }

    /// As [`explore`](Self::explore), for tests.
    ///
    /// # Panics
    ///
    /// With the order that failed, and in an async context.
    #[track_caller]
    pub fn run<F, S>(&self, scenario: F) -> Explored
    where
        F: Fn(Turns) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        match self.explore(scenario) {
            Ok(explored) => explored,
            Err(failed) => panic!("{failed}"),
        }
    }

    /// Runs the one order of `scenario` that `choices`, of a [`FailedOrder`], stand for, and tells its steps.
    ///
    /// # Errors
    ///
    /// The order, if it fails; also when these choices cannot be made in the scenario.
    ///
    /// # Panics
    ///
    /// When `choices` are not numbers with dots between them, and in an async context.
    pub fn replay<F, S>(&self, choices: &str, scenario: F) -> Result<Vec<String>, Box<FailedOrder>>
    where
        F: Fn(Turns) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        let choices = parse(choices).unwrap_or_else(|| panic!("{choices:?} is not a list of choices like 0.2.1"));
        let execution = execute(self, &scenario, Chooser::made(choices));
        let steps = numbered(&execution.steps);
        match execution.result {
            Ok(()) => Ok(steps),
            Err(problem) => Err(Box::new(FailedOrder::of(problem, &execution.taken, steps, 1))),
        }
    }
}

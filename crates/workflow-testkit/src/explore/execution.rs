//! One execution of a scenario: process after process, each on an async runtime of its own whose time stands still.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::finals::Finals;
use crate::Coverage;
use crate::interleave::panic_message;
use crate::sim::{Event, Injection, Reached, Sim};

/// What came of an execution.
pub(crate) struct Execution {
    pub(crate) result: Result<Finals, String>,
    pub(crate) reached: Vec<Reached>,
    pub(crate) events: Vec<Event>,
    pub(crate) coverage: Coverage,
}

/// Runs `scenario` to its end, with these faults.
pub(crate) fn execute<F, S>(scenario: &F, seed: u64, injections: Vec<Injection>, longest: Duration) -> Execution
where
    F: Fn(Sim) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let sim = Sim::new(seed, injections);
    let ended = loop {
        // Dropping the async runtime is what ends every task of the process.
        match paused_runtime().block_on(live(&sim, scenario(sim.clone()), longest)) {
            Some(ended) => break ended,
            None => sim.world.log.tell(Event::Restarted),
        }
        sim.world.points.revive();
    };
    let (reached, events) = (sim.world.points.reached(), sim.world.log.events());
    let coverage = sim.coverage();
    let result = ended.and_then(|()| paused_runtime().block_on(Finals::of(&sim)));
    Execution { result, reached, events, coverage }
}

/// One process: to the end of the scenario, or to its death.
async fn live<S>(sim: &Sim, scenario: S, longest: Duration) -> Option<Result<(), String>>
where
    S: Future<Output = ()> + Send + 'static,
{
    sim.begin_process();
    let program = async {
        tokio::spawn(scenario).await.map_err(panic_message)?;
        let idle = sim.clone();
        tokio::spawn(async move { idle.until_idle().await }).await.map_err(panic_message)
    };
    tokio::select! {
        biased;
        () = sim.world.points.death() => None,
        ended = program => Some(ended),
        () = tokio::time::sleep(longest) => Some(Err(format!("the scenario has not ended after {longest:?}"))),
    }
}

/// An async runtime of one thread whose time moves when nobody works.
pub(crate) fn paused_runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread and a timer takes nothing that can be missing")
}

//! One execution of a scenario, on an async runtime of its own whose time stands still.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::task::JoinError;

use super::choices::{Chooser, Taken};
use super::failure::Problem;
use super::schedule::Schedule;
use super::steps::Step;
use super::{Interleaver, Turns};

/// What came of an execution.
pub(super) struct Execution {
    pub(super) result: Result<(), Problem>,
    pub(super) taken: Vec<Taken>,
    pub(super) steps: Vec<Step>,
}

/// Runs `scenario` once, with the choices of `chooser`.
pub(super) fn execute<F, S>(interleaver: &Interleaver, scenario: &F, chooser: Chooser) -> Execution
where
    F: Fn(Turns) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let schedule = Arc::new(Schedule::new(interleaver, chooser));
    let whenever_idle = schedule.clone();
    // The runtime parks exactly when no task can go on. What is woken then goes on before time does.
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || whenever_idle.idle())
        .build()
        .expect("a runtime of one thread and a timer takes nothing that can be missing");
    let result = runtime.block_on(async {
        schedule.begin();
        let turns = Turns::new(schedule.clone());
        let ended = tokio::spawn(scenario(turns));
        tokio::select! {
            biased;
            ended = ended => ended.map_err(|error| Problem::Panicked(panic_message(error))),
            problem = schedule.failed() => Err(problem),
            () = tokio::time::sleep(interleaver.longest) => Err(Problem::NeverEnds),
        }
    });
    // Whatever still runs ends here, so that nothing of it is told.
    let (taken, steps) = schedule.end();
    drop(runtime);
    Execution { result, taken, steps }
}

/// What a task that did not end well panicked with.
pub(crate) fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(panic) => match panic.downcast_ref::<&'static str>() {
                Some(message) => (*message).to_owned(),
                None => "a panic without a message".to_owned(),
            },
        },
        Err(error) => error.to_string(),
    }
}

//! What a scenario holds: ports that stop, actors, and the race between them.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use workflow_runtime::{IdSource, QueuePort};

use super::call::{Call, Moment, Operation};
use super::execution::panic_message;
use super::port::TurnsPort;
use super::schedule::Schedule;
use crate::chance::mixed;

tokio::task_local! {
    /// The actor whose task this is.
    static ACTOR: Arc<str>;
}

/// Actors that have not begun.
type Actors = Vec<(Arc<str>, Pin<Box<dyn Future<Output = ()> + Send>>)>;

/// The handle of a scenario: it makes the ports whose calls take turns, and lets actors race.
///
/// Clones are the same handle. See [`Interleaver`](crate::Interleaver).
#[derive(Clone)]
pub struct Turns {
    pub(super) schedule: Arc<Schedule>,
    actors: Arc<Mutex<Actors>>,
    ids: Arc<CountedIds>,
}

/// What an actor returns, once the race is over.
#[derive(Debug)]
pub struct Actor<T> {
    name: Arc<str>,
    output: Arc<Mutex<Option<T>>>,
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

impl Turns {
    pub(super) fn new(schedule: Arc<Schedule>) -> Self {
        Self { schedule, actors: Arc::default(), ids: Arc::default() }
    }

    /// `queue`, with every call taking turns during a race. Calls that an actor makes itself carry its name, all others
    /// `name`: give every runtime a port of its own, and it is easy to see whose call is whose.
    pub fn port(&self, name: &str, queue: Arc<dyn QueuePort>) -> Arc<dyn QueuePort> {
        Arc::new(TurnsPort { name: name.into(), inner: queue, turns: self.clone() })
    }

    /// Ids and chance for the runtimes of the scenario: the same in every execution, never the same twice in one.
    pub fn ids(&self) -> Arc<dyn IdSource> {
        self.ids.clone()
    }

    /// Takes `work` on as an actor of the next [race](Self::race). It does not begin before.
    pub fn actor<T: Send + 'static>(&self, name: &str, work: impl Future<Output = T> + Send + 'static) -> Actor<T> {
        let (name, output): (Arc<str>, _) = (name.into(), Arc::new(Mutex::new(None)));
        let answer = output.clone();
        let work = Box::pin(async move {
            let output = work.await;
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        });
        self.actors.lock().unwrap_or_else(PoisonError::into_inner).push((name.clone(), work));
        Actor { name, output }
    }

    /// Stops until it is this call's turn, during a race. For what is no call of a port and still has its place in the
    /// order: a step that takes a while, the loss of a lease, a crash.
    pub async fn point(&self, name: &str) {
        let actor = self.actor_of(&"a task".into());
        if let Some(call) = self.call(&actor, Operation::Point, || name.to_owned()) {
            self.schedule.turn(call).await;
        }
    }

    /// Lets the actors race until each has ended. Whatever else the scenario has started takes part.
    ///
    /// # Panics
    ///
    /// With the panic of an actor.
    pub async fn race(&self) {
        let actors = std::mem::take(&mut *self.actors.lock().unwrap_or_else(PoisonError::into_inner));
        self.schedule.open();
        let _closes = Closes(&self.schedule);
        let (mut running, mut names) = (JoinSet::new(), HashMap::new());
        for (name, work) in actors {
            let task = running.spawn(ACTOR.scope(name.clone(), work));
            names.insert(task.id(), name);
        }
        while let Some(ended) = running.join_next().await {
            if let Err(error) = ended {
                let name = names.remove(&error.id()).unwrap_or_default();
                // The panic itself has been told.
                std::panic::resume_unwind(Box::new(format!("{name} panicked: {}", panic_message(error))));
            }
        }
    }

    /// Whose task this is: an actor's, or else `other`'s.
    pub(super) fn actor_of(&self, other: &Arc<str>) -> Arc<str> {
        ACTOR.try_with(Arc::clone).unwrap_or_else(|_| other.clone())
    }

    /// A call that `actor` is about to make; nothing during no race.
    pub(super) fn call(
        &self,
        actor: &Arc<str>,
        operation: Operation,
        subject: impl FnOnce() -> String,
    ) -> Option<Call> {
        let task = self.schedule.task_number(actor)?;
        let (actor, moment, answer) = (actor.clone(), Moment::Asked, String::new());
        Some(Call { actor, task, operation, moment, subject: subject(), answer })
    }
}

impl<T> Actor<T> {
    /// What the actor returned.
    ///
    /// # Panics
    ///
    /// When it has not taken part in a race.
    pub fn output(self) -> T {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        output.unwrap_or_else(|| panic!("`{}` has not been in a race", self.name))
    }
}

/// Ends a race, however it ends.
struct Closes<'a>(&'a Schedule);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ids by their number.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn random(&self) -> u128 {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        u128::from(mixed(number, 0, 0)) << 64 | u128::from(mixed(number, 0, 1))
    }
}

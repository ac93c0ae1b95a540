//! Whether the queue answers at all.

use std::future::pending;
use std::time::Duration;

use tokio::time::Instant;
use workflow_runtime::port::Error;

use crate::watch;

/// Whether a [`FaultyPort`](crate::FaultyPort) answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It does.
    #[default]
    Well,
    /// Every call that may fail does, for the moment. Settlements, which repeat themselves, wait; extensions get lost.
    Down,
    /// No call returns for now, calls in progress included. Extensions get lost.
    Hung,
}

/// The health of one port. Its watchers see every change.
#[derive(Debug, Default)]
pub(super) struct Condition(watch::Sender<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    health: Health,
    /// When the queue is well again by itself.
    until: Option<Instant>,
    /// Nothing returns any more.
    dead: bool,
}

impl Condition {
    /// Changes the health until it is changed again, or for so long.
    pub(super) fn set(&self, health: Health, lasting: Option<Duration>) {
        let until = lasting.map(|lasting| Instant::now() + lasting);
        self.0.send_modify(|state| (state.health, state.until) = (health, until));
    }

    pub(super) fn health(&self) -> Health {
        self.0.borrow().now()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.borrow().dead
    }

    pub(super) fn die(&self) {
        self.0.send_modify(|state| state.dead = true);
    }

    /// Returns once the process is dead.
    pub(super) async fn dead(&self) {
        self.0.subscribe().wait_for(|state| state.dead).await;
    }

    /// Passes while the queue is well, fails while it is down, waits while it hangs, for ever when it is dead.
    pub(super) async fn answers(&self) -> Result<(), Error> {
        match self.wait_while(|health| health == Health::Hung).await {
            Health::Down => Err(unavailable()),
            Health::Well | Health::Hung => Ok(()),
        }
    }

    /// As [`answers`](Self::answers), but waits while the queue is down.
    pub(super) async fn is_well(&self) {
        self.wait_while(|health| health != Health::Well).await;
    }

    /// Holds an answer back while the queue hangs, for ever when it is dead.
    pub(super) async fn returns(&self) {
        self.wait_while(|health| health == Health::Hung).await;
    }

    /// Returns unless the process is dead.
    pub(super) async fn lives(&self) {
        self.wait_while(|_| false).await;
    }

    async fn wait_while(&self, waits: impl Fn(Health) -> bool) -> Health {
        let mut changes = self.0.subscribe();
        loop {
            let state = *changes.borrow_and_update();
            let health = state.now();
            if !state.dead && !waits(health) {
                return health;
            }
            let well_again = async {
                match state.until.filter(|_| !state.dead) {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = changes.changed() => {}
                () = well_again => {}
            }
        }
    }
}

impl State {
    fn now(self) -> Health {
        if self.until.is_some_and(|until| Instant::now() >= until) { Health::Well } else { self.health }
    }
}

/// The answer of a call that a fault keeps from one.
pub(super) fn unavailable() -> Error {
    Error::Unavailable("a fault of the test's plan".into())
}

//! Pipelined commits of one run: while a commit is in flight, the next steps execute, and what they commit waits; when
//! it lands, all that waits commits as one. A crash undoes the last steps, never one before a step that stays.

mod branch;
mod group;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, warn};
use workflow_core::{Outcome, Timestamp};
use workflow_effects::{Commit, CommitError, Committer, Error, KvStore, Read, Result, StagedEffects};

use self::branch::Branch;
use self::group::Group;
use super::backoff::Backoff;
use crate::Barrier;
use crate::port::Clock;

/// What the steps of one delivery have committed and no flush has made durable yet. Dropped with the delivery: what waits
/// then is undone.
pub(super) struct Pipeline(Arc<Shared>);

/// Somebody else has changed the run: what was taken in and has not landed is undone, all of it.
#[derive(Debug)]
pub(super) struct Undone;

/// What a step came to, for whoever decides on it again.
#[derive(Clone)]
pub(super) struct Returned {
    pub(super) step: u32,
    pub(super) outcome: Outcome,
    pub(super) staged: StagedEffects,
    pub(super) now: Timestamp,
    pub(super) inline: bool,
    pub(super) started_at: Option<Timestamp>,
}

/// What keeps a flight from being tried again.
pub(super) struct Guards {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) lease_lost: CancellationToken,
    pub(super) aborting: CancellationToken,
}

struct Shared {
    committer: Committer,
    guards: Guards,
    state: Mutex<State>,
    /// A flight has ended.
    changed: Notify,
}

#[derive(Default)]
struct State {
    in_flight: Option<Arc<Group>>,
    waiting: Option<Group>,
    /// Nothing takes off any more.
    is_undone: bool,
    /// What came to no good end.
    refused: Option<Arc<Group>>,
}

impl Pipeline {
    /// One with nothing in it.
    pub(super) fn new(committer: Committer, guards: Guards) -> Self {
        Self(Arc::new(Shared { committer, guards, state: Mutex::default(), changed: Notify::new() }))
    }

    /// Takes in what a step commits, which was decided on what is in here already. Waits while too much does.
    pub(super) async fn take_in(&self, commit: Commit, returned: impl FnOnce() -> Returned) -> Result<(), Undone> {
        let shared = &self.0;
        shared.until(|state| state.waiting.as_ref().is_none_or(Group::has_room)).await?;
        match &mut shared.lock().waiting {
            Some(group) => group.add(commit),
            none => *none = Some(Group::new(commit, returned())),
        }
        if let Some(group) = shared.take_off() {
            tokio::spawn(fly(shared.clone(), group).in_current_span());
        }
        Ok(())
    }

    /// Waits until everything that was taken in is durable.
    pub(super) async fn landed(&self) -> Result<(), Undone> {
        self.0.landed().await
    }

    /// Waits until what was taken in is undone.
    pub(super) async fn undone(&self) {
        // It never is so.
        while self.0.until(|_| false).await.is_ok() {}
    }

    /// What the first step came to whose commit was refused. The steps before it are durable, so its outcome still counts;
    /// those after it stood on what was refused.
    pub(super) fn refused(&self) -> Option<Returned> {
        self.0.lock().refused.as_ref().map(|group| group.first.clone())
    }

    /// The store as the next step sees it.
    pub(super) fn branch(&self) -> Arc<dyn KvStore> {
        Arc::new(Branch(self.0.clone()))
    }

    /// What the next step waits for when it syncs.
    pub(super) fn barrier(&self) -> Barrier {
        let shared = self.0.clone();
        Barrier::new(move || {
            let shared = shared.clone();
            async move { shared.landed().await.map_err(|Undone| Error::Undone.into()) }
        })
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.0.undo();
    }
}

impl Shared {
    async fn landed(&self) -> Result<(), Undone> {
        self.until(|state| state.in_flight.is_none() && state.waiting.is_none()).await
    }

    /// Waits until `holds`, or until everything is undone.
    async fn until(&self, holds: impl Fn(&State) -> bool) -> Result<(), Undone> {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                if state.is_undone {
                    return Err(Undone);
                }
                if holds(&state) {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// What is to fly next, if nothing does.
    fn take_off(&self) -> Option<Arc<Group>> {
        let mut state = self.lock();
        if state.is_undone || state.in_flight.is_some() {
            return None;
        }
        state.in_flight = state.waiting.take().map(Arc::new);
        state.in_flight.clone()
    }

    /// The flight has ended well.
    fn land(&self) {
        self.lock().in_flight = None;
        self.changed.notify_waiters();
    }

    fn undo(&self) {
        let mut state = self.lock();
        let refused = state.in_flight.take();
        *state = State { is_undone: true, refused, ..State::default() };
        drop(state);
        self.changed.notify_waiters();
    }

    /// Commits `group`, again while the store cannot answer, and says whether it is durable.
    async fn lands(&self, group: &Group) -> bool {
        let (commit, mut backoff, mut in_doubt) = (group.commit(), Backoff::default(), false);
        while !self.is_given_up() {
            match self.committer.commit(commit.clone()).await {
                Ok(()) => return true,
                Err(CommitError::Failed(error)) if !error.is_closed() => {
                    warn!(error = &error as &dyn std::error::Error, "pipelined commit failed");
                    in_doubt = true;
                }
                Err(CommitError::Conflict) if in_doubt => {
                    // It may be this commit, tried before, that is in the way.
                    if let Ok(applied) = self.is_applied(&commit).await {
                        return applied;
                    }
                }
                Err(_) => return false,
            }
            backoff.pause(&*self.guards.clock, &self.guards.aborting).await;
        }
        false
    }

    fn is_given_up(&self) -> bool {
        let Guards { lease_lost, aborting, .. } = &self.guards;
        lease_lost.is_cancelled() || aborting.is_cancelled() || self.lock().is_undone
    }

    /// Whether the keys that `commit` compares hold what it puts there. No other commit puts the same.
    async fn is_applied(&self, commit: &Commit) -> Result<bool> {
        for (key, _) in &commit.expect {
            let found: Option<Bytes> = self.committer.kv().get(key, Read::Durable).await?;
            if found.as_ref() != commit.next(key).flatten() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Flies one group after the other. A task of its own: the steps go on meanwhile.
async fn fly(shared: Arc<Shared>, first: Arc<Group>) {
    let mut next = Some(first);
    while let Some(group) = next {
        if !shared.lands(&group).await {
            return shared.undo();
        }
        shared.land();
        next = shared.take_off();
    }
}

#[cfg(test)]
mod tests;

//! Group commit: what comes while commits are in flight goes into few commits together, because concurrent
//! transactions slow each other down. A commit that finds nothing in flight goes at once and alone.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use workflow_effects::{Commit, Error, KvStore, Read, Rejected, ScanPage, ScanRange};

/// The most commits in flight at a store that is quick to answer.
const IN_FLIGHT: usize = 4;
/// The most at a store that is slow, where whoever waited for one of those to land would wait for two writes.
const SLOW_IN_FLIGHT: usize = 64;
/// A store is slow when so long after the last commit took off none has landed.
const SLOW: Duration = Duration::from_millis(2);
/// The most bytes that a group carries.
const GROUP_BYTES: usize = 8 << 20;
/// The most commits that a group carries.
const GROUP_LEN: usize = 1_024;
/// How many of those that wait are looked at for a group.
const LOOKED_AT: usize = 4 * GROUP_LEN;
/// The bytes that are waiting or in flight, in units of [`ROOM_UNIT`]. Who comes beyond them waits its turn, first come
/// first served.
const ROOM: usize = 64 << 10;
const ROOM_UNIT: usize = 1 << 10;

/// A store whose commits are grouped. Everything else passes through.
///
/// What one commit of a group expects, no other writes, so each is applied as if it were alone: one after the other, in
/// the order in which they came. A group that is refused is halved until the refusal is that of one commit.
pub(crate) struct GroupCommit {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn KvStore>,
    state: Mutex<State>,
    room: Arc<Semaphore>,
    /// Notified when a commit has landed.
    landed: Notify,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    /// Whether one of those in flight has yet to take its group.
    is_boarding: bool,
    waiting: VecDeque<Waiting>,
}

/// A commit that waits for a group.
struct Waiting {
    commit: Commit,
    answer: oneshot::Sender<Answer>,
    /// Kept until the answer.
    _room: OwnedSemaphorePermit,
}

type Answer = Result<(), Rejected>;

/// The right to have a commit in flight, until this is dropped.
struct Flight {
    group_commit: Arc<Inner>,
    is_boarding: bool,
}

impl GroupCommit {
    /// Groups the commits to `store`.
    pub(crate) fn new(store: Arc<dyn KvStore>) -> Self {
        let (state, room, landed) = (Mutex::default(), Arc::new(Semaphore::new(ROOM)), Notify::new());
        Self { inner: Arc::new(Inner { store, state, room, landed }) }
    }
}

#[async_trait]
impl KvStore for GroupCommit {
    async fn get(&self, key: &[u8], read: Read) -> Result<Option<Bytes>, Error> {
        self.inner.store.get(key, read).await
    }

    async fn scan(&self, range: &ScanRange, read: Read) -> Result<ScanPage, Error> {
        self.inner.store.scan(range, read).await
    }

    async fn commit(&self, mut commits: Vec<Commit>) -> Vec<Answer> {
        match commits.pop() {
            Some(only) if commits.is_empty() => vec![self.inner.commit(only).await],
            last => join_all(commits.into_iter().chain(last).map(|commit| self.inner.commit(commit))).await,
        }
    }
}

impl Inner {
    /// Commits at once where that is possible, otherwise with others.
    async fn commit(self: &Arc<Self>, commit: Commit) -> Answer {
        let units = (size(&commit) / ROOM_UNIT + 1).min(ROOM);
        let room = self.room.clone().acquire_many_owned(u32::try_from(units).unwrap_or(u32::MAX)).await;
        let room = room.map_err(|_| lost())?;
        let (answer, answered) = oneshot::channel();
        self.lock().waiting.push_back(Waiting { commit, answer, _room: room });
        self.take_off();
        answered.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Lets what waits take off, if there may be another commit in flight. Each flight is a task of its own, so that it
    /// ends even where nobody polls for the answer.
    fn take_off(self: &Arc<Self>) {
        // Without an async runtime nobody waits for an answer any more.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        {
            let mut state = self.lock();
            if state.is_boarding || state.in_flight == SLOW_IN_FLIGHT || state.waiting.is_empty() {
                return;
            }
            (state.in_flight, state.is_boarding) = (state.in_flight + 1, true);
        }
        // Not under the lock: a runtime that shuts down drops the task at once, and with it the flight.
        runtime.spawn(fly(Flight { group_commit: self.clone(), is_boarding: true }));
    }

    /// Waits until no more than [`IN_FLIGHT`] are in flight, or the store proves slow.
    async fn cleared(&self) {
        let landed = self.landed.notified();
        if self.lock().in_flight > IN_FLIGHT {
            // Either way it is time.
            let _ = tokio::time::timeout(SLOW, landed).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Takes what waits.
    fn board(&mut self) -> Vec<Waiting> {
        let group = {
            let mut state = self.group_commit.lock();
            (self.is_boarding, state.is_boarding) = (false, false);
            take_group(&mut state.waiting)
        };
        self.group_commit.take_off();
        group
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.group_commit.lock();
        state.in_flight -= 1;
        if self.is_boarding {
            // The runtime shuts down: the next one would not get any further.
            state.is_boarding = false;
            return;
        }
        drop(state);
        self.group_commit.landed.notify_waiters();
        self.group_commit.take_off();
    }
}

/// Commits a group, and answers everyone in it.
async fn fly(mut flight: Flight) {
    // Whoever is ready to run may be about to hand in a commit, too.
    tokio::task::yield_now().await;
    flight.group_commit.cleared().await;
    let mut groups = vec![flight.board()];
    while !groups.is_empty() {
        let merged = groups.iter().map(|group| merge(group)).collect();
        let answers = flight.group_commit.store.commit(merged).await;
        let mut refused = Vec::new();
        for (mut group, answer) in groups.into_iter().zip(answers) {
            if group.len() > 1 && matches!(answer, Err(Rejected::Conflict | Rejected::Invalid(_))) {
                let half = group.split_off(group.len() / 2);
                refused.extend([group, half]);
            } else {
                tell(group, answer);
            }
        }
        groups = refused;
    }
}

/// The first of those who wait, and whoever of the others writes nothing that one of them expects.
fn take_group(waiting: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let (mut group, mut passed_over) = (Vec::new(), VecDeque::new());
    let (mut keys, mut bytes) = (Keys::default(), 0);
    while let Some(next) = waiting.pop_front() {
        let len = size(&next.commit);
        if group.is_empty() || (bytes + len <= GROUP_BYTES && keys.admit(&next.commit)) {
            bytes += len;
            keys.take_in(&next.commit);
            group.push(next);
        } else {
            passed_over.push_back(next);
        }
        if group.len() == GROUP_LEN || group.len() + passed_over.len() == LOOKED_AT || bytes >= GROUP_BYTES {
            break;
        }
    }
    passed_over.append(waiting);
    *waiting = passed_over;
    group
}

/// The keys that a group writes, and whether one of it expects something there.
#[derive(Default)]
struct Keys(HashMap<Bytes, bool>);

impl Keys {
    fn admit(&self, commit: &Commit) -> bool {
        commit.written().all(|key| self.0.get(key).is_none_or(|expected| !expected && !expects(commit, key)))
    }

    fn take_in(&mut self, commit: &Commit) {
        self.0.extend(commit.written().map(|key| (key.clone(), expects(commit, key))));
    }
}

fn expects(commit: &Commit, key: &Bytes) -> bool {
    commit.expect.iter().any(|(expected, _)| expected == key)
}

/// What is left of the commits of `group`: of those that write one key, the last counts.
fn merge(group: &[Waiting]) -> Commit {
    if let [alone] = group {
        return alone.commit.clone();
    }
    let commits = || group.iter().map(|waiting| &waiting.commit).enumerate();
    let last: HashMap<&Bytes, usize> =
        commits().flat_map(|(number, commit)| commit.written().map(move |key| (key, number))).collect();
    let mut merged = Commit::default();
    for (number, commit) in commits() {
        merged.expect.extend_from_slice(&commit.expect);
        merged.puts.extend(commit.puts.iter().filter(|(key, _)| last[key] == number).cloned());
        merged.deletes.extend(commit.deletes.iter().filter(|key| last[key] == number).cloned());
        merged.enqueues.extend_from_slice(&commit.enqueues);
    }
    merged
}

/// Answers everyone in `group`.
fn tell(group: Vec<Waiting>, answer: Answer) {
    let doubt = match answer {
        Err(Rejected::Unknown(error)) if group.len() > 1 => Arc::new(error),
        answer => {
            let mut answer = Some(answer);
            for waiting in group {
                // Who has dropped the future has abandoned the answer.
                let _ = waiting.answer.send(answer.take().unwrap_or(Ok(())));
            }
            return;
        }
    };
    for waiting in group {
        let error = match &*doubt {
            Error::Closed { reason } => Error::Closed { reason: reason.clone() },
            _ => Error::Unavailable(Box::new(doubt.clone())),
        };
        let _ = waiting.answer.send(Err(Rejected::Unknown(error)));
    }
}

/// The bytes that `commit` carries, roughly.
fn size(commit: &Commit) -> usize {
    let expected = commit.expect.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len));
    let put = commit.puts.iter().map(|(key, value)| key.len() + value.len());
    let deleted = commit.deletes.iter().map(Bytes::len);
    let queued = commit.enqueues.iter().map(|job| job.queue.len() + job.payload.len());
    expected.chain(put).chain(deleted).chain(queued).sum()
}

fn lost() -> Rejected {
    Rejected::Unknown(Error::Unavailable("the commit's answer was lost".into()))
}

#[cfg(test)]
mod tests;

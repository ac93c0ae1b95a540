//! The schedule of one execution: who has stopped, who goes on, and what has happened.
//!
//! The async runtime asks for the next move whenever it is idle, and only then: no task of it can go on.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task;
use tokio::time::Instant;

use super::call::Call;
use super::choices::{Chooser, Taken};
use super::failure::Problem;
use super::steps::Step;
use super::{Interleaver, Passes};

/// Tokio's time comes to a far timer in several jumps, one for each level of its wheel at most.
const MAX_JUMPS: u32 = 6;
/// All of these jumps but the last end at multiples of this many milliseconds.
const WHEEL: u128 = 64;

pub(super) struct Schedule {
    state: Mutex<State>,
    passes: Passes,
    most_steps: usize,
    failed: Notify,
}

struct State {
    /// Whether calls stop.
    racing: bool,
    stopped: BTreeMap<u64, Stopped>,
    /// Whose calls are inside the queue.
    inside: BTreeMap<u64, Arc<str>>,
    next_number: u64,
    chooser: Chooser,
    taken: Vec<Taken>,
    steps: Vec<Step>,
    /// The hash of everything that has gone on.
    print: u64,
    /// The actor and the task that went on last.
    last: Option<(Arc<str>, usize)>,
    /// When the execution began, and when something last happened.
    start: Instant,
    seen: Instant,
    /// How time is to pass, while nothing has happened.
    passing: Option<Passing>,
    delays: u32,
    tasks: Tasks,
    problem: Option<Problem>,
}

struct Stopped {
    call: Call,
    turn: oneshot::Sender<()>,
}

/// Time that is let pass although a call could go on.
#[derive(Clone, Copy)]
struct Passing {
    /// When it last stood still.
    since: Instant,
    /// How many more jumps it may take until something happens.
    jumps: u32,
}

/// Numbers the tasks of each name in the order of their first calls.
#[derive(Default)]
struct Tasks {
    numbers: HashMap<(Arc<str>, Option<task::Id>), usize>,
    counts: BTreeMap<Arc<str>, usize>,
}

/// What may happen next.
enum Move {
    /// The stopped call of this number goes on.
    Call(u64),
    /// Time passes.
    Wait,
}

impl Schedule {
    pub(super) fn new(interleaver: &Interleaver, chooser: Chooser) -> Self {
        let state = State {
            racing: false,
            stopped: BTreeMap::new(),
            inside: BTreeMap::new(),
            next_number: 0,
            chooser,
            taken: Vec::new(),
            steps: Vec::new(),
            print: 0,
            last: None,
            start: Instant::now(),
            seen: Instant::now(),
            passing: None,
            delays: interleaver.delays,
            tasks: Tasks::default(),
            problem: None,
        };
        Self {
            state: Mutex::new(state),
            passes: interleaver.passes.clone(),
            most_steps: interleaver.most_steps,
            failed: Notify::new(),
        }
    }

    /// Notes the time at which the execution begins.
    pub(super) fn begin(&self) {
        self.lock().start = Instant::now();
    }

    /// From now on calls stop.
    pub(super) fn open(&self) {
        let mut state = self.lock();
        (state.racing, state.seen) = (true, Instant::now());
    }

    /// From now on calls take their course, those that have stopped first.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.racing = false;
        for stopped in std::mem::take(&mut state.stopped).into_values() {
            let _ = stopped.turn.send(());
        }
    }

    /// Closes, and tells what has happened.
    pub(super) fn end(&self) -> (Vec<Taken>, Vec<Step>) {
        let mut state = self.lock();
        state.racing = false;
        (std::mem::take(&mut state.taken), std::mem::take(&mut state.steps))
    }

    /// Returns with the problem once the order itself is one.
    pub(super) async fn failed(&self) -> Problem {
        self.failed.notified().await;
        self.lock().problem.clone().unwrap_or(Problem::TooManySteps)
    }

    /// Which of the tasks of `actor` this one is, if it matters: during a race.
    pub(super) fn task_number(&self, actor: &Arc<str>) -> Option<usize> {
        let mut state = self.lock();
        state.racing.then(|| state.tasks.number(actor))
    }

    /// Stops `call` until its turn comes. During no race, and for a call that passes, that is at once.
    pub(super) async fn turn(&self, call: Call) {
        if (self.passes)(&call) {
            return;
        }
        let (turn, come) = oneshot::channel();
        let Some(number) = self.lock().stop(call, turn) else { return };
        let _unless_it_came = OnDrop(|| drop(self.lock().stopped.remove(&number)));
        let _ = come.await;
    }

    /// Carries out `call`, which is inside the queue meanwhile.
    pub(super) async fn inside<T>(&self, actor: &Arc<str>, call: impl Future<Output = T>) -> T {
        let number = self.lock().enter(actor);
        let _however_it_ends = OnDrop(|| self.lock().leave(number));
        call.await
    }

    /// Everything waits: makes the next move. Whoever it wakes goes on before time passes.
    pub(super) fn idle(&self) {
        let mut state = self.lock();
        if !state.racing || state.problem.is_some() || state.is_to_wait_on() {
            return;
        }
        state.note_time();
        let moved = match state.steps.len() > self.most_steps {
            true => Err(Problem::TooManySteps),
            false => state.move_on().map_err(Problem::NotDeterministic),
        };
        if let Err(problem) = moved {
            state.problem = Some(problem);
            self.failed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn stop(&mut self, call: Call, turn: oneshot::Sender<()>) -> Option<u64> {
        if !self.racing {
            return None;
        }
        self.passing = None;
        let number = self.number();
        self.stopped.insert(number, Stopped { call, turn });
        Some(number)
    }

    fn enter(&mut self, actor: &Arc<str>) -> u64 {
        let number = self.number();
        self.inside.insert(number, actor.clone());
        number
    }

    fn leave(&mut self, number: u64) {
        self.passing = None;
        self.inside.remove(&number);
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Whether time is to pass on: it has not begun to, or has not come to the end of any wait.
    fn is_to_wait_on(&mut self) -> bool {
        let now = Instant::now();
        let Some(passing) = &mut self.passing else { return false };
        if passing.since == now {
            return true;
        }
        (passing.since, passing.jumps) = (now, passing.jumps.saturating_sub(1));
        passing.jumps > 0 && (now - self.start).as_millis().is_multiple_of(WHEEL)
    }

    /// Notes how much time has passed since the last move.
    fn note_time(&mut self) {
        let now = Instant::now();
        let passed = now - std::mem::replace(&mut self.seen, now);
        if passed > Duration::ZERO {
            self.steps.push(Step::Passed(passed));
        }
    }

    /// Makes one of the moves there are. When there is none, time passes.
    fn move_on(&mut self) -> Result<(), String> {
        let mut moves = self.moves();
        if moves.is_empty() {
            return Ok(());
        }
        let choice = if moves.len() > 1 { self.choose(&moves)? } else { 0 };
        match moves.swap_remove(choice) {
            Move::Call(number) => self.go_on(number),
            Move::Wait => self.wait(),
        }
        Ok(())
    }

    /// What may happen next; first what surprises least, which is that whoever went on last goes on. Names order the
    /// rest, and not the arrivals, which chance has a hand in wherever several tasks are woken at once.
    fn moves(&self) -> Vec<Move> {
        let is_last = |actor: &Arc<str>| self.last.as_ref().is_some_and(|(last, _)| last == actor);
        let surprise = |call: &Call| match &self.last {
            Some((actor, task)) if *actor == call.actor => u8::from(*task != call.task),
            _ => 3,
        };
        let mut calls: Vec<(u8, &Arc<str>, usize, u64)> = self
            .stopped
            .iter()
            .map(|(number, Stopped { call, .. })| (surprise(call), &call.actor, call.task, *number))
            .collect();
        calls.sort_unstable();
        let mut moves: Vec<Move> = calls.iter().map(|(.., number)| Move::Call(*number)).collect();
        if !moves.is_empty() && (self.may_land() || self.delays > 0) {
            // Whoever went on last may have to wait for nothing but time.
            let last_waits = self.inside.values().any(is_last);
            let at = calls.iter().filter(|(surprise, ..)| *surprise < 3 || !last_waits).count();
            moves.insert(at, Move::Wait);
        }
        moves
    }

    /// Whether time may bring a call inside the queue to its end. It has been tried when time has just passed.
    fn may_land(&self) -> bool {
        !self.inside.is_empty() && self.passing.is_none()
    }

    fn choose(&mut self, moves: &[Move]) -> Result<usize, String> {
        let mut hasher = DefaultHasher::new();
        self.print.hash(&mut hasher);
        for next in moves {
            self.hash_move(next, &mut hasher);
        }
        let (print, options) = (hasher.finish(), u32::try_from(moves.len()).unwrap_or(u32::MAX));
        let choice = self.chooser.choose(self.taken.len(), options, print)?;
        self.taken.push(Taken { choice, options, print });
        Ok(usize::try_from(choice).unwrap_or(0))
    }

    fn hash_move(&self, next: &Move, hasher: &mut DefaultHasher) {
        match next {
            Move::Call(number) => {
                if let Some(Stopped { call, .. }) = self.stopped.get(number) {
                    hash_call(call, hasher);
                }
            }
            Move::Wait => "time".hash(hasher),
        }
    }

    fn go_on(&mut self, number: u64) {
        let Some(Stopped { call, turn }) = self.stopped.remove(&number) else { return };
        let mut hasher = DefaultHasher::new();
        self.print.hash(&mut hasher);
        hash_call(&call, &mut hasher);
        self.print = hasher.finish();
        self.last = Some((call.actor.clone(), call.task));
        self.passing = None;
        self.steps.push(Step::Went(call));
        let _ = turn.send(());
    }

    fn wait(&mut self) {
        if !self.may_land() {
            self.delays -= 1;
        }
        self.passing = Some(Passing { since: Instant::now(), jumps: MAX_JUMPS });
    }
}

impl Tasks {
    fn number(&mut self, actor: &Arc<str>) -> usize {
        let count = self.counts.entry(actor.clone()).or_default();
        *self.numbers.entry((actor.clone(), task::try_id())).or_insert_with(|| {
            *count += 1;
            *count
        })
    }
}

fn hash_call(call: &Call, hasher: &mut DefaultHasher) {
    (&call.actor, call.task, call.operation, call.moment, &call.subject, &call.answer).hash(hasher);
}

/// Does something at the end of a scope, also when the future it is in is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

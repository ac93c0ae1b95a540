//! Random histories of one run over a model of the queue: deliveries that end without a word, leases that expire under
//! a running attempt, decisions that a crash forgets, early and stale doorbells, hand-backs, waits for signals that come
//! before them, during them or never, and cancellations.

mod slots;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use workflow_core::{
    Action, Attempt, AttemptFailed, CancelGraceOver, CancelRequested, Claimed, Effect, Event, Failure, FailureKind,
    HandedBack, Incarnation, InputHash, JobId, Outcome, Reason, RetryPolicy, Run, Signalled, StepReturned, Submitted,
    Timestamp, Transition, TurnCame, Value, When, decide,
};

use super::config;
use super::generators::kind;
use super::invariants::check;
use slots::{KEYS, Slots, key};

/// One thing that happens. An index picks among the deliveries, or attempts, that there are.
#[derive(Clone, Debug)]
enum Move {
    Submit { input: u8, delay_ms: Option<u64> },
    Wait { ms: u64 },
    Deliver { forgotten: bool },
    DeliverStale { job: usize, deliveries: u32 },
    Turn { attempt: usize },
    Continue { attempt: usize, delay_ms: Option<u64>, inline: bool },
    Succeed { attempt: usize },
    Fail { attempt: usize, kind: FailureKind, retry_after_ms: Option<u64> },
    HandBack { attempt: usize },
    Await { attempt: usize, keys: Vec<usize>, timeout_ms: Option<u64>, taken: bool, inline: bool },
    Signal { key: usize },
    Cancel { overlooked: bool },
    GraceOver { attempt: usize },
    ExpireLease,
    Crash,
}

fn a_move() -> impl Strategy<Value = Move> {
    let delay = || proptest::option::weighted(0.4, 0..30_u64);
    let attempt = 0..4_usize;
    prop_oneof![
        1 => (0..2_u8, delay()).prop_map(|(input, delay_ms)| Move::Submit { input, delay_ms }),
        3 => (0..40_u64).prop_map(|ms| Move::Wait { ms }),
        8 => prop::bool::weighted(0.1).prop_map(|forgotten| Move::Deliver { forgotten }),
        1 => (0..9_usize, 0..9_u32).prop_map(|(job, deliveries)| Move::DeliverStale { job, deliveries }),
        4 => attempt.clone().prop_map(|attempt| Move::Turn { attempt }),
        3 => (attempt.clone(), delay(), any::<bool>())
            .prop_map(|(attempt, delay_ms, inline)| Move::Continue { attempt, delay_ms, inline }),
        1 => attempt.clone().prop_map(|attempt| Move::Succeed { attempt }),
        2 => (attempt.clone(), kind(), delay())
            .prop_map(|(attempt, kind, retry_after_ms)| Move::Fail { attempt, kind, retry_after_ms }),
        2 => attempt.clone().prop_map(|attempt| Move::HandBack { attempt }),
        4 => an_await(),
        3 => (0..KEYS).prop_map(|key| Move::Signal { key }),
        1 => prop::bool::weighted(0.3).prop_map(|overlooked| Move::Cancel { overlooked }),
        1 => attempt.prop_map(|attempt| Move::GraceOver { attempt }),
        4 => Just(Move::ExpireLease),
        3 => Just(Move::Crash),
    ]
}

fn an_await() -> impl Strategy<Value = Move> {
    let keys = subsequence((0..KEYS).collect::<Vec<_>>(), 1..=KEYS).prop_shuffle();
    let timeout = proptest::option::weighted(0.7, 0..40_u64);
    (0..4_usize, keys, timeout, prop::bool::weighted(0.02), any::<bool>())
        .prop_map(|(attempt, keys, timeout_ms, taken, inline)| Move::Await { attempt, keys, timeout_ms, taken, inline })
}

/// A delivery that this process still holds something of: it runs, or is parked.
#[derive(Clone, Debug)]
struct Held {
    attempt: Attempt,
    parked: bool,
    /// A later delivery was decided, or the job was replaced.
    overtaken: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Job {
    deliveries: u32,
    claimed: bool,
}

struct World {
    run: Run,
    max_attempts: u32,
    now: Timestamp,
    jobs: BTreeMap<JobId, Job>,
    rung: Vec<JobId>,
    held: Vec<Held>,
    /// The starts of each step, those aside that were handed back.
    starts: BTreeMap<u32, u32>,
    slots: Slots,
}

type Checked = Result<(), TestCaseError>;

impl World {
    fn new(max_attempts: u32) -> Self {
        let now = Timestamp::from_millis(1_000);
        let (jobs, rung, held, starts, slots) = Default::default();
        Self { run: Run::absent(), max_attempts, now, jobs, rung, held, starts, slots }
    }

    fn next_job(&mut self) -> JobId {
        let job = JobId::from(format!("{:04}", self.rung.len()));
        self.rung.push(job.clone());
        job
    }

    fn later(&self, delay_ms: Option<u64>) -> Option<Timestamp> {
        delay_ms.map(|ms| self.now.after(Duration::from_millis(ms)))
    }

    /// Decides, checks what must hold for every decision, and commits.
    fn commit(&mut self, event: Event) -> Result<Transition, TestCaseError> {
        let transition = decide(&self.run, event);
        check(&self.run, &transition)?;
        self.slots.commit(&transition)?;
        for effect in &transition.effects {
            match effect {
                Effect::EnqueueStep { job, .. } => {
                    self.jobs.insert(job.clone(), Job::default());
                    self.held.iter_mut().for_each(|held| held.overtaken = true);
                }
                Effect::DropDoorbell(job) => drop(self.jobs.remove(job)),
                _ => {}
            }
        }
        self.run = transition.next.clone();
        if let Run::Ended(_) = self.run {
            self.held.iter_mut().for_each(|held| held.overtaken = true);
        }
        Ok(transition)
    }

    fn apply(&mut self, next: Move) -> Checked {
        match next {
            Move::Submit { input, delay_ms } => self.submit(input, delay_ms)?,
            Move::Wait { ms } => self.now = self.now.after(Duration::from_millis(ms)),
            Move::Deliver { forgotten } => self.deliver(forgotten)?,
            Move::DeliverStale { job, deliveries } => self.deliver_stale(job, deliveries)?,
            Move::Turn { attempt } => self.turn(attempt)?,
            Move::Continue { attempt, delay_ms, inline } => {
                let outcome = Outcome::Continue {
                    payload: Value::from("next"),
                    when: self.later(delay_ms).map_or(When::Now, When::At),
                };
                self.answer(attempt, outcome, inline)?;
            }
            Move::Succeed { attempt } => {
                self.answer(attempt, Outcome::Succeed { result: Value::from("result") }, true)?;
            }
            Move::Fail { attempt, kind, retry_after_ms } => self.fail(attempt, kind, retry_after_ms)?,
            Move::HandBack { attempt } => self.hand_back(attempt)?,
            Move::Await { attempt, keys, timeout_ms, taken, inline } => {
                let keys = keys.into_iter().map(|index| self.slots.look_up(key(index), taken)).collect();
                let when = When::OnSignal { keys, until: self.later(timeout_ms) };
                self.answer(attempt, Outcome::Continue { payload: Value::from("next"), when }, inline)?;
            }
            Move::Signal { key } => self.signal(key)?,
            Move::Cancel { overlooked } => self.cancel(overlooked)?,
            Move::GraceOver { attempt } => self.grace_over(attempt)?,
            Move::ExpireLease => self.jobs.values_mut().for_each(|job| job.claimed = false),
            Move::Crash => {
                self.held.clear();
                self.jobs.values_mut().for_each(|job| job.claimed = false);
            }
        }
        if let Run::Active(active) = &self.run {
            let rings = self.jobs.contains_key(&active.job);
            prop_assert_eq!(rings, active.phase.has_doorbell(), "the run's doorbell is gone");
        }
        self.slots.check(&self.run)?;
        self.slots.check_none_lost()
    }

    fn submit(&mut self, input: u8, delay_ms: Option<u64>) -> Checked {
        let first = self.run == Run::Absent;
        let job = self.next_job();
        let event = Submitted {
            incarnation: Incarnation::new(self.rung.len() as u128),
            job,
            input: Value::from(vec![input]),
            input_hash: InputHash([input; 32]),
            stored_input_hash: (!first).then_some(InputHash([0; 32])),
            now: self.now,
            run_at: self.later(delay_ms),
        };
        let transition = self.commit(Event::Submitted(event))?;
        prop_assert_eq!(transition.action, Action::None);
        Ok(())
    }

    /// Delivers a job that nobody has claimed. Forgotten: the process dies before the decision commits.
    fn deliver(&mut self, forgotten: bool) -> Checked {
        let Some((job, entry)) = self.jobs.iter_mut().find(|(_, entry)| !entry.claimed) else { return Ok(()) };
        *entry = Job { deliveries: entry.deliveries + 1, claimed: !forgotten };
        let (job, deliveries) = (job.clone(), entry.deliveries);
        if forgotten { Ok(()) } else { self.claim(job, deliveries) }
    }

    fn deliver_stale(&mut self, job: usize, deliveries: u32) -> Checked {
        let Some(job) = self.rung.get(job).filter(|job| !self.jobs.contains_key(job)).cloned() else { return Ok(()) };
        let before = self.run.clone();
        self.claim(job, deliveries)?;
        prop_assert_eq!(&self.run, &before);
        Ok(())
    }

    fn claim(&mut self, job: JobId, deliveries: u32) -> Checked {
        let before = self.run.clone();
        let incarnation = before.incarnation().unwrap_or(Incarnation::new(0));
        let (max_attempts, now, next_job) = (self.max_attempts, self.now, self.next_job());
        let event = Claimed { incarnation, job: job.clone(), deliveries, max_attempts, now, next_job };
        let transition = self.commit(Event::Claimed(event))?;
        let parked = match transition.action {
            Action::Execute { attempt } => {
                prop_assert!((1..=max_attempts).contains(&attempt));
                false
            }
            Action::Park => true,
            Action::Ack | Action::DeadLetter | Action::Discard => {
                self.settle(&job, deliveries);
                return Ok(());
            }
            Action::Advance | Action::None => return Err(TestCaseError::fail("no answer to a claim")),
        };
        let Run::Active(active) = &before else { return Err(TestCaseError::fail("started a run that is not active")) };
        prop_assert!(active.phase.due().is_none_or(|due| due <= now), "started before its time");
        self.held.iter_mut().for_each(|held| held.overtaken = true);
        let attempt = Attempt { incarnation, step: active.step, job, deliveries };
        self.held.push(Held { attempt, parked, overtaken: false });
        if parked { Ok(()) } else { self.started(active.step) }
    }

    fn started(&mut self, step: u32) -> Checked {
        let starts = self.starts.entry(step).or_default();
        *starts += 1;
        prop_assert!(*starts <= self.max_attempts, "step {} started {} times", step, starts);
        self.slots.started(&self.run)
    }

    /// Removes the job if the delivery still holds it.
    fn settle(&mut self, job: &JobId, deliveries: u32) {
        if self.jobs.get(job).is_some_and(|entry| entry.claimed && entry.deliveries == deliveries) {
            self.jobs.remove(job);
        }
    }

    /// Takes an attempt that runs.
    fn running(&mut self, index: usize) -> Option<Held> {
        let running = self.held.iter().enumerate().filter(|(_, held)| !held.parked).map(|(at, _)| at);
        let at = running.clone().cycle().nth(index)?;
        Some(self.held.remove(at))
    }

    fn turn(&mut self, index: usize) -> Checked {
        let parked: Vec<usize> = (0..self.held.len()).filter(|&at| self.held[at].parked).collect();
        let Some(&at) = parked.iter().cycle().nth(index) else { return Ok(()) };
        let held = self.held.remove(at);
        let transition =
            self.reported(&held, Event::TurnCame(TurnCame { attempt: held.attempt.clone(), now: self.now }))?;
        if let Action::Execute { attempt } = transition.action {
            prop_assert!((1..=self.max_attempts).contains(&attempt));
            let step = held.attempt.step;
            self.held.push(Held { parked: false, ..held });
            self.started(step)?;
        }
        Ok(())
    }

    /// What an attempt that was overtaken reports is dropped, and what any other reports is not.
    fn reported(&mut self, held: &Held, event: Event) -> Result<Transition, TestCaseError> {
        let transition = self.commit(event)?;
        prop_assert_eq!(transition.action == Action::Discard, held.overtaken, "{:?} {:?}", held, transition);
        if !matches!(transition.action, Action::Execute { .. } | Action::Advance) {
            self.settle(&held.attempt.job, held.attempt.deliveries);
        }
        Ok(transition)
    }

    fn answer(&mut self, index: usize, outcome: Outcome, inline: bool) -> Checked {
        let Some(mut held) = self.running(index) else { return Ok(()) };
        let (attempt, now, next_job) = (held.attempt.clone(), self.now, self.next_job());
        let event = Event::StepReturned(StepReturned { attempt, outcome, now, next_job, inline });
        if self.reported(&held, event)?.action == Action::Advance {
            self.held.iter_mut().for_each(|held| held.overtaken = true);
            held.attempt.step += 1;
            let step = held.attempt.step;
            self.held.push(held);
            self.started(step)?;
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, kind: FailureKind, retry_after_ms: Option<u64>) -> Checked {
        let Some(held) = self.running(index) else { return Ok(()) };
        let event = AttemptFailed {
            attempt: held.attempt.clone(),
            failure: Failure { kind, message: "no".to_owned() },
            retry_after: retry_after_ms.map(Duration::from_millis),
            max_attempts: self.max_attempts,
            retry: RetryPolicy { base: Duration::from_millis(10), ..RetryPolicy::default() },
            entropy: u64::MAX / 3,
            now: self.now,
            next_job: self.next_job(),
        };
        self.reported(&held, Event::StepFailed(event))?;
        Ok(())
    }

    /// Hands back an attempt that runs or waits. One that runs and is not late was not counted.
    fn hand_back(&mut self, index: usize) -> Checked {
        let Some(at) = (0..self.held.len()).cycle().nth(index) else { return Ok(()) };
        let held = self.held.remove(at);
        let (attempt, now, next_job) = (held.attempt.clone(), self.now, self.next_job());
        let event = Event::HandedBack(HandedBack { attempt, now, next_job });
        let action = self.reported(&held, event)?.action;
        if action == Action::Ack && !held.parked {
            *self.starts.get_mut(&held.attempt.step).expect("it started") -= 1;
        }
        Ok(())
    }

    /// A signal goes to whoever waits, or to the buffer.
    fn signal(&mut self, index: usize) -> Checked {
        let (signal, waiter) = self.slots.send(key(index));
        let Some((incarnation, step)) = waiter else {
            self.slots.buffer(signal);
            return Ok(());
        };
        let (now, next_job) = (self.now, self.next_job());
        let transition = self.commit(Event::Signalled(Signalled { signal, incarnation, step, now, next_job }))?;
        prop_assert_eq!(transition.reason, Reason::Signalled, "a slot names a run that does not wait");
        Ok(())
    }

    /// Overlooked: the delivery began after somebody had looked whether there is one.
    fn cancel(&mut self, overlooked: bool) -> Checked {
        let is_claimed = match &self.run {
            Run::Active(run) => self.jobs.get(&run.job).is_some_and(|job| job.claimed),
            Run::Absent | Run::Ended(_) => false,
        };
        let in_hand = is_claimed && !overlooked;
        self.commit(Event::CancelRequested(CancelRequested { reason: None, in_hand, now: self.now }))?;
        Ok(())
    }

    /// A call that was asked to stop goes on.
    fn grace_over(&mut self, index: usize) -> Checked {
        if !matches!(&self.run, Run::Active(run) if run.cancel.is_some()) {
            return Ok(());
        }
        let Some(held) = self.running(index) else { return Ok(()) };
        let (attempt, now) = (held.attempt.clone(), self.now);
        self.reported(&held, Event::CancelGraceOver(CancelGraceOver { attempt, now }))?;
        Ok(())
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_history_keeps_to_the_limit_and_never_loses_its_doorbell(
        max_attempts in 1..7_u32, moves in vec(a_move(), 0..120),
    ) {
        let mut world = World::new(max_attempts);
        world.apply(Move::Submit { input: 0, delay_ms: None })?;
        for next in moves {
            world.apply(next)?;
        }
    }

    #[test]
    fn a_run_that_is_answered_ends_once_faults_stop(max_attempts in 1..7_u32, moves in vec(a_move(), 0..60)) {
        let mut world = World::new(max_attempts);
        world.apply(Move::Submit { input: 0, delay_ms: None })?;
        for next in moves {
            world.apply(next)?;
        }
        world.apply(Move::Crash)?;
        world.apply(Move::Wait { ms: 1_000_000 })?;
        for _ in 0..200 {
            world.apply(Move::Deliver { forgotten: false })?;
            world.apply(Move::Turn { attempt: 0 })?;
            world.apply(Move::Succeed { attempt: 0 })?;
            for key in 0..KEYS {
                world.apply(Move::Signal { key })?;
            }
        }
        prop_assert!(matches!(world.run, Run::Ended(_)), "{:?}", world.run);
        prop_assert_eq!(world.jobs.len(), 0, "doorbells are left over");
    }
}
